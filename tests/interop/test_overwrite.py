# SPDX-License-Identifier: Apache-2.0
"""StorageWriter(overwrite=True) replaces a checkpoint and nothing else; leftovers are told."""
import os
import shutil

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException

import shardwright
from shardwright.torch import StorageWriter


def save(path, value, **flags):
    writer = StorageWriter(path, **flags)
    dcp.save({"w": torch.full((3,), float(value))}, storage_writer=writer, no_dist=True)


def tree(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


def test_a_save_replaces_nothing_but_a_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run" / "step"
    save(path, 1)
    (path / "train.log").write_text("precious")
    before = tree(tmp_path)
    for target in (path, path.parent):
        with pytest.raises(CheckpointException, match="SW0107"):
            save(target, 2, overwrite=True)
        assert tree(tmp_path) == before
    (path / "train.log").unlink()
    monkeypatch.chdir(path)
    with pytest.raises(CheckpointException, match="current directory"):
        save(path, 2, overwrite=True)
    monkeypatch.chdir(tmp_path)
    # Somebody's own folder of that name is not taken for an old copy.
    (path.parent / ".step.old").mkdir()
    (path.parent / ".step.old" / "notes").write_text("precious")
    save(path, 2, overwrite=True)
    assert sorted(os.listdir(path.parent)) == [".step.old", "step"]
    assert (path.parent / ".step.old" / "notes").read_text() == "precious"


def test_what_cannot_be_removed_is_told(tmp_path, monkeypatch):
    path = tmp_path / "step"
    save(path, 1)
    monkeypatch.setattr(shutil, "rmtree", lambda *args, **flags: None)
    with pytest.warns(UserWarning, match=r"could not be removed: .*\.step\.old"):
        save(path, 2, overwrite=True)


def test_running_out_of_memory_is_a_memory_error():
    error = shardwright._errors.make("SW0113", "out of memory")
    assert isinstance(error, MemoryError) and isinstance(error, shardwright.OutOfMemoryError)
    assert error.code == "SW0113"
