# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that Megatron-LM writes with a later Megatron-Core than the other tests have."""
import re

import pytest
import torch

import checkpoints
from newer_cases import (
    APART, BUCKETS, CASES, FROZEN, IDLE_HEADS, IDLE_LOADS, LOADS, PLAIN, PLAIN_LOADS, RANK_FILES, STAGE_LOADS, STAGES,
)
from newer_truth import STATES, weight_of


@pytest.fixture(scope="module")
def saved(newer_ranks, tmp_path_factory):
    root = tmp_path_factory.mktemp("saved")
    newer_ranks("newer_jobs", "save", 2, root=root)
    return root


def assert_true(tensors, frozen=None):
    """Every weight is there with its states, unless it is frozen, and all have the values that their names ask for."""
    wrong = []
    weights = {name for name in tensors if not name.startswith("optimizer.")}
    for name, tensor in tensors.items():
        expected = None
        if name in weights:
            expected = weight_of(name, tensor.shape).to(tensor.dtype)
        else:
            kind, _, weight = name.removeprefix("optimizer.state.").partition(".")
            expected = STATES[kind](weight_of(weight, tensor.shape))
        if not checkpoints.same_bits(tensor, expected):
            wrong.append(name)
    assert not wrong, wrong
    trained = {name for name in weights if not name.endswith("expert_bias")}
    if frozen:
        trained = {name for name in trained if not re.search(frozen, name)}
    states = {f"optimizer.state.{kind}.{name}" for kind in STATES for name in trained}
    assert weights and tensors.keys() - weights == states


def test_prediction_layers_in_a_stage_of_their_own(shardwright, newer_ranks, tmp_path):
    newer_ranks("newer_jobs", "save", 4, root=tmp_path, cases=dict(apart=APART))
    shardwright("verify", tmp_path / "apart")
    shardwright("convert", tmp_path / "apart", tmp_path / "out", "--to", "torch_dist", "--tp", 2)
    assert_true(checkpoints.load_dcp(tmp_path / "out"))
    # Whoever goes on with the run's own flags finds them in that stage's file.
    shardwright("convert", tmp_path / "apart", tmp_path / "loaded" / "apart", "--to", "legacy", "--pp", 4)
    loads = dict(apart=("", APART.replace(BUCKETS, RANK_FILES)))
    newer_ranks("newer_jobs", "load", 4, root=tmp_path / "loaded", loads=loads)


def test_output_layers_that_nothing_uses(shardwright, newer_ranks, tmp_path):
    """They are neither the word embedding's replicas nor part of the model."""
    newer_ranks("newer_jobs", "save", 2, root=tmp_path / "saved", cases=IDLE_HEADS)
    for name, (target, _) in IDLE_LOADS.items():
        source = tmp_path / "saved" / name
        said = shardwright("verify", source)
        assert "output_layer.weight of the last stage" in said.stdout + said.stderr
        shardwright("convert", source, tmp_path / "out" / name, "--to", "torch_dist", "--tp", 2)
        assert_true(checkpoints.load_dcp(tmp_path / "out" / name))
        shardwright("convert", source, tmp_path / name, "--to", *target.split())
    newer_ranks("newer_jobs", "load", 2, root=tmp_path, loads=IDLE_LOADS)


def test_chains_of_plain_optimizers(shardwright, newer_ranks, tmp_path):
    """Their parts are made of one another and may have nothing in common that a load would fill."""
    newer_ranks("newer_jobs", "save", 2, root=tmp_path / "saved", cases=PLAIN)
    for name, (target, _) in PLAIN_LOADS.items():
        shardwright("convert", tmp_path / "saved" / name, tmp_path / name, "--to", *target.split())
    newer_ranks("newer_jobs", "load", 2, root=tmp_path, loads=PLAIN_LOADS)


def test_uneven_stages_are_kept_for_those_who_go_on(shardwright, newer_ranks, tmp_path):
    """The same flags find the same layers in rank files, where Megatron asks for no names. With other sizes it is
    said that they do not."""
    cases = {name: words + BUCKETS for name, words in STAGES.items()}
    newer_ranks("newer_jobs", "save", 2, root=tmp_path / "saved", cases=cases)
    for name in STAGES:
        is_virtual = name in ("layout", "predicting", "virtual_bars")
        flags = ("--pp", 2, *(("--vpp", 2) if is_virtual else ()))
        done = shardwright("convert", tmp_path / "saved" / name, tmp_path / name, "--to", "legacy", *flags)
        assert "stages have other layers" not in done.stdout + done.stderr, name
        shardwright("convert", tmp_path / name, tmp_path / "again" / name, "--to", "torch_dist", *flags)
        assert_true(checkpoints.load_dcp(tmp_path / "again" / name))
    newer_ranks("newer_jobs", "load", 2, root=tmp_path, loads=STAGE_LOADS)
    # A layout is none of a model that lost the layers which it gives a stage.
    flags = ("--to", "legacy", "--pp", 2, "--vpp", 2, "--mtp", "drop")
    done = shardwright("convert", tmp_path / "saved" / "predicting", tmp_path / "without", *flags)
    assert "stages have other layers" in done.stdout + done.stderr
    (file, *_) = (tmp_path / "without").rglob("model_optim_rng.pt")
    assert torch.load(file, weights_only=False)["args"].pipeline_model_parallel_layout is None
    for name in ("first", "counted", "bars"):
        done = shardwright(
            "convert", tmp_path / "saved" / name, tmp_path / "other" / name, "--to", "legacy", "--pp", 3
        )
        assert "stages have other layers" in done.stdout + done.stderr, name


@pytest.mark.parametrize("name", CASES)
def test_to_another_layout(shardwright, saved, tmp_path, name):
    shardwright("verify", saved / name)
    flags = ("--to", "torch_dist", "--tp", 2, "--pp", 2)
    shardwright("convert", saved / name, tmp_path / "out", *flags)
    assert_true(checkpoints.load_dcp(tmp_path / "out"), FROZEN if "frozen" in name else None)


def test_back_into_megatron(shardwright, newer_ranks, saved, tmp_path):
    assert CASES.keys() == LOADS.keys()
    for name, (target, _) in LOADS.items():
        shardwright("convert", saved / name, tmp_path / name, "--to", *target.split())
    newer_ranks("newer_jobs", "load", 2, root=tmp_path)
