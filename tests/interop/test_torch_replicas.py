# SPDX-License-Identifier: Apache-2.0
"""StorageWriter with replicas: each rank of a group stores its own copy and finds it again."""
import json
import pathlib
import pickle

import pytest

JOBS = "torch_replicas_jobs"
# By replica group: what its ranks hold alike in all pieces.
COPIED = {
    "tp": {
        "model.norm",
        "model.norm_of_fsdp",
        "plain",
        "scalar",
        "nested.0.moment",
        "stage.0",
        "stage.1",
    },
    "dp": {"model.norm", "model.column", "plain", "scalar", "nested.0.moment"},
}
PLACES = {"tp": lambda rank: rank % 2, "dp": lambda rank: rank // 2}


def metadata_of(path):
    return pickle.loads((path / ".metadata").read_bytes())


@pytest.fixture(scope="module")
def checkpoint(ranks, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "checkpoint"
    ranks(JOBS, "save", 4, path=path)
    return path


@pytest.fixture(scope="module")
def bare(ranks, tmp_path_factory):
    path = tmp_path_factory.mktemp("bare") / "checkpoint"
    ranks(JOBS, "save", 4, path=path, axis=None)
    return path


@pytest.mark.parametrize("axis", ("tp", "dp"))
def test_each_rank_stores_its_own_copy(ranks, bare, tmp_path, axis):
    ranks(JOBS, "save", 4, path=tmp_path / "ckpt", axis=axis)
    found, stock = metadata_of(tmp_path / "ckpt"), metadata_of(bare)
    named = {f"{name}.__tp_replica_{place}" for name in COPIED[axis] for place in (0, 1)}
    others = set(stock.state_dict_metadata) - COPIED[axis]
    assert set(found.state_dict_metadata) == named | others
    for name in named:
        entry = found.state_dict_metadata[name]
        assert entry == stock.state_dict_metadata[name.partition(".__tp")[0]]
    written = {}
    for index, place in found.storage_data.items():
        rank = int(place.relative_path.split("_")[2])
        written.setdefault(rank, []).append(index)
        if index.fqn in named:
            assert index.fqn.endswith(f"__tp_replica_{PLACES[axis](rank)}")
    assert len({index for own in written.values() for index in own}) == len(found.storage_data)
    # What all ranks hold they share out: not one rank of each place writes all of it.
    common = {f"{name}.__tp_replica_0" for name in ("model.norm", "plain", "nested.0.moment")}
    writers = {rank for rank in written for index in written[rank] if index.fqn in common}
    assert len(writers) == 2


@pytest.mark.parametrize("tp, names", [(1, ["w"]), (2, ["v.__tp_replica_5", "__shadow_3__v"])])
def test_names_stay_where_nobody_shares_and_where_they_say_something(ranks, tmp_path, tp, names):
    ranks(JOBS, "save_named", 2, path=tmp_path / "ckpt", tp=tp, names=names)
    assert list(metadata_of(tmp_path / "ckpt").state_dict_metadata) == names


def test_async_saves_are_of_the_moment_they_began(ranks, checkpoint, tmp_path):
    path = tmp_path / "ckpt"
    ranks(JOBS, "save_async", 4, path=path, drift=0.0)
    for file in checkpoint.glob("*.distcp"):
        assert (path / file.name).read_bytes() == file.read_bytes()
    assert (path / ".metadata").read_bytes() == (checkpoint / ".metadata").read_bytes()
    ranks(JOBS, "save_async", 4, path=tmp_path / "drifted", drift=1.0)
    ranks(JOBS, "load", 4, path=tmp_path / "drifted", drift=1.0)


@pytest.mark.parametrize("drift", (0.0, 1.0))
def test_each_rank_loads_its_own_copy(ranks, tmp_path, drift):
    path = tmp_path / "ckpt"
    ranks(JOBS, "save", 4, path=path, drift=drift)
    ranks(JOBS, "load", 4, path=path, drift=drift, locality=True, root=tmp_path)
    stored = sum(info.length for info in metadata_of(path).storage_data.values())
    reports = [json.loads((tmp_path / f"report.{rank}").read_text()) for rank in range(4)]
    for report in reports:
        assert (report["foreign_opens"], report["foreign_bytes"]) == (0, 0), reports
        assert report["opens"] == 1
    assert sum(report["own_bytes"] for report in reports) == stored
    ranks(JOBS, "load", 4, path=path, drift=drift)


@pytest.mark.parametrize("world, tp", [(4, 4), (2, 1), (2, 2), (1, 1)])
def test_loads_at_other_sizes(ranks, checkpoint, world, tp):
    ranks(JOBS, "load_each_way", world, path=checkpoint, tp=tp)


def test_one_copy_for_all_is_each_ranks(ranks, bare):
    ranks(JOBS, "load", 4, path=bare, locality=True)
    ranks(JOBS, "load", 4, path=bare, stock=True)


def test_converted_the_names_are_the_models(ranks, shardwright, checkpoint, bare, tmp_path):
    shardwright("verify", checkpoint)
    shardwright("convert", checkpoint, tmp_path / "out", "--to", "dcp")
    assert set(metadata_of(tmp_path / "out").state_dict_metadata) == set(
        metadata_of(bare).state_dict_metadata
    )
    ranks(JOBS, "load", 4, path=tmp_path / "out", stock=True)


def test_what_is_impossible_is_refused(ranks, tmp_path: pathlib.Path):
    ranks(JOBS, "refused", 4, path=tmp_path / "none")
