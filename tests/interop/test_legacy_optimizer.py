# SPDX-License-Identifier: Apache-2.0
"""Optimizer states of legacy files, between Megatron-Core's own optimizer and itself."""
import pytest
import torch

import checkpoints

GOLDEN_HF = checkpoints.GOLDEN / "hf"


def trained(megatron, family, spec, root):
    """A model after two steps, saved with its optimizer."""
    import megatron_optimizer

    hf = megatron.read_config(GOLDEN_HF / family / "hf")
    model = megatron.build(hf, spec)
    megatron.fill(model, checkpoints.truth(family))
    optimizer = megatron_optimizer.build(model)
    for seed in (1, 2):
        megatron_optimizer.step(optimizer, seed)
    megatron.save_legacy(model, root, hf, optimizer=optimizer.state_dict())
    return model, optimizer


@pytest.mark.parametrize("spec", ["te", "local"])
@pytest.mark.parametrize("family", ["llama3", "qwen2", "qwen3_moe"])
def test_training_goes_on(shardwright, megatron, tmp_path, family, spec):
    """Through other layouts and formats and back: the next step is the same, bit by bit."""
    import megatron_optimizer

    model, optimizer = trained(megatron, family, spec, tmp_path / "in")
    keep = ("--optimizer", "keep", "--spec", spec)
    shardwright("convert", tmp_path / "in", tmp_path / "tp2", "--to", "legacy", "--tp", 2, *keep)
    shardwright("convert", tmp_path / "tp2", tmp_path / "dist", "--to", "torch_dist", *keep)
    shardwright("convert", tmp_path / "dist", tmp_path / "out", "--to", "legacy", *keep)

    other = megatron.build(megatron.read_config(GOLDEN_HF / family / "hf"), spec)
    resumed = megatron_optimizer.build(other)
    state = megatron.load_legacy(other, checkpoints.iteration_folder(tmp_path / "out"))
    resumed.load_state_dict(state["optimizer"])
    expected = megatron_optimizer.tensors(optimizer)
    assert len(expected) > 20
    checkpoints.assert_same(megatron_optimizer.tensors(resumed), expected)
    assert {float(v) for k, v in expected.items() if k.endswith(".step")} == {2.0}

    for each in (optimizer, resumed):
        megatron_optimizer.step(each, 3)
    checkpoints.assert_same(
        megatron_optimizer.tensors(resumed), megatron_optimizer.tensors(optimizer)
    )
    weights = dict(model.named_parameters())
    for name, parameter in other.named_parameters():
        assert torch.equal(parameter, weights[name]), name


def test_a_stale_optimizer_is_noticed(shardwright, megatron, tmp_path):
    """Weights of a later step than the states': refused, and nothing written."""
    import megatron_optimizer

    hf = megatron.read_config(GOLDEN_HF / "llama3" / "hf")
    model, optimizer = trained(megatron, "llama3", "te", tmp_path / "first")
    before = optimizer.state_dict()
    stale = torch.utils._pytree.tree_map(
        lambda value: value.clone() if isinstance(value, torch.Tensor) else value, before
    )
    megatron_optimizer.step(optimizer, 3)
    megatron.save_legacy(model, tmp_path / "in", hf, optimizer=stale)
    done = shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", "torch_dist", expect=2)
    assert "SW0318" in done.stderr
    assert not (tmp_path / "out").exists()
