# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_placing.py do."""
import pathlib

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import RowwiseParallel, parallelize_module

import shardwright
from shardwright.torch import (
    SavePlanner,
    StorageReader,
    StorageWriter,
    checkpoint_dtensor,
    checkpoint_meshes,
    checkpoint_tensors,
    local_from_checkpoint,
)

R = Replicate()


def _sharded(tensor, mesh, axis=0):
    """The parameter that FSDP2 makes of a tensor."""
    module = nn.Module()
    module.weight = nn.Parameter(tensor.clone())
    fully_shard(module, mesh=mesh, shard_placement_fn=lambda _: Shard(axis))
    return module.weight


def _rows(count, columns=3, first=0):
    return torch.arange(count * columns, dtype=torch.float32).reshape(count, columns) + first


def _refused(words, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except (Exception, CheckpointException) as error:
        text = str(error)
        assert all(word in text for word in words), text
        return
    raise AssertionError(f"nothing was raised, expected {words}")


def save(state, path):
    dcp.save(state, storage_writer=StorageWriter(path), planner=SavePlanner())


def tensor_parallel(folder):
    """TP 2 under FSDP 2 with uneven rows: what is saved is the model, and loads whole."""
    dense, experts = checkpoint_meshes("cpu", tp=2)
    tp = dense.get_local_rank("tp")
    whole = {
        "embed.weight": _rows(10),
        "layers.0.mlp.shared_experts.gate_up.weight": _rows(6, 5, 100),
        "layers.0.mlp.shared_experts.down.weight": _rows(7, 4, 200),
        "hc_head.hc_scale": torch.ones(1),
        "layers.0.norm.weight": torch.arange(5.0),
    }
    axes = {"embed.weight": 0, "gate_up.weight": 0, "down.weight": 1}
    parts = {}
    for name, tensor in whole.items():
        axis = next((a for end, a in axes.items() if name.endswith(end)), None)
        parts[name] = tensor if axis is None else tensor.chunk(2, axis)[tp]
    parameters = {name: _sharded(part, dense["dp"]) for name, part in parts.items()}
    state = checkpoint_tensors(parameters, "deepseek_v4", dense, experts)
    save(state, folder + "/tp2")
    with shardwright.open(folder + "/tp2", "pt") as checkpoint:
        found = {name: checkpoint.get_tensor(name) for name in checkpoint.keys()}
    assert found.keys() == whole.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in whole.items()), found
    again = {name: _sharded(torch.zeros_like(part), dense["dp"]) for name, part in parts.items()}
    # torch's own reader gives the same as ours.
    for reader in (StorageReader(folder + "/tp2"), dcp.FileSystemReader(folder + "/tp2")):
        state = checkpoint_tensors(again, "deepseek_v4", dense, experts)
        dcp.load(state, storage_reader=reader)
        for name, parameter in again.items():
            assert torch.equal(parameter.to_local(), parameters[name].to_local()), name
            with torch.no_grad():
                parameter.to_local().zero_()


def both_orders(folder):
    """Rows of two experts' ranks under FSDP 2: in the model's order, or in MLite's if asked."""
    _, experts = checkpoint_meshes("cpu", ep=2)
    ep = experts.get_local_rank("ep")
    parameter = _sharded(_rows(4, first=100 * ep), experts["edp"])
    placements = [R, R, Shard(0), Shard(0)]
    blocks = {}
    for name, fsdp_first in (("inside", False), ("outside", True)):
        made = checkpoint_dtensor(
            parameter, experts, placements, name="w", fsdp_first=fsdp_first
        )
        assert made.shape == (8, 3) and made.stride() == (3, 1)
        save({"w": made}, f"{folder}/{name}")
        with shardwright.open(f"{folder}/{name}", "pt") as checkpoint:
            blocks[name] = checkpoint.get_tensor("w")
    model = torch.cat([_rows(4), _rows(4, first=100)])
    assert torch.equal(blocks["inside"], model)
    order = [0, 1, 4, 5, 2, 3, 6, 7]
    assert torch.equal(blocks["outside"], model[order])
    inside = checkpoint_dtensor(parameter, experts, placements, name="w")
    assert torch.equal(inside.full_tensor(), model)
    uneven = _sharded(_rows(5), experts["edp"])
    _refused(
        ["parameter w", "disagree"],
        checkpoint_dtensor, uneven, experts, placements, name="w", fsdp_first=True,
    )  # fmt: skip


