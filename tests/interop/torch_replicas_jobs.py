# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_torch_replicas.py do: DCP saves and loads of copies with names."""
import json
import pathlib

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from together_jobs import equal
from torch.distributed.checkpoint import DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from shardwright.torch import SavePlanner, StorageReader, StorageWriter


def mesh_of(tp):
    world = dist.get_world_size()
    return init_device_mesh("cpu", (world // tp, tp), mesh_dim_names=("dp", "tp"))


def state_of(mesh, drift=0.0):
    """Tensors of every kind of placement; `drift` times its place is what a tensor rank's copies
    are off."""
    place = mesh["tp"].get_local_rank()
    whole = torch.arange(96, dtype=torch.float32).reshape(12, 8)
    placements = {
        "norm": (Replicate(), Replicate()),
        "norm_of_fsdp": (Shard(0), Replicate()),
        "column": (Replicate(), Shard(0)),
        "row": (Shard(0), Shard(1)),
    }
    model = {}
    for number, (name, placed) in enumerate(placements.items()):
        from_, mesh_ = whole + 100 * number, mesh
        local = from_ + drift * place if name.startswith("norm") else from_
        model[name] = _dtensor(local, mesh_, placed)
    state = {
        "model": model,
        "plain": torch.arange(5) + 7,
        "scalar": torch.tensor(3.5 + drift * place),
        "step": 40,
        "nested": [{"moment": whole.double() * 3}, {"lr": 0.25}],
    }
    if dist.get_world_size() == 4:  # stages, as it were, and what one rank alone has
        stage = dist.get_rank() // 2
        state[f"stage.{stage}"] = torch.full((3,), stage + drift * place)
        if dist.get_rank() == 3:
            state["lone"] = torch.arange(4)
    return state


def _dtensor(whole, mesh, placements):
    local = whole
    for axis, placement in enumerate(placements):
        if isinstance(placement, Shard):
            pieces = local.chunk(mesh.size(axis), placement.dim)
            local = pieces[mesh.get_local_rank(axis)]
    return DTensor.from_local(
        local.clone(), mesh, placements, run_check=False, shape=whole.shape, stride=(8, 1)
    )


def zeroed(state):
    if isinstance(state, dict):
        return {key: zeroed(value) for key, value in state.items()}
    if isinstance(state, list):
        return [zeroed(value) for value in state]
    return torch.zeros_like(state) if isinstance(state, torch.Tensor) else type(state)(0)


def save(path, axis="tp", drift=0.0):
    mesh = mesh_of(2)
    group = mesh[axis] if axis else None
    writer = StorageWriter(path, replicas=group)
    dcp.save(state_of(mesh, drift), storage_writer=writer, planner=SavePlanner())


def save_async(path, drift):
    """The job goes on, and changes everything, while the save that it began is written."""
    mesh = mesh_of(2)
    state = state_of(mesh, drift)
    writer = StorageWriter(path, replicas=mesh["tp"])
    saving = dcp.async_save(state, storage_writer=writer, planner=SavePlanner())
    for tensor in (*state["model"].values(), state["plain"], state["scalar"]):
        tensor.zero_()
    for _ in range(20):
        dist.all_reduce(torch.ones(3), group=mesh["tp"].get_group())
    saving.result()
    dist.barrier()


def save_named(path, tp, names):
    """Plain tensors of these names."""
    writer = StorageWriter(path, replicas=mesh_of(tp)["tp"])
    dcp.save({name: torch.ones(3) for name in names}, storage_writer=writer)


def load(path, root=None, tp=2, drift=0.0, named=True, stock=False, **options):
    """Loads over zeros and compares; writes this rank's report."""
    mesh = mesh_of(tp)
    truth = state_of(mesh, drift)
    state = zeroed(truth)
    assert not equal(state, truth)
    if stock:
        reader = FileSystemReader(path)
    else:
        # A process group does as well as the mesh does.
        named_by = mesh["tp"] if dist.get_world_size() == 4 else mesh["tp"].get_group()
        reader = StorageReader(path, replicas=named_by if named else None, **options)
    dcp.load(state, storage_reader=reader)
    assert equal(state, truth), (state, truth)
    if root is not None:
        told = json.dumps(reader.last_load._asdict())
        pathlib.Path(root, f"report.{dist.get_rank()}").write_text(told)


def load_each_way(path, tp):
    for named in (True, False):
        for locality in (True, False):
            load(path, tp=tp, named=named, locality=locality)


def refused(path):
    """Saves and loads that are told something impossible."""
    mesh = mesh_of(2)
    _refuses(lambda: StorageWriter(path, replicas=mesh), "mesh of 2 dimensions")
    _refuses(lambda: StorageReader(path, replicas=mesh), "mesh of 2 dimensions")
    _refuses(lambda: StorageReader(path, replicas=mesh["tp"], names="hf"), "leave replicas out")
    first, others = dist.new_group([0, 1]), dist.new_group([1, 2, 3])
    if dist.get_rank() > 1:
        _refuses(lambda: StorageWriter(path, replicas=first), "one with this rank")
    # Two of four ranks are told one group, the others another that has one of those.
    own = first if dist.get_rank() < 2 else others
    _save_refused(path, own, None, "is told another")
    for silent in (0, 3):
        own = None if dist.get_rank() == silent else mesh["tp"]
        _save_refused(path, own, None, f"rank {silent} none")
    cached = DefaultSavePlanner(enable_plan_caching=True)
    _save_refused(path, mesh["tp"], cached, "enable_plan_caching")
    marked = {"norm": torch.ones(2), "norm.__tp_replica_0": torch.ones(2)}
    _save_refused(path, mesh["tp"], None, "SW0415", marked)


def _save_refused(path, group, planner, text, state=None):
    writer = StorageWriter(path, replicas=group)
    state = state or state_of(mesh_of(2))
    _refuses(lambda: dcp.save(state, storage_writer=writer, planner=planner), text)
    dist.barrier()
    assert not pathlib.Path(path).exists()
    assert not list(pathlib.Path(path).parent.glob(".*partial"))
    dist.barrier()  # before the next one makes that folder


def _refuses(call, text):
    try:
        call()
    except BaseException as error:  # as those of dcp are
        assert text in str(error), error
    else:
        raise AssertionError(f"not refused: {text}")
