# SPDX-License-Identifier: Apache-2.0
"""A model of safetensors files as several ranks save it by torch's DCP: each has rows of each tensor.

make_ranks.py HF OUT RANKS
"""
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as processes
from safetensors import safe_open
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
from torch.distributed.tensor import Shard, distribute_tensor


def save(rank, source, target, ranks, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    mesh = dist.init_device_mesh("cpu", (ranks,))
    state = {}
    for path in sorted(pathlib.Path(source).glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():
                state[name] = distribute_tensor(file.get_tensor(name), mesh, [Shard(0)])
    writer = HuggingFaceStorageWriter(target, save_distributed=True)
    dcp.save(state, storage_writer=writer)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    hf, out, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    processes.spawn(save, (hf, out, count, pathlib.Path(out).absolute().with_suffix(".store")), count)
    pathlib.Path(out).absolute().with_suffix(".store").unlink(missing_ok=True)
