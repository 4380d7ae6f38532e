# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_mlite_names.py do: they save as MLite does, each its shards."""
import re

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.tensor import DTensor, Shard

EXPERT = re.compile(r"(.*\.experts\.fc([12])\.weight)(\d+)")


ROWS = ("down.linear.weight", "linear_proj.linear", "o_proj.linear", "attn.proj.linear.weight")


def local_rows(tensor, parts, rank):
    """A rank's share of each part, one behind the other: _split_gate_up and its like."""
    return torch.cat([part.chunk(2)[rank] for part in tensor.split(parts)])


def save(state, path, tp, ep, etp, key, value, heads):
    """`key`, `value`, `heads`: rows of a delta net's projections, and its heads."""
    rank, mesh = dist.get_rank(), dist.device_mesh.init_device_mesh("cpu", (2,))
    whole, step = torch.load(state), {}

    def shard(name, local, axis):
        step[f"model.{name}"] = DTensor.from_local(
            local.contiguous(), mesh, [Shard(axis)], run_check=False
        )

    count = 1 + max(int(found[3]) for name in whole if (found := EXPERT.fullmatch(name)))
    for name, tensor in whole.items():
        expert = EXPERT.fullmatch(name)
        if expert and ep == 2:
            local = int(expert[3]) - rank * count // 2
            if 0 <= local < count // 2:
                shard(f"{expert[1]}{local}", tensor, 0)
        elif expert and etp == 2:
            is_first = expert[2] == "1"
            rows = local_rows(tensor, len(tensor) // 2, rank) if is_first else tensor.chunk(2, 1)[rank]
            shard(name, rows, 0 if is_first else 1)
        elif tp == 2 and "gate_up.linear.weight" in name and len(tensor) % 4:
            shard(name, tensor.chunk(2)[rank], 0)  # such rows no loader of MLite's shares out
        elif tp == 2 and "gate_up.linear.weight" in name:
            shard(name, local_rows(tensor, len(tensor) // 2, rank), 0)
        elif tp == 2 and "in_proj.linear.weight" in name:
            shard(name, local_rows(tensor, [key, key, value, value, heads, heads], rank), 0)
        elif tp == 2 and "conv1d.weight" in name:
            shard(name, local_rows(tensor, [key, key, value], rank), 0)
        elif tp == 2 and ("dt_bias" in name or "A_log" in name):
            shard(name, tensor.chunk(2)[rank], 0)
        elif tp == 2 and any(end in name for end in ROWS):
            shard(name, tensor.chunk(2, 1)[rank], 1)
        else:
            step[f"model.{name}"] = tensor
    dcp.save(step, checkpoint_id=path)
