# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_mlite_names.py do: they save as MLite does, each its shards."""
import re

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.tensor import DTensor, Shard

EXPERT = re.compile(r"(.*\.experts\.fc([12])\.weight)(\d+)")


def save(state, path, tp, ep):
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
        elif tp == 2 and "gate_up.linear.weight" in name:
            gate, up = tensor.chunk(2)
            shard(name, torch.cat([gate.chunk(2)[rank], up.chunk(2)[rank]]), 0)
        elif tp == 2 and ("down.linear.weight" in name or "linear_proj.linear" in name):
            shard(name, tensor.chunk(2, 1)[rank], 1)
        else:
            step[f"model.{name}"] = tensor
    dcp.save(step, checkpoint_id=path)