def grouped_experts(folder):
    """All experts of a rank in one tensor: loads at other sizes of EP and EDP as it is."""
    for ep, axis in ((2, 1), (4, 0), (1, 0)):
        _, experts = checkpoint_meshes("cpu", ep=ep)
        place = experts.get_local_rank("ep")
        whole = torch.arange(4 * 6 * 3, dtype=torch.float32).reshape(4, 6, 3)
        own = whole.chunk(ep)[place]
        parameter = _sharded(own if axis else torch.zeros_like(own), experts["edp"], axis)
        state = {
            "w": checkpoint_dtensor(parameter, experts, [R, R, Shard(-3), Shard(1)], name="w")
        }
        if axis:
            save(state, folder + "/grouped")
        else:
            dcp.load(state, storage_reader=StorageReader(folder + "/grouped"))
            assert torch.equal(parameter.full_tensor(), own)


def refusals(folder):
    dense, experts = checkpoint_meshes("cpu", ep=2)
    placements = [R, R, Shard(0), Shard(0)]
    everyone = init_device_mesh("cpu", (4,))
    hybrid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    for mesh in (everyone, hybrid):
        parameter = _sharded(_rows(8), mesh)
        _refused(
            ["SW0412", "parameter layers.0.w", "along no axis"],
            checkpoint_dtensor, parameter, experts, placements, name="layers.0.w",
        )  # fmt: skip
        # Where nothing shards it does not matter how FSDP's ranks lie.
        kept = checkpoint_dtensor(parameter, dense, [R, R, R, Shard(0)], name="w")
        assert kept.device_mesh is parameter.device_mesh and kept.shape == parameter.shape
        assert kept.placements == parameter.placements
    partial = DTensor.from_local(_rows(2), experts["edp"], [Partial()])
    _refused(["parameter p", "P(sum)"], checkpoint_dtensor, partial, experts, placements, name="p")
    parameter = _sharded(_rows(4), experts["edp"])
    _refused(
        ["parameter w", "4"], checkpoint_dtensor, parameter, experts, [R, R, Shard(2), R], name="w"
    )
    _refused(["placements [Replicate]"], checkpoint_dtensor, parameter, experts, [R])
    _refused(["SW0412", "4 ranks"], checkpoint_meshes, "cpu", tp=3)
    # A plain tensor of uneven rows: every rank believes something else.
    rank = dist.get_rank()
    plain = _rows(3 if rank == 3 else 4)
    state = {"layers.1.w": checkpoint_dtensor(plain, everyone, [Shard(0)], name="layers.1.w")}
    path = folder + "/disagree"
    words = ["SW0405", "layers.1.w", "(12, 3) on rank 3", "(16, 3) on rank 0"]
    _refused(words, save, state, path)
    # Of a replicated tensor torch would keep what it saw first.
    _refused(["SW0405", "tensor b", "rank 3"], save, {"b": torch.ones(4 - rank // 3)}, path)
    assert not pathlib.Path(path).exists()


def torch_writes(folder):
    """What torch makes of FSDP2, hybrid sharding and tensor parallelism, by its own writer."""
    world = dist.get_world_size()
    fsdp = init_device_mesh("cpu", (world,))
    hybrid = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("replicate", "shard"))
    both = init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("dp", "tp"))
    three = init_device_mesh("cpu", (2, world // 4, 2), mesh_dim_names=("replicate", "dp", "tp"))
    shapes = {"even": (16, 3), "uneven": (13, 3), "few": (3, 5), "columns": (2, 16)}
    whole = {name: torch.randn(shape, generator=torch.Generator().manual_seed(len(name)))
             for name, shape in shapes.items()}  # fmt: skip
    state, truth = {}, {}
    for name, tensor in whole.items():
        axis = 1 if name == "columns" else 0
        state[f"fsdp.{name}"] = _sharded(tensor, fsdp, axis)
        state[f"hybrid.{name}"] = _sharded(tensor, hybrid, axis)
        for mesh, data in ((both, both["dp"]), (three, three["replicate", "dp"])):
            # Uneven rows under both: torch 2.12 and 2.13 describe them wrongly.
            if name in ("even", "columns"):
                part = distribute_tensor(tensor, mesh["tp"], [Shard(axis)])
                state[f"tp{mesh.ndim}.{name}"] = _sharded(part, data, axis)
        truth.update({key: tensor for key in state if key.endswith("." + name)})
    truth["fsdp.few.exp_avg"] = whole["few"] * 0.5
    state["fsdp.few.exp_avg"] = (state["fsdp.few"] * 0.5).detach()
    dcp.save(state, checkpoint_id=folder + "/torch")
    if dist.get_rank() == 0:
        assert len(truth) == 13
        with shardwright.open(folder + "/torch", "pt") as checkpoint:
            assert sorted(checkpoint.keys()) == sorted(truth)
            for name, tensor in truth.items():
                assert torch.equal(checkpoint.get_tensor(name), tensor), name
        assert shardwright.verify(folder + "/torch")
    # The same through our writer and reader, into shards of another axis.
    save(state, folder + "/ours")
    again = {name: _sharded(torch.zeros_like(tensor), fsdp) for name, tensor in truth.items()}
    dcp.load(again, storage_reader=StorageReader(folder + "/ours"))
    for name, parameter in again.items():
        assert torch.equal(parameter.full_tensor(), truth[name]), name


def wrong_pieces(folder):
    """torch's own rows of an uneven strided shard are refused where they are written."""
    from torch.distributed.tensor.placement_types import _StridedShard

    mesh = init_device_mesh("cpu", (3, 2))
    # TP 2 cuts 7 rows into 4 and 3, FSDP 3 cuts those into 2, 2, 0 and 1, 1, 1.
    rows = (2, 1, 2, 1, 0, 1)[dist.get_rank()]
    strided = DTensor.from_local(
        _rows(rows), mesh, [_StridedShard(0, split_factor=2), Shard(0)],
        shape=torch.Size((7, 3)), stride=(3, 1),
    )  # fmt: skip
    _refused(["SW0405", "tensor w", "the metadata calls"], save, {"w": strided}, folder + "/wrong")


def empty_shards(folder):
    """Ranks without elements take part, and nothing that they are given is put anywhere."""
    _, experts = checkpoint_meshes("cpu", ep=2)
    ep = experts.get_local_rank("ep")
    parameter = _sharded(_rows(1, first=10 * ep), experts["edp"])
    assert parameter.to_local().numel() == (0 if experts.get_local_rank("edp") else 3)
    placements = [R, R, Shard(0), Shard(0)]
    made = checkpoint_dtensor(parameter, experts, placements, name="w")
    assert made.shape == (2, 3) and made.to_local().numel() == parameter.to_local().numel()
    save({"w": made}, folder + "/empty")
    with shardwright.open(folder + "/empty", "pt") as checkpoint:
        assert torch.equal(checkpoint.get_tensor("w"), torch.cat([_rows(1), _rows(1, first=10)]))
    again = _sharded(torch.zeros(1, 3), experts["edp"])
    state = {"w": checkpoint_dtensor(again, experts, placements, name="w")}
    dcp.load(state, storage_reader=dcp.FileSystemReader(folder + "/empty"))
    assert local_from_checkpoint(state["w"], again, name="w") is again
    assert torch.equal(again.to_local(), parameter.to_local())
    if parameter.to_local().numel() == 0:
        local_from_checkpoint(torch.ones(5, 3), again, name="w")
        assert again.to_local().shape == (0, 3)
    else:
        local_from_checkpoint(torch.full((1, 3), 7.0), again, name="w")
        assert torch.equal(again.to_local(), torch.full((1, 3), 7.0))
        _refused(["parameter w", "(5, 3)"], local_from_checkpoint, torch.ones(5, 3), again, name="w")


def fewer_columns_than_ranks(folder):
    """torch calls the piece of a rank without columns (4, 0) where FSDP2 has (0, 0) of it."""
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))

    def build(value):
        model = nn.Sequential(nn.Linear(1, 4))
        for parameter in model.parameters():
            nn.init.constant_(parameter, value)
        parallelize_module(model, mesh["tp"], {"0": RowwiseParallel()})
        return fully_shard(model, mesh=mesh["dp"])

    model, path = build(3.0), pathlib.Path(folder) / "step"
    local = model[0].weight.to_local().shape
    assert (local.numel() == 0) == (dist.get_rank() == 1), local
    dcp.save(model.state_dict(), storage_writer=StorageWriter(path))
    for reader in (dcp.FileSystemReader(path), StorageReader(path), StorageReader(path, locality=True)):
        state = build(0.0).state_dict()
        dcp.load(state, storage_reader=reader)
        locals_of = [value.to_local() for value in state.values()]
        assert all(torch.equal(value, torch.full_like(value, 3.0)) for value in locals_of)


def targets_whose_memory_is_anothers(folder):
    """Views that conjugate or negate what lies in memory."""
    path = pathlib.Path(folder) / "step"
    stored = {
        "conjugate": torch.arange(8.0).to(torch.complex64).reshape(4, 2) * (1 + 2j),
        "negative": torch.arange(6.0, dtype=torch.float64),
    }
    dcp.save(stored, storage_writer=dcp.FileSystemWriter(path))
    for locality in (False, True):
        state = {
            "conjugate": torch.zeros(4, 2, dtype=torch.complex64).conj(),
            "negative": torch.zeros(6, dtype=torch.complex128).conj().imag,
        }
        assert state["conjugate"].is_conj() and state["negative"].is_neg()
        dcp.load(state, storage_reader=StorageReader(path, locality=locality))
        assert all(torch.equal(state[name], value) for name, value in stored.items())
