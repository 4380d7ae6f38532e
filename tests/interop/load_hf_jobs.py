# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_load_hf.py do."""
import pathlib
import time

import checkpoints
import megatron_cpu
import torch.distributed as dist
from megatron_worker import build

import shardwright
from shardwright.megatron import load_hf, save_hf


class Wrapped:
    """As DDP and Float16Module wrap a model."""

    def __init__(self, module):
        self.module = module


def load(family, path, spec, sizes):
    model, _, truth = build(family, spec, sizes)
    load_hf([Wrapped(model)], path)
    seen = megatron_cpu.assert_holds(model, truth)
    assert seen and len(seen) <= len(truth)


def load_padded(path, expected):
    """A model with more rows of vocabulary than the checkpoint."""
    model, _, _ = build("llama3_4l", "te", dict(tp=2))
    load_hf(model, path)
    megatron_cpu.assert_holds(model, checkpoints.load_dcp(expected))


def save(family, path, spec, sizes, config):
    model, _, truth = build(family, spec, sizes)
    megatron_cpu.fill(model, truth)
    save_hf(model, path, hf_config=config)
    expected = checkpoints.load_hf(checkpoints.GOLDEN / "hf" / family / "hf")
    checkpoints.assert_same(checkpoints.load_hf(path), expected)
    path = pathlib.Path(path)
    assert list(path.parent.iterdir()) == [path]


def refuse(path, words, only=None):
    """Every rank raises, though the path may be wrong on one of them alone."""
    model, _, _ = build("llama3", "te", dict(tp=2))
    if only is not None and dist.get_rank() != only:
        path = checkpoints.GOLDEN / "hf" / "llama3" / "hf"
    try:
        load_hf(model, path)
    except shardwright.Error as error:
        assert all(word in str(error) for word in words), str(error)
        return
    raise AssertionError(f"nothing was raised, expected {words}")


def refuse_silence():
    """A parameter of which sharded_state_dict says nothing would keep what it had."""
    model, _, _ = build("llama3", "te", dict(tp=2))
    told = model.sharded_state_dict
    name = "decoder.layers.1.mlp.linear_fc2.weight"
    model.sharded_state_dict = lambda **named: {
        key: value for key, value in told(**named).items() if key != name
    }
    try:
        load_hf(model, checkpoints.GOLDEN / "hf" / "llama3" / "hf")
    except shardwright.Error as error:
        assert error.code == "SW0404" and f"says nothing of {name}" in str(error), str(error)
        return
    raise AssertionError("nothing was raised")


def refuse_save(path, words):
    model, _, truth = build("llama3", "te", dict(tp=2))
    megatron_cpu.fill(model, truth)
    try:
        save_hf(model, path, hf_config=pathlib.Path(path).parent / "nowhere")
    except shardwright.Error as error:
        assert all(word in str(error) for word in words), str(error)
        assert list(pathlib.Path(path).parent.iterdir()) == []
        return
    raise AssertionError(f"nothing was raised, expected {words}")


def refuse_save_on_one_rank(path):
    """Megatron refuses something on the first rank while the other one waits for that in a collective."""
    model, _, truth = build("llama3", "te", dict(tp=2))
    megatron_cpu.fill(model, truth)
    has_raised = pathlib.Path(path)

    def save(*_):
        if dist.get_rank() == 0:
            raise RuntimeError("of Megatron's own")
        for _ in range(300):
            if has_raised.exists():
                raise RuntimeError("the collective's end")
            time.sleep(0.1)
        raise AssertionError("the first rank waits for this one")

    megatron_cpu.dist_checkpointing.save, told = save, megatron_cpu.dist_checkpointing.save
    try:
        save_hf(model, has_raised.parent / "hf", hf_config=checkpoints.GOLDEN / "hf" / "llama3" / "hf")
    except RuntimeError as error:
        assert str(error) in ("of Megatron's own", "the collective's end"), str(error)
    else:
        raise AssertionError("nothing was raised")
    finally:
        megatron_cpu.dist_checkpointing.save = told
    if dist.get_rank() == 0:
        assert list(has_raised.parent.iterdir()) == [], "the hidden folder is left"
        has_raised.touch()
