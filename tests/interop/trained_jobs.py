# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_trained.py do."""
import pathlib

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file
from tiny_moe import FAMILY, Run

from shardwright.torch import (
    SavePlanner,
    StorageReader,
    StorageWriter,
    checkpoint_dtensor,
    checkpoint_tensors,
    local_from_checkpoint,
    placements_for,
)

MOMENTS = ("exp_avg", "exp_avg_sq")


def kinds_of(run):
    """Everything that training changes: the model's parameters, the optimizer's state."""
    return {"model": run.parameters(), **{kind: run.moments(kind) for kind in MOMENTS}}


def state_of(run, merged):
    """Model and optimizer by their names in a checkpoint; `merged` is the rule under test."""
    state = {}
    for kind, tensors in kinds_of(run).items():
        placed = {name: tensor.detach() for name, tensor in tensors.items()}
        if merged:
            placed = checkpoint_tensors(tensors, FAMILY, run.dense, run.experts)
        state.update({run.prefix(kind) + name: tensor for name, tensor in placed.items()})
    state["step"] = next(iter(run.moments("step").values()))
    return state


def locals_of(run):
    """This rank's pieces of everything, in memory of their own."""
    return {
        f"{kind}.{name}": tensor.to_local().detach().clone()
        for kind, tensors in kinds_of(run).items()
        for name, tensor in tensors.items()
    }


def write_whole(run, file, kinds=("model", *MOMENTS)):
    whole = {
        f"{kind}.{name}": tensor
        for kind, tensors in kinds_of(run).items()
        if kind in kinds
        for name, tensor in run.whole(tensors).items()
    }
    save_file(whole, f"{file}.{dist.get_rank()}.safetensors")


def save(run, path, merged):
    writer = StorageWriter(path)
    dcp.save(state_of(run, merged), storage_writer=writer, planner=SavePlanner())


def save_as_mlite(run, path):
    """The model by the rule; what the rank's optimizer and generators have in files of its own."""
    names = run.parameters()
    state = checkpoint_tensors(names, FAMILY, run.dense, run.experts)
    state = {run.prefix("model") + name: tensor for name, tensor in state.items()}
    dcp.save({**state, "step": 2}, storage_writer=StorageWriter(path), planner=SavePlanner())
    rank = dist.get_rank()
    torch.save(run.optimizer.state_dict(), path / f"optimizer_rank_{rank}.pt")
    torch.save(torch.get_rng_state(), path / f"rng_state_rank_{rank:05d}.pt")
    dist.barrier()


def train(folder, **sizes):
    """Four steps without a break. After two: checkpoints with the rule and without it, as MLite
    has them, the truth."""
    folder = pathlib.Path(folder)
    run = Run(seed=1, **sizes)
    for step in range(2):
        run.step(step)
    save(run, folder / "merged", True)
    save(run, folder / "unmerged", False)
    save_as_mlite(run, folder / "mlite")
    write_whole(run, folder / "truth")
    for step in range(2, 4):
        run.step(step)
    torch.save(locals_of(run), folder / f"final.{dist.get_rank()}.pt")


def resume(folder, name, merged, **sizes):
    """Two steps more from a checkpoint, in a model that began otherwise; writes the difference."""
    folder = pathlib.Path(folder)
    run = Run(seed=2, **sizes)
    state = state_of(run, merged)
    dcp.load(state, storage_reader=StorageReader(folder / name))
    for kind, tensors in kinds_of(run).items():
        for key, tensor in tensors.items():
            local_from_checkpoint(state[run.prefix(kind) + key], tensor, name=key)
    for step in run.moments("step").values():
        step.copy_(state["step"])
    go_on(run, folder, name)


def go_on(run, folder, name):
    for step in range(2, 4):
        run.step(step)
    expected = torch.load(folder / f"final.{dist.get_rank()}.pt")
    found = locals_of(run)
    assert {k: t.shape for k, t in found.items()} == {k: t.shape for k, t in expected.items()}
    deltas = [(found[k] - t).abs().max().item() for k, t in expected.items() if t.numel()]
    (folder / f"{name}.{dist.get_rank()}.delta").write_text(str(max(deltas)))


def load_elsewhere(folder, name, **sizes):
    """Model and optimizer at other sizes, by the names that EP ranks give their experts."""
    run = Run(seed=3, **sizes)
    state = state_of(run, True)
    dcp.load(state, storage_reader=StorageReader(pathlib.Path(folder) / name))
    write_whole(run, pathlib.Path(folder) / "elsewhere")


def resume_with_rank_files(folder, name, **sizes):
    """Two steps more from a checkpoint that experts' numbers are global in, with the optimizer in
    files of the ranks."""
    folder, rank = pathlib.Path(folder), dist.get_rank()
    run = Run(seed=2, **sizes)
    state = global_state(run)
    dcp.load(state, storage_reader=StorageReader(folder / name))
    for key, tensor in run.parameters().items():
        local_from_checkpoint(state["model." + run.global_name(key)], tensor, name=key)
    kept = torch.load(folder / name / f"optimizer_rank_{rank}.pt", weights_only=False)
    run.optimizer.load_state_dict(kept)
    torch.set_rng_state(torch.load(folder / name / f"rng_state_rank_{rank:05d}.pt"))
    go_on(run, folder, name)


def load_global(folder, name, **sizes):
    """The model at other sizes, experts by their global numbers: none is another rank's too."""
    run = Run(seed=3, **sizes)
    dcp.load(global_state(run), storage_reader=StorageReader(pathlib.Path(folder) / name))
    write_whole(run, pathlib.Path(folder) / "global", kinds=("model",))


def global_state(run):
    state = {}
    for key, tensor in run.parameters().items():
        is_expert, placements = placements_for(key, FAMILY)
        mesh = run.dense
        if is_expert:
            mesh, placements = run.experts["edp", "etp"], (placements[1], placements[3])
        state["model." + run.global_name(key)] = checkpoint_dtensor(
            tensor, mesh, placements, name=key
        )
    return state
