# SPDX-License-Identifier: Apache-2.0
"""What torch's DTensor gives each rank: the lines of tests/golden/dcp/placements.txt."""
import itertools
import math

MESHES = [(1,), (2,), (3,), (4,), (8,), (16,), (2, 2), (2, 3), (3, 2), (4, 2), (2, 8), (2, 2, 2), (2, 4, 2)]
LENGTHS = range(1, 33)


def placements_of(mesh):
    """All choices of R (replicate), S (shard) and X (strided by the shards to its right)."""
    for kinds in itertools.product("RSX", repeat=len(mesh)):
        text = "".join(kinds)
        # FSDP over tensor parallelism: one strided axis, shards behind it.
        if text.count("X") > 1 or ("X" in text and "S" not in text[text.index("X"):]):
            continue
        yield text


def lines():
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset as compute
    from torch.distributed.tensor.placement_types import _StridedShard

    for mesh in MESHES:
        for kinds in placements_of(mesh):
            factor = math.prod(
                size for size, kind in zip(mesh, kinds) if kind == "S" and kinds.find("X") >= 0
            ) if "X" in kinds and "S" not in kinds[: kinds.find("X")] else None
            if "X" in kinds and factor is None:
                continue
            shards = math.prod(size for size, kind in zip(mesh, kinds) if kind != "R")
            made = {
                "R": Replicate(),
                "S": Shard(0),
                "X": _StridedShard(0, split_factor=factor) if factor else None,
            }
            for length in LENGTHS:
                # Uneven strided shards: torch 2.12 and 2.13 describe other rows than ranks hold.
                if "X" in kinds and length % shards != 0:
                    continue
                ranks = []
                for coordinate in itertools.product(*(range(size) for size in mesh)):
                    shape, offset = compute(
                        (length,), mesh, list(coordinate), [made[kind] for kind in kinds]
                    )
                    ranks.append(f"{offset[0]}+{shape[0]}")
                yield f"{'x'.join(map(str, mesh))} {kinds} {length} {' '.join(ranks)}"


if __name__ == "__main__":
    print("\n".join(lines()))
