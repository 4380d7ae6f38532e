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
    checkpoint_tensors,
    local_from_checkpoint,
)

STATES = ("exp_avg", "exp_avg_sq")


def state_of(run, merged, **order):
    """Model and optimizer by their names in a checkpoint; `merged` is the rule under test."""
    state = {}
    for what, tensors in [("model", run.parameters()), *((s, run.moments(s)) for s in STATES)]:
        placed = {name: tensor.detach() for name, tensor in tensors.items()}
        if merged:
            placed = checkpoint_tensors(tensors, FAMILY, run.dense, run.experts, **order)
        state.update({run.prefix(what) + name: tensor for name, tensor in placed.items()})
    state["step"] = next(iter(run.moments("step").values()))
    return state


def locals_of(run):
    """This rank's pieces of everything, in memory of their own."""
    pieces = {}
    for what, tensors in [("model", run.parameters()), *((s, run.moments(s)) for s in STATES)]:
        for name, tensor in tensors.items():
            pieces[f"{what}.{name}"] = tensor.to_local().detach().clone()
    return pieces


def save(run, path, merged, **order):
    state = state_of(run, merged, **order)
    dcp.save(state, storage_writer=StorageWriter(path), planner=SavePlanner())


def train(folder, **sizes):
    """Four steps without a break. After two: checkpoints with the rule, without it and in MLite's
    order, and the truth."""
    folder = pathlib.Path(folder)
    run = Run(seed=1, **sizes)
    for step in range(2):
        run.step(step)
    save(run, folder / "merged", True)
    save(run, folder / "unmerged", False)
    whole = run.whole()
    if whole:
        save_file(whole, folder / f"whole_{dist.get_rank()}.safetensors")
    for step in range(2, 4):
        run.step(step)
    torch.save(locals_of(run), folder / f"final_{dist.get_rank()}.pt")


def resume(folder, name, merged, **sizes):
    """Two steps more from a checkpoint, in a model that began otherwise; writes the difference."""
    folder = pathlib.Path(folder)
    run = Run(seed=2, **sizes)
    state = state_of(run, merged)
    dcp.load(state, storage_reader=StorageReader(folder / name))
    for what, tensors in [("model", run.parameters()), *((s, run.moments(s)) for s in STATES)]:
        for key, tensor in tensors.items():
            local_from_checkpoint(state[run.prefix(what) + key], tensor, name=key)
    for step in run.moments("step").values():
        step.copy_(state["step"])
    for step in range(2, 4):
        run.step(step)
    expected = torch.load(folder / f"final_{dist.get_rank()}.pt")
    found = locals_of(run)
    assert found.keys() == expected.keys()
    assert {k: t.shape for k, t in found.items()} == {k: t.shape for k, t in expected.items()}
    deltas = [(found[k] - t).abs().max().item() for k, t in expected.items() if t.numel()]
    (folder / f"{name}_{dist.get_rank()}.delta").write_text(str(max(deltas)))
