# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that an older Megatron-Core writes with zarr itself, whole and damaged."""
import shutil

import pytest

import checkpoints
from newer_truth import STATES

GOLDEN_HF = checkpoints.GOLDEN / "hf"
OLDER_NAMES = {"param": "fp32_param"}


@pytest.fixture(scope="module")
def saved(older_ranks, tmp_path_factory):
    root = tmp_path_factory.mktemp("zarr")
    runs = {"dense": ("llama3", dict(tp=2), True), "moe": ("qwen3_moe", dict(tp=2, ep=2, etp=1), False)}
    for name, (family, sizes, with_states) in runs.items():
        older_ranks("zarr_jobs", "save", 4, family=family, folder=root / name, sizes=sizes, with_states=with_states)
    return root


def test_weights_and_flattened_states(shardwright, saved, tmp_path):
    assert "zarr" in shardwright("inspect", saved / "dense").stdout
    told = shardwright("verify", saved / "dense").stdout
    assert "\nPROVEN" in told and "nothing guards the payload" in told, told
    shardwright("convert", saved / "dense", tmp_path / "out", "--to", "torch_dist", "--pp", 2)
    weights = checkpoints.truth("llama3")
    states = {
        f"optimizer.state.{OLDER_NAMES.get(kind, kind)}.{name}": state_of(tensor)
        for kind, state_of in STATES.items()
        for name, tensor in weights.items()
    }
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "out"), {**weights, **states})


def test_experts_of_several_ranks(shardwright, saved, tmp_path):
    source = GOLDEN_HF / "qwen3_moe/hf"
    shardwright("convert", saved / "moe", tmp_path / "hf", "--to", "hf", "--hf-config", source)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "hf"), checkpoints.load_hf(source))
    shardwright("convert", tmp_path / "hf", tmp_path / "back", "--to", "torch_dist")
    assert "EQUAL" in shardwright("diff", saved / "moe", tmp_path / "back").stdout


@pytest.mark.parametrize("lost", ["0.1.0", ".zarray"])
def test_what_is_lost_is_named(shardwright, saved, tmp_path, lost):
    shutil.copytree(saved / "moe", tmp_path / "run")
    array = "decoder.layers.self_attention.linear_qkv.weight"
    folder = tmp_path / "run/iter_0000010" / array
    (folder / lost).unlink()
    done = shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "torch_dist", expect=2)
    assert "SW0307" in done.stderr and array in done.stderr and lost in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()
