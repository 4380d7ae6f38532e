# SPDX-License-Identifier: Apache-2.0
"""DCP directories that the program writes, read by torch.distributed.checkpoint."""
import dataclasses
import pathlib
import pickle
import re
import shutil

import numpy
import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file

from dtensor_placements import lines

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "dcp"


def read(folder):
    """Every tensor and object of a directory, through torch's own planner, which is strict."""
    metadata = dcp.FileSystemReader(folder).read_metadata()
    state = {}
    for name, entry in metadata.state_dict_metadata.items():
        if hasattr(entry, "size"):
            state[name] = torch.full(tuple(entry.size), 1, dtype=entry.properties.dtype)
        else:
            state[name] = None
    planner = dcp.DefaultLoadPlanner(flatten_state_dict=False)
    dcp.load(state, storage_reader=dcp.FileSystemReader(folder), planner=planner, no_dist=True)
    # The planner puts objects into a dict of its own.
    return {name: planner.state_dict[name] for name in state}, metadata


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
@pytest.mark.parametrize("name", ["fsdp2_uneven", "optimizer", "strided_rows7", "hf_sharded"])
def test_loads_at_another_world_size(shardwright, tmp_path, name, shards):
    source = GOLDEN / name / "ckpt"
    shardwright("convert", source, tmp_path / "out", "--to", "dcp", "--shards", shards)
    state, metadata = read(tmp_path / "out")
    truth = load_file(GOLDEN / name / "truth.safetensors")
    assert truth and set(truth) <= set(state)
    assert [key for key in truth if not same(state[key], truth[key])] == []
    if (source / ".metadata").exists():
        before = dcp.FileSystemReader(source).read_metadata()
        assert set(metadata.state_dict_metadata) == set(before.state_dict_metadata)
        assert metadata.planner_data == {k: tuple(v) for k, v in before.planner_data.items()}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_metadata_of_any_binary_protocol(shardwright, tmp_path, protocol):
    """Of 2 Python spells its builtins as Python 2 did."""
    source, folder = GOLDEN / "fsdp2_uneven" / "ckpt", tmp_path / "in"
    shutil.copytree(source, folder)
    written = pickle.dumps(dcp.FileSystemReader(folder).read_metadata(), protocol)
    (folder / ".metadata").write_bytes(written)
    read(folder)
    assert (b"__builtin__" in written) == (protocol == 2)
    for command in ("inspect", "verify", "diagnose"):
        done = shardwright(command, folder)
        assert not {"SW0224", "SW0321", "L43"} & set(re.findall("SW[0-9]+|L[0-9]+", done.stdout))
    (folder / ".metadata").write_bytes(written + b"more")
    for command, code in (("inspect", 2), ("verify", 1), ("diagnose", 1)):
        done = shardwright(command, folder, expect=code)
        assert "4 bytes follow the pickle's end" in done.stdout + done.stderr


@pytest.mark.parametrize("protocol", [4, 5])
def test_places_may_be_numbers_of_numpy(shardwright, tmp_path, protocol):
    """Megatron-Core 0.15 saves those of Mamba's states so: it multiplies extents by numpy.prod."""
    source, folder = GOLDEN / "fsdp2_uneven" / "ckpt", tmp_path / "in"
    shutil.copytree(source, folder)
    metadata = dcp.FileSystemReader(folder).read_metadata()

    def of_numpy(extents):
        return torch.Size([numpy.int64(extent) for extent in extents])

    for entry in metadata.state_dict_metadata.values():
        for chunk in getattr(entry, "chunks", ()):
            chunk.offsets = of_numpy(chunk.offsets)
            chunk.sizes = of_numpy(chunk.sizes)
    metadata.storage_data = {
        dataclasses.replace(index, offset=index.offset and of_numpy(index.offset)): place
        for index, place in metadata.storage_data.items()
    }
    written = pickle.dumps(metadata, protocol)
    assert b"numpy" in written and b"scalar" in written
    (folder / ".metadata").write_bytes(written)
    shardwright("verify", folder)
    shardwright("diff", source, folder)
    # Of another type it is no number here, and nothing is guessed.
    (folder / ".metadata").write_bytes(written.replace(b"i8", b"f8"))
    done = shardwright("verify", folder, expect=1)
    assert "SW0302" in done.stdout + done.stderr


def test_objects_are_kept(shardwright, tmp_path):
    source = GOLDEN / "optimizer" / "ckpt"
    shardwright("convert", source, tmp_path / "out", "--to", "dcp", "--shards", 3)
    before, _ = read(source)
    after, _ = read(tmp_path / "out")
    objects = [name for name, value in before.items() if not torch.is_tensor(value)]
    assert before["optim.param_groups.0.betas"] is not None
    assert [name for name in objects if before[name] != after[name]] == []


def test_fsdp_dtensor_loads(shardwright, tmp_path):
    hf = GOLDEN.parent / "hf" / "qwen3_moe" / "hf"
    shardwright("convert", hf, tmp_path / "out", "--to", "fsdp_dtensor", "--shards", 4)
    state, metadata = read(tmp_path / "out" / "iter_0000000")
    weight = "model.module.decoder.layers.0.mlp.experts.linear_fc1.weight0_w"
    assert state[weight].dtype == torch.float32 and state["iteration"] == 0
    assert metadata.planner_data[weight] == ("model", weight.removeprefix("model."))
    index = {}
    for file in sorted(hf.glob("*.safetensors")):
        index.update(load_file(file))
    gate = index["model.layers.0.mlp.experts.0.gate_proj.weight"]
    assert torch.equal(state[weight], gate.float())


def test_placements_are_those_of_torch():
    assert list(lines()) == (GOLDEN / "placements.txt").read_text().splitlines()
