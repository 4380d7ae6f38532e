# SPDX-License-Identifier: Apache-2.0
"""Runs whose models ModelOpt has quantised: Megatron-Core stores their tensors in pieces, and quantizers' values
beside them."""
import pytest

import checkpoints

GOLDEN_HF = checkpoints.GOLDEN / "hf"
# A dense model with quantizers; experts, whose pieces are what is new; weights that were divided by a scale.
RUNS = {
    "dense": dict(family="llama3", sizes=dict(tp=2)),
    "experts": dict(family="qwen3_moe", sizes=dict(tp=1, ep=2), is_quantised=False),
    "smoothed": dict(family="llama3", sizes=dict(tp=2), is_smoothed=True),
}


@pytest.fixture(scope="module")
def saved(ranks, tmp_path_factory):
    root = tmp_path_factory.mktemp("modelopt")
    for name, run in RUNS.items():
        ranks("modelopt_jobs", "save", 2, folder=root / name, **run)
    return root


@pytest.mark.parametrize("run", ["dense/torch_dist", "dense/legacy", "experts/torch_dist"])
def test_the_model_is_what_was_quantised(shardwright, saved, tmp_path, run):
    family = RUNS[run.split("/")[0]]["family"]
    source = GOLDEN_HF / family / "hf"
    done = shardwright("convert", saved / run, tmp_path / "hf", "--to", "hf", "--hf-config", source)
    assert ("values of ModelOpt's quantizers are left out" in done.stderr) == run.startswith("dense")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "hf"), checkpoints.load_hf(source))


def test_experts_load_where_the_run_has_none_apart(shardwright, megatron_job, saved, tmp_path):
    source = saved / "experts/torch_dist"
    shardwright("convert", source, tmp_path / "out", "--to", "torch_dist")
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "out"), checkpoints.truth("qwen3_moe"))
    megatron_job("load", "qwen3_moe", tmp_path / "out", ep=2)
    shardwright("convert", source, tmp_path / "legacy", "--to", "legacy", "--ep", 2)
    megatron_job("load_legacy", "qwen3_moe", tmp_path / "legacy", ep=2)


def test_it_is_proven(shardwright, saved):
    for run in ("dense/torch_dist", "dense/legacy"):
        told = shardwright("verify", saved / run).stdout
        assert "\nPROVEN" in told and " 0 errors and 0 warnings" in told, told
        assert "values of ModelOpt's quantizers are left out" in told, told
    shardwright("diff", saved / "dense/torch_dist", saved / "dense/legacy")


def test_divided_weights_are_no_models(shardwright, saved, tmp_path):
    for run in ("smoothed/torch_dist", "smoothed/legacy"):
        for target in ("hf", "torch_dist", "legacy"):
            done = shardwright("convert", saved / run, tmp_path / "out", "--to", target, expect=2)
            assert "SW0301" in done.stderr and "_pre_quant_scale: the weights beside it" in done.stderr
            assert not (tmp_path / "out").exists()
        # Nor are they without the scales.
        command = ["convert", saved / run, tmp_path / "out", "--to", "hf", "--exclude", "*_pre_quant_scale"]
        assert "SW0301" in shardwright(*command, expect=2).stderr
        assert "SW0301" in shardwright("verify", saved / run, expect=1).stdout
