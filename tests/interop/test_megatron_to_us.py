# SPDX-License-Identifier: Apache-2.0
"""What Megatron-Core saves, read by our program and written in every other form."""
import argparse
import shutil

import pytest
import torch

import checkpoints

GOLDEN_HF = checkpoints.GOLDEN / "hf"


@pytest.fixture(scope="module", params=["llama3-te", "llama3-local", "qwen2-te", "qwen3_moe-te"])
def saved(request, megatron, tmp_path_factory):
    """(family, spec, a directory that Megatron saved in one process)"""
    family, spec = request.param.split("-")
    root = tmp_path_factory.mktemp(request.param)
    hf = megatron.read_config(GOLDEN_HF / family / "hf")
    model = megatron.build(hf, spec)
    megatron.fill(model, checkpoints.truth(family))
    megatron.save(model, root, hf)
    return family, spec, root


@pytest.fixture(scope="module", params=[("llama3", {"tp": 2}), ("qwen3_moe", {"ep": 2})])
def saved_by_two(request, megatron_job, tmp_path_factory):
    """(family, a directory that two processes saved)"""
    family, sizes = request.param
    root = tmp_path_factory.mktemp(f"{family}_two")
    megatron_job("save", family, root, **sizes)
    return family, root


def test_to_safetensors(shardwright, megatron, saved, tmp_path):
    family, _, root = saved
    shardwright("convert", root, tmp_path / "out", "--to", "safetensors")
    truth, tensors = checkpoints.truth(family), checkpoints.load_hf(tmp_path / "out")
    named = {megatron.truth_name(key, truth): tensor for key, tensor in tensors.items()}
    checkpoints.assert_same(named, truth)


def test_to_hf(shardwright, saved, tmp_path):
    family, _, root = saved
    source = GOLDEN_HF / family / "hf"
    shardwright("convert", root, tmp_path / "out", "--to", "hf", "--hf-config", source)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "out"), checkpoints.load_hf(source))


def test_to_torch_dist_and_back_into_megatron(shardwright, megatron, saved, tmp_path):
    family, spec, root = saved
    out = tmp_path / "out"
    shardwright("convert", root, out, "--to", "torch_dist", "--tp", 2)
    model = megatron.build(megatron.read_config(GOLDEN_HF / family / "hf"), spec)
    common = megatron.load(model, checkpoints.iteration_folder(out), "raise_all")
    truth = checkpoints.truth(family)
    assert megatron.assert_holds(model, truth) == truth.keys()
    assert common["iteration"] == 10
    assert common["args"].tensor_model_parallel_size == 2


def test_two_processes_to_hf(shardwright, saved_by_two, tmp_path):
    family, root = saved_by_two
    source = GOLDEN_HF / family / "hf"
    shardwright("convert", root, tmp_path / "out", "--to", "hf", "--hf-config", source)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "out"), checkpoints.load_hf(source))


def test_two_processes_to_torch_dist(shardwright, saved_by_two, tmp_path):
    family, root = saved_by_two
    shardwright("convert", root, tmp_path / "out", "--to", "torch_dist", "--pp", 3)
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "out"), checkpoints.truth(family))


def test_buckets_without_the_runs_arguments(shardwright, tmp_path):
    """Megatron-Core alone saves none, and loads what it saved: nothing is wrong with it."""
    golden = checkpoints.GOLDEN / "mcore/dense_te/v0.16.1/tp2pp1dp2-torch_dist-bucket"
    shutil.copytree(golden, tmp_path / "run")
    common = tmp_path / "run/iter_0000010/common.pt"
    with torch.serialization.safe_globals([argparse.Namespace]):
        state = torch.load(common, weights_only=False)
    del state["args"]
    torch.save(state, common)
    told = shardwright("verify", tmp_path / "run").stdout
    assert "PROVEN" in told and "as they are stored" in told, told
    done = shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "torch_dist", expect=2)
    assert "the run's arguments lack its parallel sizes" in done.stderr
