# SPDX-License-Identifier: Apache-2.0
"""StorageWriter(overwrite=True) replaces a checkpoint and nothing else; leftovers are told."""
import ctypes
import errno
import os
import shutil
import types
import warnings

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException

import shardwright
from shardwright.torch import StorageReader, StorageWriter
from shardwright.torch import _published


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
        with pytest.raises(CheckpointException, match=r"SW0107.* overwrite=True would"):
            save(target, 2, overwrite=True)
        assert tree(tmp_path) == before
    (path / "train.log").unlink()
    file = tmp_path / "run" / "file"
    file.write_text("precious")
    with pytest.raises(CheckpointException, match=r"SW0107.* not a folder"):
        save(file, 2, overwrite=True)
    with pytest.raises(FileExistsError, match=r"SW0107.* not a folder"):
        shardwright.convert(path, file, to="dcp", overwrite=True)
    assert file.read_text() == "precious"
    file.unlink()
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


def test_where_no_folder_can_be_is_told_by_the_path_that_was_given(tmp_path):
    (tmp_path / "file").write_text("x")
    for parent in (tmp_path / "file", "/proc/1"):
        target = f"{parent}/step"
        with pytest.raises(CheckpointException) as caught:
            save(target, 1)
        ((error, _),) = caught.value.failures.values()
        assert isinstance(error, shardwright.Error) and error.code in ("SW0101", "SW0102"), error
        assert target in error.message and ".partial" not in error.message
    # What lies in the way is named, however hidden its name.
    (tmp_path / ".step.partial").write_text("precious")
    with pytest.raises(CheckpointException, match=r"SW0107.*/\.step\.partial"):
        save(tmp_path / "step", 1)


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    real, link = tmp_path / "store" / "step", tmp_path / "latest"
    link.symlink_to(real)
    real.parent.mkdir()
    for value in (1, 2, 3):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="what was replaced")
            save(link, value, overwrite=True)
        assert link.is_symlink() and loaded(real) == [value] * 3
        assert sorted(os.listdir(tmp_path)) == ["latest", "store"]
        assert os.listdir(real.parent) == ["step"]


def calls_of(monkeypatch, act, stop=None):
    """How many calls of renames `act` makes; `stop`: the number of the one in front of which the
    process ends, counted with those behind which it does."""
    seen = []
    for owner, name in ((os, "rename"), (os, "replace"), (_published, "exchange")):

        def call(*arguments, real=getattr(owner, name)):
            for step in (lambda: None, lambda: real(*arguments)):
                if stop is not None and len(seen) == stop:
                    os._exit(9)
                seen.append(1)
                result = step()
            return result

        monkeypatch.setattr(owner, name, call)
    act()
    return len(seen)


def loaded(path):
    state = {"w": torch.zeros(3)}
    dcp.load(state, storage_reader=StorageReader(path), no_dist=True)
    return state["w"].tolist()


@pytest.mark.parametrize("can_exchange", (True, False))
def test_who_is_killed_leaves_the_old_or_the_new(tmp_path, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(_published, "exchange", lambda a, b: False)
    path, lost = tmp_path / "step", 0
    save(path, 1)
    with monkeypatch.context() as patch:
        count = calls_of(patch, lambda: save(path, 2, overwrite=True))
    assert count >= 4
    for stop in range(count):
        save(path, 1, overwrite=True)
        child = os.fork()
        if child == 0:
            try:
                calls_of(monkeypatch, lambda: save(path, 2, overwrite=True), stop)
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        if not path.exists():
            lost += 1
            continue
        assert loaded(path) in ([1.0] * 3, [2.0] * 3)
    assert lost == 0 or not can_exchange
    save(path, 3, overwrite=True)
    assert loaded(path) == [3.0] * 3 and os.listdir(tmp_path) == ["step"], "something is left"


@pytest.mark.parametrize("number", (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, None))
def test_file_systems_that_cannot_exchange(tmp_path, monkeypatch, number):
    """Or a C library that has no such call."""

    def renameat2(*_):
        ctypes.set_errno(number)
        return -1

    library = types.SimpleNamespace(**({} if number is None else {"renameat2": renameat2}))
    path = tmp_path / "step"
    save(path, 1)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **named: library)
    save(path, 2, overwrite=True)
    assert loaded(path) == [2.0] * 3 and os.listdir(tmp_path) == ["step"]


@pytest.mark.parametrize("can_exchange", (True, False))
def test_what_was_there_stays_where_the_new_cannot_be_moved(tmp_path, monkeypatch, can_exchange):
    path = tmp_path / "step"
    save(path, 1)
    if not can_exchange:
        monkeypatch.setattr(_published, "exchange", lambda a, b: False)
    with monkeypatch.context() as patch:
        count = calls_of(patch, lambda: save(path, 1, overwrite=True)) // 2
    for failing in range(count):
        seen = []
        with monkeypatch.context() as patch:
            for owner, name in ((os, "rename"), (os, "replace"), (_published, "exchange")):

                def call(*arguments, real=getattr(owner, name)):
                    seen.append(1)
                    if len(seen) == failing + 1:
                        raise OSError(errno.EIO, "Input/output error")
                    return real(*arguments)

                patch.setattr(owner, name, call)
            with pytest.raises(CheckpointException, match="Input/output error"):
                save(path, 2, overwrite=True)
        assert loaded(path) == [1.0] * 3 and os.listdir(tmp_path) == ["step"]


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


def test_a_reader_sees_what_has_replaced_what_it_has_read(tmp_path):
    path = tmp_path / "step"
    save(path, 1)
    reader, handles = StorageReader(path), set()
    for value in range(1, 8):
        save(path, value, overwrite=True)
        # Loads of trainers name the path, or don't.
        for named in ({"checkpoint_id": path}, {}):
            state = {"w": torch.zeros(3)}
            dcp.load(state, storage_reader=reader, no_dist=True, **named)
            assert state["w"].tolist() == [value] * 3
            handles.add(len(os.listdir("/proc/self/fd")))
    described = reader.read_metadata().state_dict_metadata
    writer = StorageWriter(path, overwrite=True)
    dcp.save({"v": torch.zeros(2)}, storage_writer=writer, no_dist=True)
    assert list(described) == ["w"] and list(reader.read_metadata().state_dict_metadata) == ["v"]
    assert len(handles) == 1, "files stay open"
