# SPDX-License-Identifier: Apache-2.0
"""Master weights of Megatron's precision-aware optimizer, which Transformer Engine keeps as what the
bfloat16 weights lack of them (store_param_remainders)."""
import pickle
import shutil

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

import checkpoints
from test_legacy_optimizer import trained

MASTER = "optimizer.state.param."


def split(master):
    """As the kernel of FusedAdam splits a float32 number: upper half rounded, a tie away from zero."""
    bits = master.view(torch.int32)
    upper = ((bits.long() + 0x8000) >> 16).to(torch.int16).view(torch.bfloat16)
    return upper, (bits & 0xFFFF).to(torch.int16)


def rewritten(source, target, change, **arguments):
    """The same checkpoint with other tensors and arguments."""
    folder = checkpoints.iteration_folder(source)
    state = {}
    _load_state_dict(state, dcp.FileSystemReader(folder), planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    shutil.copytree(source, target)
    folder = checkpoints.iteration_folder(target)
    for file in folder.glob("*.distcp"):
        file.unlink()
    change(state)
    dcp.save(state, checkpoint_id=folder, no_dist=True)
    common = torch.load(folder / "common.pt", weights_only=False)
    vars(common["args"]).update(arguments)
    torch.save(common, folder / "common.pt")


@pytest.fixture(scope="module")
def run(megatron, tmp_path_factory):
    """A trained model as torch_dist, and its master weights."""
    root = tmp_path_factory.mktemp("run")
    trained(megatron, "llama3", "te", root / "in")
    return root


@pytest.fixture(scope="module")
def dist(shardwright, run):
    shardwright("convert", run / "in", run / "dist", "--to", "torch_dist", "--optimizer", "keep")
    return run / "dist"


@pytest.mark.parametrize("form", ["int16", "float32", "untrained"])
def test_remainders_become_master_weights(shardwright, dist, tmp_path, form):
    """int16 as the optimizer has them, or in the float32 buffers that Megatron copies them into."""
    truth = {}

    def change(state):
        for name in [name for name in state if name.startswith(MASTER)]:
            if form == "untrained":  # weights that are all of their master weights
                state[name] = state[name].bfloat16().float()
            truth[name] = state[name].clone()
            weight, remainder = split(state[name])
            state[name[len(MASTER) :]] = weight
            state[name] = remainder if form == "int16" else remainder.float()

    source = tmp_path / "run"
    rewritten(dist, source, change, use_precision_aware_optimizer=True)
    assert len(truth) > 5
    report = shardwright("verify", source).stdout
    assert "PROVEN" in report and "what its weights lack" in report and "SW0318" not in report
    keep = ("--optimizer", "keep")
    for to, flags in (("torch_dist", ("--tp", 2)), ("legacy", ("--tp", 2, "--pp", 2)), ("fsdp_dtensor", ())):
        told = shardwright("convert", source, tmp_path / to, "--to", to, *flags, *keep).stderr
        assert "written as the float32 numbers that both make" in told
        shardwright("convert", tmp_path / to, tmp_path / "back", "--to", "torch_dist", *keep)
        made = checkpoints.load_dcp(tmp_path / "back")
        checkpoints.assert_same({name: made[name] for name in truth}, truth)
        shutil.rmtree(tmp_path / "back")
    # However they are stored, they are the same numbers, and others are others.
    assert "EQUAL" in shardwright("diff", source, tmp_path / "torch_dist").stdout
    shardwright("hash", source, "--manifest", tmp_path / "manifest")
    shardwright("verify", tmp_path / "torch_dist", "--against", tmp_path / "manifest")
    name = MASTER + "decoder.final_layernorm.weight"
    rewritten(tmp_path / "torch_dist", tmp_path / "other", lambda state: state[name].view(torch.int32)[3].add_(1))
    done = shardwright("diff", source, tmp_path / "other", expect=1)
    assert "differing elements 1" in done.stdout and name in done.stdout
    # A target that keeps the source's names keeps what it holds.
    shardwright("convert", source, tmp_path / "dcp", "--to", "dcp")
    kept = checkpoints.load_dcp(tmp_path / "dcp")
    assert all(kept[name].dtype == (torch.int16 if form == "int16" else torch.float32) for name in truth)
    # Half of a number is none.
    half = ("--exclude", "decoder.final_layernorm.weight", "--to", "torch_dist")
    told = shardwright("convert", source, tmp_path / "out", *half, *keep, expect=2).stderr
    assert "the other half" in told and not (tmp_path / "out").exists()


def test_a_value_that_is_no_remainder(shardwright, dist, tmp_path):
    def change(state):
        names = [name for name in state if name.startswith(MASTER)]
        for name in names:
            state[name[len(MASTER) :]], remainder = split(state[name])
            state[name] = remainder.float()
        state[min(names, key=lambda name: state[name].numel())].view(-1)[3] = 0.25

    rewritten(dist, tmp_path / "run", change, use_precision_aware_optimizer=True)
    flags = ("--to", "legacy", "--optimizer", "keep")
    told = shardwright("convert", tmp_path / "run", tmp_path / "out", *flags, expect=2).stderr
    assert "SW0318" in told and "no remainder" in told
    assert not (tmp_path / "out").exists()


def test_what_becomes_the_model_must_be_the_model(shardwright, dist, tmp_path):
    """Megatron-FSDP has no weights beside its master weights."""

    def change(state):
        state["decoder.final_layernorm.weight"] += 1

    rewritten(dist, tmp_path / "run", change)
    keep = ("--optimizer", "keep")
    flags = ("--to", "fsdp_dtensor", *keep)
    told = shardwright("convert", tmp_path / "run", tmp_path / "out", *flags, expect=2).stderr
    assert "SW0318" in told and "decoder.final_layernorm.weight" in told
    # Elsewhere both are carried as they are; and a run whose weights are not its masters is no fault.
    shardwright("convert", tmp_path / "run", tmp_path / "same", "--to", "torch_dist", *keep)
    rewritten(dist, tmp_path / "half", change, main_params_dtype=torch.float16)
    told = shardwright("convert", tmp_path / "half", tmp_path / "out", *flags).stderr
    assert "they are not compared" in told


@pytest.mark.parametrize("form", ["torch_dist", "legacy"])
def test_classes_in_groups_are_left_out(shardwright, dist, tmp_path, form):
    """An optimizer with parts on the CPU (--optimizer-cpu-offload) has the classes of its parts there, and Megatron
    loads these files with weights_only."""
    from megatron.core.safe_globals import register_safe_globals

    register_safe_globals()
    shutil.copytree(dist, tmp_path / "in")
    file = checkpoints.iteration_folder(tmp_path / "in") / "common.pt"
    common = torch.load(file, weights_only=True)
    for group in common["optimizer"]["optimizer"]["param_groups"]:
        group["cpu_optimizer_cls"] = torch.optim.AdamW
    torch.save(common, file)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(file, weights_only=True)
    done = shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", form, "--optimizer", "keep")
    assert "without cpu_optimizer_cls" in done.stdout + done.stderr
    (file,) = checkpoints.iteration_folder(tmp_path / "out").rglob("*.pt")
    written = torch.load(file, weights_only=True)["optimizer"]["optimizer"]["param_groups"]
    kept = common["optimizer"]["optimizer"]["param_groups"][0].keys() - {"cpu_optimizer_cls", "step"}
    assert kept <= written[0].keys() and "cpu_optimizer_cls" not in written[0]
