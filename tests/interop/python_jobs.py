# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_python.py do."""
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from shardwright.torch import StorageReader, StorageWriter


class Unwritable:
    def __reduce__(self):
        raise RuntimeError("cannot be written")


def _rows():
    whole = torch.arange(7 * 3, dtype=torch.float32).reshape(7, 3)
    mesh = init_device_mesh("cpu", (2,))
    return whole, mesh, distribute_tensor(whole, mesh, [Shard(0)])


def save_and_load(path):
    whole, mesh, rows = _rows()
    dcp.save({"w": rows}, storage_writer=StorageWriter(path))
    columns = {"w": distribute_tensor(torch.zeros(7, 3), mesh, [Shard(1)])}
    dcp.load(columns, storage_reader=StorageReader(path))
    assert torch.equal(columns["w"].full_tensor(), whole)


def save_what_a_rank_cannot_write(path):
    """Every rank hears of it."""
    _, _, rows = _rows()
    state = {"w": rows, **({"x": Unwritable()} if dist.get_rank() == 1 else {})}
    try:
        dcp.save(state, storage_writer=StorageWriter(path))
    except CheckpointException as error:
        assert "cannot be written" in str(error)
        return
    raise AssertionError("nothing was raised")
