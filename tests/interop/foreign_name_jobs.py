# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_foreign_names.py save: models under other trainers' names."""
import json
import pathlib

import foreign_names
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from checkpoints import load_hf
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor


def save_named(folder, out, names, newer=False, before=""):
    """A Hugging Face model under another trainer's names, its rows shared out."""
    config = json.loads(pathlib.Path(folder, "config.json").read_text())
    tensors = load_hf(folder)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    if names == "titan":
        own = foreign_names.titan(tensors, config, newer)
    elif names == "prime":
        own = foreign_names.prime(tensors)
    else:
        own = foreign_names.tune(tensors, config)
    state = {before + k: distribute_tensor(v, mesh, [Shard(0)]) for k, v in own.items()}
    assert all(isinstance(tensor, DTensor) for tensor in state.values())
    dcp.save(state, checkpoint_id=out)
