# SPDX-License-Identifier: Apache-2.0
"""Tensors that several ranks stored under names of their own, read in torch and from Python."""
import json
import pathlib
import pickle
import shutil

import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import MetadataIndex

import shardwright as library
from shardwright.torch import StorageReader

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
SOUND = GOLDEN / "replica" / "sound"
DIVERGED = GOLDEN / "replica" / "diverged"
PLAIN = GOLDEN / "mcore" / "dense_te" / "v0.16.1" / "tp2pp2-torch_dist-full"
NORM = "decoder.final_layernorm.weight"


def store_as(folder, names, metadata_name=".metadata"):
    """Says of a DCP folder that tensors are stored under `names` of theirs instead of their own."""
    path = folder / ".metadata"
    metadata = pickle.loads(path.read_bytes())
    for tensor, stored in names.items():
        described = metadata.state_dict_metadata.pop(tensor)
        items = {at: metadata.storage_data.pop(at) for at in list(metadata.storage_data) if at.fqn == tensor}
        for name in stored:
            metadata.state_dict_metadata[name] = described
            for at, item in items.items():
                metadata.storage_data[MetadataIndex(name, at.offset, at.index)] = item
    path.unlink()
    (folder / metadata_name).write_bytes(pickle.dumps(metadata))


@pytest.mark.parametrize("metadata_name", [".metadata", "__0.metadata"])
def test_compressed_and_rank_local_copies_are_one_tensor(shardwright, tmp_path, metadata_name):
    golden = GOLDEN / "dcp" / "zstd_twice"
    shutil.copytree(golden / "ckpt", tmp_path / "ckpt")
    truth = load_file(golden / "truth.safetensors")
    names = {"w": ["w.__tp_replica_1", "__shadow_3__w.__tp_replica_1"], "b": ["b", "__shadow_0__b"]}
    store_as(tmp_path / "ckpt", names, metadata_name)
    with library.open(tmp_path / "ckpt", framework="pt") as checkpoint:
        assert checkpoint.keys() == sorted(truth)
        for name, value in truth.items():
            for stored in (name, *names.get(name, [])):
                assert torch.equal(checkpoint.get_tensor(stored), value), stored
    shardwright("convert", tmp_path / "ckpt", tmp_path / "out", "--to", "safetensors")
    (written,) = (tmp_path / "out").glob("*.safetensors")
    assert {name: value.tolist() for name, value in load_file(written).items()} == {
        name: value.tolist() for name, value in truth.items()
    }


def load(path, name):
    state = {name: torch.zeros(64, dtype=torch.bfloat16)}
    dcp.load(state, storage_reader=StorageReader(path), no_dist=True)
    return state[name]


def test_torch_finds_the_tensor_and_each_copy():
    with library.open(PLAIN, framework="pt") as plain:
        truth = plain.get_tensor(NORM)
    for name in (NORM, f"{NORM}.__tp_replica_0", f"{NORM}.__tp_replica_1"):
        assert torch.equal(load(SOUND, name), truth), name
    with pytest.raises(CheckpointException, match="__tp_replica_2"):
        load(SOUND, f"{NORM}.__tp_replica_2")
    metadata = StorageReader(SOUND).read_metadata().state_dict_metadata
    assert not [name for name in metadata if "__tp_replica_" in name]


def test_torch_is_told_where_copies_differ():
    with pytest.raises(CheckpointException, match=r"SW0411.*differ at \(3,\)"):
        load(DIVERGED, NORM)
    first, second = (load(DIVERGED, f"{NORM}.__tp_replica_{rank}") for rank in (0, 1))
    assert (first != second).nonzero().tolist() == [[3]]


def test_one_copy_is_taken_on_purpose(tmp_path):
    with pytest.raises(library.Error, match="SW0411"):
        library.convert(DIVERGED, tmp_path / "none", to="safetensors")
    plan = library.plan(DIVERGED, tmp_path / "none", to="torch_dist", replica=1)
    assert any(note.startswith("replica=1: 3 tensors") for note in plan.notes)
    library.convert(DIVERGED, tmp_path / "taken", to="torch_dist", replica=0)
    assert library.diff(tmp_path / "taken", PLAIN)
    assert library.hash(DIVERGED, replica=0).digest == library.hash(SOUND).digest
    with pytest.raises(library.UsageError, match="it has those of 0, 1"):
        library.convert(DIVERGED, tmp_path / "none", to="safetensors", replica=2)
    with pytest.raises(library.UsageError, match="verify: unknown argument replica"):
        library.verify(DIVERGED, replica=0)  # it compares all of them
    with pytest.raises(library.UsageError, match="expected a rank's number"):
        library.plan(DIVERGED, tmp_path / "none", to="safetensors", replica="first")


def test_inspect_counts_replicas(shardwright):
    report = json.loads(shardwright("inspect", SOUND, "--json").stdout)
    replicas = {tensor["name"]: tensor["replicas"] for tensor in report["tensors"]}
    assert replicas[NORM] == 2
    assert replicas["output_layer.weight"] == 1
    stored = {tensor["name"]: tensor["stored_as"] for tensor in report["tensors"]}
    assert stored[NORM] == [f"{NORM}.__tp_replica_0", f"{NORM}.__tp_replica_1"]
    assert stored["output_layer.weight"] == []
    table = shardwright("inspect", SOUND).stdout
    (row,) = (line for line in table.splitlines() if line.startswith(NORM))
    assert "replicas" in table and row.split()[-1] == "2"
    assert "replicas" not in shardwright("inspect", PLAIN).stdout


def test_verify_counts_them(shardwright):
    assert "3 tensors are the same under all of the 6 names" in shardwright("verify", SOUND).stdout
    told = shardwright("verify", DIVERGED, expect=1)
    assert (told.stdout + told.stderr).count("SW0411") == 2
