# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint reads any checkpoint, and writes one in a single step.

    python examples/torch_dcp.py [FOLDER]

Needs torch. Here is one process; in a job every rank does the same, and each reads only its shards.
"""
import pathlib
import sys
import tempfile

import tiny_models
import torch
import torch.distributed.checkpoint as dcp

import shardwright
from shardwright.torch import StorageReader, StorageWriter


def main(folder):
    original = tiny_models.write_llama(folder / "hf")
    run = folder / "run"
    shardwright.convert(original, run, to="torch_dist", tp=2, pp=2)

    # A model with Hugging Face's names takes its weights straight from the Megatron run.
    with shardwright.open(run, names="hf", framework="pt") as ckpt:
        state = {name: torch.zeros(ckpt.shape_of(name)) for name in ckpt}
    dcp.load(state, storage_reader=StorageReader(run, names="hf"), no_dist=True)
    with shardwright.open(original, framework="pt") as ckpt:
        assert all(torch.equal(state[name], tensor) for name, tensor in ckpt.items())
    print(f"{len(state)} tensors loaded from {run.name}, equal to the original's")

    # The target appears when it is complete, or not at all.
    dcp.save(state, storage_writer=StorageWriter(folder / "step_1"), no_dist=True)
    difference = shardwright.diff(original, folder / "step_1", own_names=True)
    print("saved and equal:", difference.equal)
    assert difference


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(pathlib.Path(temporary))
