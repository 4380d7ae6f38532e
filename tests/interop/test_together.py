# SPDX-License-Identifier: Apache-2.0
"""StorageReader with locality: of state that ranks hold alike one reads, the others receive."""
import io
import json
import pathlib
import pickle
import struct
import zipfile

import pytest

import shardwright
from shardwright._loading import catalog_of

JOBS = "together_jobs"
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "dcp"


@pytest.fixture(scope="module")
def checkpoint(ranks, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "checkpoint"
    ranks(JOBS, "save", 4, path=path, shards=2)
    return path


def reports(root, world=4):
    return [json.loads((root / f"report.{rank}").read_text()) for rank in range(world)]


@pytest.mark.parametrize("shards", (1, 2, 4))
def test_each_stored_byte_is_read_once(ranks, checkpoint, tmp_path, shards):
    ranks(JOBS, "load", 4, path=checkpoint, shards=shards, root=tmp_path, locality=True)
    metadata = pickle.loads((checkpoint / ".metadata").read_bytes())
    stored = sum(info.length for info in metadata.storage_data.values())
    told = reports(tmp_path)
    assert sum(one["own_bytes"] + one["foreign_bytes"] for one in told) == stored
    if shards == 2:  # as it was saved
        assert sum(one["foreign_opens"] for one in told) <= 2, told
    assert all(one["received_bytes"] > 0 for one in told)


def test_each_reads_for_itself_without_it(ranks, checkpoint, tmp_path):
    ranks(JOBS, "load", 4, path=checkpoint, shards=2, root=tmp_path)
    assert reports(tmp_path) == [None] * 4


def test_what_zstd_packed_is_decoded_by_who_needs_it(ranks):
    golden = GOLDEN / "zstd_twice"
    truth = golden / "truth.safetensors"
    ranks(JOBS, "load_compressed", 2, path=golden / "ckpt", truth=truth)


def test_an_object_that_was_transformed_otherwise_is_refused():
    contents = (GOLDEN / "foreign_extension" / "ckpt" / ".metadata").read_bytes()
    metadata = pickle.loads(contents)
    for name in ("w", "b", "e"):
        del metadata.state_dict_metadata[name]
    metadata.storage_data = {at: v for at, v in metadata.storage_data.items() if at.fqn == "step"}
    catalog = catalog_of(pickle.dumps(metadata), "ckpt")
    refused = "SW0303.*step: found the stream extension test.xor"
    with pytest.raises(shardwright.Error, match=refused):
        catalog.find_object("step")


def test_groups_and_single_ranks(ranks, checkpoint, tmp_path):
    ranks(JOBS, "load_in_halves", 4, path=checkpoint, root=tmp_path)


def test_ranks_of_one_machine_exchange_through_memory(ranks, checkpoint):
    ranks(JOBS, "exchange", 4, path=checkpoint)


def test_a_flipped_byte_is_told_on_every_rank(ranks, checkpoint, tmp_path):
    metadata = pickle.loads((checkpoint / ".metadata").read_bytes())
    _, info = next(
        (index, info)
        for index, info in metadata.storage_data.items()
        if index.fqn == "model.1.weight"
    )
    path = checkpoint / info.relative_path
    contents = path.read_bytes()
    item = contents[info.offset : info.offset + info.length]
    record = next(r for r in zipfile.ZipFile(io.BytesIO(item)).infolist() if "/data/" in r.filename)
    # Behind the record's own header lie its name and what aligns it.
    name_bytes, extra_bytes = struct.unpack_from("<HH", item, record.header_offset + 26)
    damaged = bytearray(contents)
    damaged[info.offset + record.header_offset + 30 + name_bytes + extra_bytes] ^= 1
    path.write_bytes(damaged)
    try:
        ranks(JOBS, "refused", 4, path=checkpoint, text="model.1.weight")
        ranks(JOBS, "refused", 4, path=checkpoint, text=info.relative_path)
    finally:
        path.write_bytes(contents)


def test_files_of_a_group_are_named_after_its_ranks(ranks, tmp_path):
    ranks("together_jobs", "in_a_group", 3, path=tmp_path / "step")
