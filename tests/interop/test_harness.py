# SPDX-License-Identifier: Apache-2.0
"""Megatron against itself: what the other tests rely on, without our program."""
import pytest
import torch

import checkpoints


@pytest.mark.parametrize("spec", ["te", "local"])
@pytest.mark.parametrize("family", ["llama3", "qwen2", "qwen3_moe"])
def test_megatron_saves_the_truth_and_loads_it_back(megatron, tmp_path, family, spec):
    hf = megatron.read_config(checkpoints.GOLDEN / "hf" / family / "hf")
    truth = checkpoints.truth(family)
    writer = megatron.build(hf, spec)
    megatron.fill(writer, truth)
    megatron.save(writer, tmp_path, hf)
    folder = checkpoints.iteration_folder(tmp_path)

    on_disk = checkpoints.load_dcp(tmp_path)
    on_disk = {megatron.truth_name(key, truth): tensor for key, tensor in on_disk.items()}
    checkpoints.assert_same(on_disk, truth)

    reader = megatron.build(hf, spec)
    with pytest.raises(AssertionError, match="differs from the truth"):
        megatron.assert_holds(reader, truth)
    common = megatron.load(reader, folder, "raise_all")
    assert megatron.assert_holds(reader, truth) == truth.keys()
    assert common["args"].num_layers == hf["num_hidden_layers"]


def test_two_processes_save_what_one_loads(megatron, megatron_job, tmp_path):
    megatron_job("save", "llama3", tmp_path, tp=2)
    truth = checkpoints.truth("llama3")
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path), truth)
    model = megatron.build(megatron.read_config(checkpoints.GOLDEN / "hf/llama3/hf"), "te")
    megatron.load(model, checkpoints.iteration_folder(tmp_path), "raise_all")
    assert megatron.assert_holds(model, truth) == truth.keys()


def test_comparison_sees_one_bit():
    one = {"a": torch.tensor([0.0, 1.0]), "b": torch.tensor([float("nan")])}
    checkpoints.assert_same(one, {name: t.clone() for name, t in one.items()})
    for change in (
        {"a": torch.tensor([-0.0, 1.0])},
        {"a": torch.tensor([[0.0, 1.0]])},
        {"a": torch.tensor([0.0, 1.0], dtype=torch.float64)},
        {"c": torch.tensor([1.0])},
    ):
        with pytest.raises(AssertionError):
            checkpoints.assert_same({**one, **change}, one)
    with pytest.raises(AssertionError, match="missing"):
        checkpoints.assert_same({}, one)


def test_a_rank_that_fails_fails_the_test(ranks):
    with pytest.raises(AssertionError, match=r"ranks \[.*1\] failed:\n(.|\n)*as it was asked to"):
        ranks("megatron_worker", "fail_on_rank", 2, rank=1)
    ranks("megatron_worker", "fail_on_rank", 2, rank=2)  # the process is not worn out by that


def test_groups_share_what_looks_for_messages(ranks):
    ranks("megatron_worker", "make_groups", 2, count=4)
