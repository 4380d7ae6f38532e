# SPDX-License-Identifier: Apache-2.0
"""DTensors as checkpoints have them, on real meshes of four ranks."""
import itertools
import pathlib

import pytest
import torch
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset as compute

import shardwright
import shardwright.torch as sw
from shardwright import _core
from shardwright.torch import _placing

JOBS = [
    ("tensor_parallel", 4), ("both_orders", 4), ("grouped_experts", 4), ("refusals", 4),
    ("wrong_pieces", 6), ("empty_shards", 4), ("torch_writes", 4), ("torch_writes", 8),
    ("fewer_columns_than_ranks", 2), ("targets_whose_memory_is_anothers", 2),
]  # fmt: skip


@pytest.mark.parametrize("job,world", JOBS)
def test_job(ranks, tmp_path, job, world):
    ranks("placing_jobs", job, world, folder=tmp_path)


def test_families_rules_by_name():
    dense = [Replicate()] * 3
    assert sw.placements_for("hc_head.hc_fn", "deepseek_v4") == (False, (*dense, Replicate()))
    assert sw.placements_for("head.weight", "deepseek_v4") == (False, (*dense, Shard(0)))
    expert = sw.placements_for("layers.3.mlp.experts.fc2.weight1", "qwen3_moe")
    assert expert.is_expert and expert.placements == (*dense[:2], Shard(0), Shard(1))
    with pytest.raises(shardwright.ModelError, match="SW0400.*mixtral.*there are for deepseek_v4"):
        sw.placements_for("head.weight", "mixtral")


def test_rules_are_read_once_for_all_names(monkeypatch):
    read, rules = [], _core.PlacementRules
    monkeypatch.setattr(_core, "PlacementRules", lambda name: read.append(name) or rules(name))
    monkeypatch.setattr(_placing, "checkpoint_dtensor", lambda tensor, *place, **_: place)
    names = ["layers.3.mlp.experts.fc2.weight1", "head.weight"]
    state = sw.checkpoint_tensors(dict.fromkeys(names), "qwen3_moe", "dense", "experts")
    assert read == ["qwen3_moe"]
    assert [place[0] for place in state.values()] == ["experts", "dense"]
    assert [place[1] for place in state.values()] == [
        sw.placements_for(name, "qwen3_moe").placements for name in names
    ]


def test_torch_gives_merged_tensors_the_boxes_that_ranks_hold():
    sizes = [size for size in itertools.product(range(1, 5), (1, 2), (1, 3)) if size[1] * size[2] > 1]
    for fsdp, ep, etp in sizes:
        mesh = [1, fsdp, ep, etp]
        for rows, rank in itertools.product(range(1, 10), range(fsdp * ep * etp)):
            place = rank // (ep * etp), rank // etp % ep, rank % etp
            line = [r * ep * etp + rank % (ep * etp) for r in range(fsdp)]
            parts = torch.arange(rows).chunk(fsdp)
            held = parts[place[0]].tolist() if place[0] < len(parts) else []
            placed = _core.place(
                "w", (mesh, list(range(fsdp * ep * etp))), [(-1, 1), (-1, 1), (0, 1), (0, 1)], False,
                (([fsdp], line), [(0, 1)], [rows]), [len(held)], rank,
            )  # fmt: skip
            pairs, shape, _ = placed
            size, offset = compute(shape, mesh, [0, *place], _placing._to_placements(pairs))
            first = (place[1] * etp + place[2]) * rows + held[0] if held else shape[0]
            assert (size[0], offset[0]) == (len(held), first), (mesh, rows, rank)


def test_the_module_is_typed():
    stub = (pathlib.Path(shardwright.__file__).parent / "torch" / "__init__.pyi").read_text()
    for name in sw.__all__:
        assert f"def {name}(" in stub or f"class {name}" in stub, name
