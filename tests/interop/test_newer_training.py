# SPDX-License-Identifier: Apache-2.0
"""Megatron-LM's own save_checkpoint with a later Megatron-Core, through shardwright.megatron."""
import json
import os
import pathlib

import pytest

CASES = ("dense", "dense_async", "dense_nvrx", "moe")


@pytest.fixture(scope="module")
def newer_path():
    folder = os.environ.get("SHARDWRIGHT_NEWER_MEGATRON", "")
    assert pathlib.Path(folder, "megatron/training").is_dir(), (
        f"found no Megatron-Core in '{folder}'; './dev test' puts it there"
    )
    resiliency = os.environ.get("SHARDWRIGHT_RESILIENCY", "")
    assert pathlib.Path(resiliency, "nvidia_resiliency_ext").is_dir(), (
        f"found no nvidia-resiliency-ext in '{resiliency}'; './dev test' puts it there"
    )
    tools = pathlib.Path(__file__).resolve().parent / "tools"
    path = os.pathsep.join([folder, resiliency, str(tools), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        yield


@pytest.fixture(scope="module")
def saved(ranks, newer_path, tmp_path_factory):
    root = tmp_path_factory.mktemp("saved")
    ranks("newer_training_jobs", "save", 4, root=root)
    return root


def test_saved_by_ours_loads_in_stock(shardwright, ranks, saved):
    for name in CASES:
        ours, stock = saved / "ours" / name, saved / "stock" / name
        assert (ours / "latest_checkpointed_iteration.txt").read_text() == "10"
        shardwright("verify", ours)
        digests = {
            json.loads(shardwright("hash", folder, "--json").stdout)["digest"]
            for folder in (ours, stock, saved / "plain" / name)
        }
        assert len(digests) == 1, name
        collapse = ("--to", "torch_dist", "--tp-replicas", "collapse", "--tp", "2", "--etp", "1")
        sizes = collapse if name == "moe" else collapse[:-2]
        shardwright("convert", ours, saved / "collapsed" / name, *sizes)
    ranks("newer_training_jobs", "load", 4, root=saved)


def test_saved_by_ours_loads_by_ours(ranks, saved):
    ranks("newer_training_jobs", "load_by_ours", 4, root=saved)


@pytest.mark.parametrize("name", ("gpt_tp2_dp2", "gpt_tp2_pp2", "moe_ep2_dp2", "moe_tp2_ep2"))
def test_training_goes_on_as_if_it_had_not_stopped(ranks, newer_path, tmp_path, name):
    ranks("newer_training_jobs", "go_on", 4, root=tmp_path, name=name)


def test_saves_of_the_default_strategy_run_in_threads(ranks, newer_path, tmp_path):
    ranks("newer_training_jobs", "save_by_default", 2, root=tmp_path)


def test_the_common_state_of_an_earlier_version_goes(ranks, newer_path, tmp_path):
    ranks("newer_training_jobs", "replace_older", 2, root=tmp_path)
    assert not (tmp_path / "step" / "common.pt").exists()


def test_a_strategy_that_is_not_there_is_refused_before_anything_begins(ranks, newer_path, tmp_path):
    ranks("newer_training_jobs", "refuse_strategies", 2, root=tmp_path)
    assert not list(tmp_path.rglob("*.distcp"))
