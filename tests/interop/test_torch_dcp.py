# SPDX-License-Identifier: Apache-2.0
"""Models that torch's FSDP2 shards, as Megatron-LM saves them with --ckpt-format torch_dcp."""
import json

import checkpoints
import pytest
import torch
from newer_cases import GATED, GROUPED, MOE
from newer_truth import STATES, weight_of

FSDP2 = " --use-torch-fsdp2 --ckpt-format torch_dcp"
CASES = {
    "dense": GROUPED,
    "local": GROUPED + " --transformer-impl local",
    "experts": GROUPED + MOE,
    "delta": GATED,
}


@pytest.fixture(scope="module")
def saved(newer_ranks, tmp_path_factory):
    """The folder of a case, saved once."""
    root = tmp_path_factory.mktemp("saved")

    def folder_of(name):
        if not (root / name).exists():
            newer_ranks("torch_dcp_jobs", "save", 2, words=FSDP2 + CASES[name], folder=str(root / name))
        return root / name

    return folder_of


def assert_true(tensors, weight_kind=None):
    """Every tensor has the values that its name in torch_dist asks for, and its states."""
    weights = {name: tensor for name, tensor in tensors.items() if not name.startswith("optimizer.")}
    wrong = []
    for name, tensor in weights.items():
        weight = weight_of(name, tensor.shape)
        for kind, function in STATES.items():
            states = tensors.get(f"optimizer.state.{kind}.{name}")
            is_right = states is not None and checkpoints.same_bits(states, function(weight))
            wrong += [] if is_right else [f"{kind} of {name}"]
        expected = STATES[weight_kind](weight) if weight_kind else weight
        wrong += [] if checkpoints.same_bits(tensor, expected) else [name]
    assert not wrong and len(weights) * 4 == len(tensors), wrong


@pytest.mark.parametrize("name", CASES)
def test_becomes_torch_dist_with_its_optimizer(shardwright, saved, tmp_path, name):
    source = saved(name)
    shown = json.loads(shardwright("diagnose", source, "--json").stdout)
    assert shown["format"] == "torch_dcp" and shown["sizes"]["tp"] == 1
    assert "all 4 layers are there" in shardwright("verify", source).stdout
    done = shardwright("convert", source, tmp_path / "dist", "--to", "torch_dist", "--tp", 2)
    assert "every master weight is compared" in done.stdout + done.stderr
    shardwright("verify", tmp_path / "dist")
    assert_true(checkpoints.load_dcp(tmp_path / "dist"))
    assert "EQUAL" in shardwright("diff", source, tmp_path / "dist").stdout
    shardwright("convert", source, tmp_path / "ranks", "--to", "legacy", "--pp", 2)
    assert "EQUAL" in shardwright("diff", tmp_path / "dist", tmp_path / "ranks").stdout
    shardwright("convert", source, tmp_path / "fsdp", "--to", "fsdp_dtensor", "--shards", 2)
    shardwright("convert", tmp_path / "fsdp", tmp_path / "back", "--to", "torch_dist")
    assert_true(checkpoints.load_dcp(tmp_path / "back"), "param")


def test_settings_and_steps_go_along(shardwright, saved, tmp_path):
    shardwright("convert", saved("dense"), tmp_path / "dist", "--to", "torch_dist")
    common = torch.load(tmp_path / "dist" / "iter_0000010" / "common.pt", weights_only=False)
    groups = common["optimizer"]["optimizer"]["param_groups"]
    assert sorted(group["wd_mult"] for group in groups) == [0.0, 1.0]
    assert {group["step"] for group in groups} == {10}
    assert common["iteration"] == 10 and common["args"].use_torch_fsdp2
    assert common["opt_param_scheduler"] == {"num_steps": 10}


def test_keeps_its_names_as_dcp(shardwright, saved, tmp_path):
    shardwright("convert", saved("dense"), tmp_path / "out", "--to", "dcp", "--shards", 3)
    before, after = (checkpoints.load_dcp(folder) for folder in (saved("dense"), tmp_path / "out"))
    assert before.keys() == after.keys()
    assert all(checkpoints.same_bits(before[name], after[name]) for name in before)


def test_states_by_names(shardwright, newer_ranks, tmp_path):
    """Of a second version of Megatron-FSDP, whose weights are the main weights."""
    newer_ranks("torch_dcp_jobs", "save_by_names", 2, words=FSDP2 + GROUPED, folder=str(tmp_path / "run"))
    shardwright("verify", tmp_path / "run")
    shardwright("convert", tmp_path / "run", tmp_path / "dist", "--to", "torch_dist")
    assert_true(checkpoints.load_dcp(tmp_path / "dist"), "param")


def test_master_weights_of_others(shardwright, saved, newer_ranks, tmp_path):
    """Every command looks whether each is its weight, rounded: rules say whose they are."""
    assert "every master weight, rounded" in shardwright("verify", saved("dense")).stdout
    run = tmp_path / "run"
    newer_ranks("torch_dcp_jobs", "save_exchanged", 2, words=FSDP2 + GROUPED, folder=str(run))
    weight = "tensor decoder.layers.0.self_attention.linear_proj.weight: found a master weight"
    found = json.loads(shardwright("verify", run, "--json", expect=1).stdout)["findings"]
    assert [each["code"] for each in found] == ["SW0318"] * 2 and weight in found[0]["message"]
    assert weight in shardwright("convert", run, tmp_path / "out", "--to", "torch_dist", expect=2).stderr
    assert not (tmp_path / "out").exists()
    compared = shardwright("diff", run, saved("dense"), expect=1)
    assert weight in compared.stderr and "NOT ALL COMPARED" in compared.stdout
    assert weight in shardwright("hash", run).stderr
    shardwright("convert", run, tmp_path / "weights", "--to", "torch_dist", "--optimizer", "drop")
    assert "EQUAL" in shardwright("diff", tmp_path / "weights", saved("dense")).stdout


def test_one_group_of_parameters(shardwright, newer_ranks, tmp_path):
    run = tmp_path / "run"
    newer_ranks("torch_dcp_jobs", "save_one_group", 2, words=FSDP2 + GROUPED, folder=str(run))
    assert "every master weight, rounded" in shardwright("verify", run).stdout
    done = shardwright("convert", run, tmp_path / "dist", "--to", "torch_dist")
    assert "no parameter group" not in done.stdout + done.stderr
    assert_true(checkpoints.load_dcp(tmp_path / "dist"))
