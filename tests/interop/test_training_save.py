# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that real ranks of Megatron-Core save through shardwright.megatron."""
import json
import math
import os

import pytest

import checkpoints

# family, layer spec, sizes, ranks that hold the same data, optimizer
CASES = {
    "dense_tp2": ("llama3_4l", "local", dict(tp=2), 1, True),
    "dense_tp2_dp2": ("llama3_4l", "te", dict(tp=2), 2, True),
    "dense_tp2_pp2": ("llama3_4l", "local", dict(tp=2, pp=2), 1, True),
    "tied_tp2_pp2": ("llama3_4l+tied", "te", dict(tp=2, pp=2), 1, False),
    "moe_tp2_ep2": ("qwen3_moe", "te", dict(tp=2, ep=2), 1, False),
}


def reports_of(root, world):
    return [json.loads((root / f"report.{rank}").read_text()) for rank in range(world)]


def stored_names(shardwright, folder):
    """By tensor, the names under which ranks stored it."""
    report = json.loads(shardwright("inspect", folder, "--json").stdout)
    return {tensor["name"]: tensor["stored_as"] for tensor in report["tensors"]}


def digest(shardwright, folder):
    return json.loads(shardwright("hash", folder, "--json").stdout)["digest"]


@pytest.mark.parametrize("case", CASES)
def test_replicas_are_named_and_the_rest_is_stock(shardwright, ranks, tmp_path, case):
    family, spec, sizes, dp, optimizer = CASES[case]
    world = 4 if "ep" in sizes else math.prod(sizes.values()) * dp
    arguments = dict(family=family, spec=spec, sizes=sizes, optimizer=optimizer)
    ranks("training_jobs", "save_both", world, root=tmp_path, replicas=True, **arguments)
    ours, stock = tmp_path / "ours", tmp_path / "stock"
    shardwright("verify", ours)
    assert digest(shardwright, ours) == digest(shardwright, stock)
    names = stored_names(shardwright, ours)
    named = {name for name, stored in names.items() if stored}
    assert named and all(
        names[name] == [f"{name}.__tp_replica_0", f"{name}.__tp_replica_1"] for name in named
    )
    norms = {name for name in names if "norm" in name}
    assert norms <= named, "norms are held alike by tensor ranks"
    assert not [name for name in named if "linear_qkv.weight" in name or "embedding" in name]
    if optimizer:
        assert {f"optimizer.state.exp_avg.{name}" for name in norms if "optimizer" not in name}
    reports = reports_of(tmp_path, world)
    files = {path.name: path.stat().st_size for path in ours.glob("*.distcp")}
    assert sorted(files.values()) == sorted(r["own_bytes"] for r in reports if r["files"])
    assert all(r["opens"] == r["files"] == 1 and r["replicas"] > 0 for r in reports)
    shardwright(
        "convert", ours, tmp_path / "collapsed", "--to", "torch_dist", "--tp-replicas", "collapse"
    )
    loaded, truth = checkpoints.load_dcp(tmp_path / "collapsed"), checkpoints.load_dcp(stock)
    assert loaded.keys() == truth.keys()
    assert all(checkpoints.same_bits(loaded[name], truth[name]) for name in truth)


def test_names_are_those_of_the_change_under_review(ranks, tmp_path):
    # The golden one is of the same layers, layout and spec: what it names, ours names.
    job = dict(family="llama3_4l", spec="local", sizes=dict(tp=2, pp=2), optimizer=False)
    ranks("training_jobs", "save_both", 4, root=tmp_path, replicas=True, **job)
    golden = checkpoints.load_dcp(checkpoints.GOLDEN / "replica" / "sound")
    assert checkpoints.load_dcp(tmp_path / "ours").keys() == golden.keys()


@pytest.mark.parametrize(
    "where,how,is_async",
    (
        ("plan", "raised", False),
        ("exchange", "raised", False),
        ("write", "raised", False),
        ("commit", "raised", False),
        ("plan", "raised", True),
        ("stage", "raised", True),
        ("write", "raised", True),
        ("plan", "killed", False),
        ("exchange", "killed", False),
        ("write", "killed", False),
        ("commit", "killed", False),
        ("write", "killed", True),
    ),
)
def test_a_save_that_fails_publishes_nothing(shardwright, ranks, tmp_path, where, how, is_async):
    job = dict(root=tmp_path, where=where, how=how, is_async=is_async)
    if how == "killed":
        dead = 0 if where == "commit" else 3
        with pytest.raises(AssertionError, match=rf"^ranks \[{dead}\] failed"):  # no other did
            ranks("training_jobs", "fail", 4, **job)
        ranks("training_jobs", "load_first", 4, root=tmp_path)
    else:
        ranks("training_jobs", "fail", 4, **job)
        assert len(list((tmp_path / "first").glob("*.distcp"))) == 4, "what was replaced is gone"
    first, second = tmp_path / "first", tmp_path / "second"
    shardwright("verify", first)
    left = set(os.listdir(second))
    assert not {".metadata", "metadata.json"} & left
    assert how == "killed" or not left, "files were left behind"


def test_the_common_state_is_of_the_same_save(ranks, tmp_path):
    ranks("training_jobs", "common_states", 2, root=tmp_path)


@pytest.mark.parametrize("max_staging_bytes", (1 << 30, 100_000, 0))
def test_the_job_goes_on_while_threads_write(ranks, tmp_path, max_staging_bytes):
    job = dict(root=tmp_path, max_staging_bytes=max_staging_bytes)
    ranks("training_jobs", "save_in_background", 4, **job)


def test_a_rank_that_missed_a_save_takes_part_in_the_next(ranks, tmp_path):
    ranks("training_jobs", "miss", 2, root=tmp_path)


def test_it_is_switched_on_and_off(ranks, tmp_path):
    ranks("training_jobs", "switch", 4, root=tmp_path)


def test_the_same_state_gives_the_same_files(ranks, tmp_path):
    ranks("training_jobs", "repeat", 4, root=tmp_path)
    first, *others = [
        {path.name: path.read_bytes() for path in (tmp_path / str(number)).iterdir()}
        for number in range(4)
    ]
    assert {".metadata", "__3_0.distcp"} <= first.keys()
    assert all(other == first for other in others)


def test_components_have_groups_of_their_own(shardwright, ranks, tmp_path):
    ranks("training_jobs", "components", 4, root=tmp_path)
    tensors = checkpoints.load_dcp(tmp_path / "ours")
    replicated = ("language.norm.weight", "vision.norm.weight", "language.tied")
    copies = {f"{name}.__tp_replica_{rank}" for name in replicated for rank in (0, 1)}
    assert tensors.keys() == copies | {"language.fc.weight", "vision.fc.weight"}
    for component, name in enumerate(("language", "vision")):
        first = tensors[f"{name}.norm.weight.__tp_replica_0"]
        assert first.tolist() == [component, component + 1, component + 2, component + 3]
        assert tensors[f"{name}.fc.weight"][:, 0].tolist() == [2 * component] * 2 + [
            2 * component + 1
        ] * 2
    shardwright("verify", tmp_path / "ours")


def test_names_that_are_like_those_of_copies(ranks, tmp_path):
    ranks("training_jobs", "marked_names", 2, root=tmp_path)


@pytest.mark.parametrize("version", ("0.15.3", "0.17.0", "0.19.3", "1.0.0", "0.20.0rc1", "main"))
def test_an_unknown_megatron_is_refused_by_name(ranks, version):
    ranks("training_jobs", "refuse", 1, version=version)
