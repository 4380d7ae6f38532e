# SPDX-License-Identifier: Apache-2.0
"""DTensors as checkpoints have them, on real meshes of four ranks."""
import pytest
import torch
from torch.distributed.tensor import DTensor, Replicate, Shard

import shardwright
import shardwright.torch as sw

JOBS = [
    "tensor_parallel", "both_orders", "grouped_experts", "refusals", "wrong_pieces", "empty_shards",
]  # fmt: skip


@pytest.mark.parametrize("job", JOBS)
def test_job(ranks, tmp_path, job):
    ranks("placing_jobs", job, 6 if job == "wrong_pieces" else 4, folder=tmp_path)


def test_families_rules_by_name():
    dense = [Replicate()] * 3
    assert sw.placements_for("hc_head.hc_fn", "deepseek_v4") == (False, (*dense, Replicate()))
    assert sw.placements_for("head.weight", "deepseek_v4") == (False, (*dense, Shard(0)))
    expert = sw.placements_for("layers.3.mlp.experts.fc2.weight1", "qwen3_moe")
    assert expert.is_expert and expert.placements == (*dense[:2], Shard(0), Shard(1))
    with pytest.raises(shardwright.ModelError, match="SW0400.*mixtral.*expected one of deepseek_v4"):
        sw.placements_for("head.weight", "mixtral")


def test_an_old_torch_is_named(ranks, tmp_path, monkeypatch):
    from shardwright import _placing

    monkeypatch.delattr(DTensor, "__create_chunk_list__")
    with pytest.raises(shardwright.UsageError, match="expected torch 2.5"):
        _placing._describe(torch.ones(2), torch.Size([2]), ((0,), (2,)))


def test_the_module_is_typed():
    import pathlib

    stub = (pathlib.Path(shardwright.__file__).parent / "torch.pyi").read_text()
    for name in sw.__all__:
        assert f"def {name}(" in stub or f"class {name}" in stub, name
