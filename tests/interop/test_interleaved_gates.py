# SPDX-License-Identifier: Apache-2.0
"""Experts whose gate and linear part lie in alternating blocks, as Megatron's fused kernels want them."""
import argparse
import shutil

import pytest
import torch
import torch.distributed.checkpoint as dcp

import checkpoints

ROWS = 8  # of a block


def megatrons_order(rows, size):
    """What Megatron-Core makes of an fc1's output before it looks for the gate in its first half."""
    shape = rows.shape
    rows = rows.reshape(-1, shape[-1] // (2 * size), 2, size)
    return rows.transpose(1, 2).contiguous().view(shape)


def interleaved(weight, size):
    """The rows (the last axis but one) in the order that `megatrons_order` undoes."""
    numbers = megatrons_order(torch.arange(weight.shape[-2]), size)
    stored = torch.empty_like(weight)
    stored[..., numbers, :] = weight
    return stored


def by_rank(weight, size, ranks):
    """The same of each rank's rows, put together by halves as torch_dist does."""
    halves = weight.unflatten(-2, (2, ranks, -1))
    stored = torch.empty_like(halves)
    for rank in range(ranks):
        own = interleaved(halves[..., :, rank, :, :].flatten(-3, -2), size)
        stored[..., :, rank, :, :] = own.unflatten(-2, (2, -1))
    return stored.flatten(-4, -2)


def save_as_run(root, tensors, **arguments):
    """The checkpoint in `root` with these tensors and arguments."""
    folder = checkpoints.iteration_folder(root)
    for file in [folder / ".metadata", *folder.glob("*.distcp")]:
        file.unlink()
    common = torch.load(folder / "common.pt", weights_only=False)
    common["args"] = argparse.Namespace(**{**vars(common["args"]), **arguments})
    torch.save(common, folder / "common.pt")
    dcp.save(tensors, storage_writer=dcp.FileSystemWriter(str(folder)), no_dist=True)


@pytest.mark.parametrize("ranks", (1, 2))
@pytest.mark.parametrize("family", ("qwen3_moe", "gpt_oss"))
def test_gates_are_put_in_order(shardwright, tmp_path, family, ranks):
    source = checkpoints.GOLDEN / "hf" / family / "hf"
    shardwright("convert", source, tmp_path / "run", "--to", "torch_dist")
    tensors = checkpoints.load_dcp(tmp_path / "run")
    moved = 0
    for name, tensor in tensors.items():
        if "experts.experts.linear_fc1" not in name:
            continue
        is_bias = name.endswith("bias")
        rows = tensor.unsqueeze(-1) if is_bias else tensor
        stored = by_rank(rows, ROWS, ranks)
        assert not checkpoints.same_bits(stored, rows)
        tensors[name] = stored.squeeze(-1) if is_bias else stored
        moved += 1
    assert moved
    sizes = {"tensor_model_parallel_size": ranks, "expert_tensor_parallel_size": ranks}
    save_as_run(tmp_path / "run", tensors, moe_mlp_glu_interleave_size=ROWS, **sizes)
    (tmp_path / "said").mkdir()
    shutil.copy(source / "config.json", tmp_path / "said")
    options = ["--hf-config", tmp_path / "said"] if ranks == 1 else []
    shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "hf", *options)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "out"), checkpoints.load_hf(source))


def test_what_is_no_multiple_of_blocks_is_refused(shardwright, tmp_path):
    source = checkpoints.GOLDEN / "hf" / "qwen3_moe" / "hf"
    shardwright("convert", source, tmp_path / "run", "--to", "torch_dist")
    tensors = checkpoints.load_dcp(tmp_path / "run")
    save_as_run(tmp_path / "run", tensors, moe_mlp_glu_interleave_size=7)
    done = shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "hf", expect=2)
    assert "SW0407" in done.stderr and "blocks of 7 rows" in done.stderr
    assert not (tmp_path / "out").exists()
