# SPDX-License-Identifier: Apache-2.0
"""Saves by StorageWriter to one path of which one begins before another is done."""
import concurrent.futures
import errno
import fcntl
import os
import pickle
import shutil
import subprocess
import sys
import threading

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import DefaultSavePlanner
from torch.distributed.checkpoint.api import CheckpointException

from shardwright.torch import StorageReader, StorageWriter
from shardwright.torch import _published, _writer


def save(path, value, planner=None, writer=None):
    state = {f"w{i}": torch.full((1000,), float(value)) for i in range(4)}
    writer = writer or StorageWriter(path, overwrite=True)
    dcp.save(state, storage_writer=writer, planner=planner, no_dist=True)


def loaded(path):
    state = {f"w{i}": torch.zeros(1000) for i in range(4)}
    dcp.load(state, storage_reader=StorageReader(path), no_dist=True)
    return {value for tensor in state.values() for value in tensor.tolist()}


class Held:
    """Stops the first call of a method until `go_on`."""

    def __init__(self, monkeypatch, owner, name):
        self.is_there, self._go = threading.Event(), threading.Event()
        real = getattr(owner, name)

        def method(*arguments, **named):
            if not self.is_there.is_set():
                self.is_there.set()
                assert self._go.wait(60)
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, method)

    def go_on(self):
        self._go.set()


def no_locks(*_):
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize("where", ((_writer.ItemFile, "write"), (StorageWriter, "finish")))
@pytest.mark.parametrize("has_locks", (True, False))
@pytest.mark.parametrize("same_writer", (False, True))
def test_the_second_is_refused(tmp_path, monkeypatch, where, has_locks, same_writer):
    path = tmp_path / "latest"
    if not has_locks:
        monkeypatch.setattr(fcntl, "flock", no_locks)
    save(path, 1)
    held, writer = Held(monkeypatch, *where), StorageWriter(path, overwrite=True)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(save, path, 2, writer=writer)
        assert held.is_there.wait(60)
        with pytest.raises(CheckpointException, match="SW0107.*latest: another save"):
            save(path, 3, writer=writer if same_writer else None)
        assert loaded(path) == {1.0}
        held.go_on()
        first.result()
    assert loaded(path) == {2.0} and os.listdir(tmp_path) == ["latest"]
    save(path, 4, writer=writer)
    assert loaded(path) == {4.0} and os.listdir(tmp_path) == ["latest"]
    descriptor = os.open(path, os.O_RDONLY)
    assert not has_locks or fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB) is None
    os.close(descriptor)


def test_other_processes_are_seen(tmp_path):
    path = tmp_path / "latest"
    program = """if True:
        import sys, torch, torch.distributed.checkpoint as dcp
        from shardwright.torch import StorageWriter, _writer
        def wait(self):
            print("there", flush=True)
            sys.stdin.readline()
        _writer.ItemFile.write = wait
        dcp.save({"w": torch.ones(3)}, storage_writer=StorageWriter(sys.argv[1]), no_dist=True)
    """
    command = [sys.executable, "-c", program, str(path)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "there\n"
    with pytest.raises(CheckpointException, match="SW0107.*latest: another save"):
        save(path, 1)
    other.kill()
    other.communicate()
    assert os.listdir(tmp_path) == [".latest.partial"], "what a killed save leaves"
    save(path, 2)
    assert loaded(path) == {2.0} and os.listdir(tmp_path) == ["latest"]


def test_a_folder_that_is_a_checkpoint_by_now_is_left_alone(tmp_path, monkeypatch):
    """Another save ends between two steps of this one's beginning."""
    hidden, locked, real = tmp_path / ".latest.partial", [], fcntl.flock
    hidden.mkdir()
    (hidden / "data").write_text("of another")

    def flock(*arguments):
        if not locked:
            hidden.rename(tmp_path / "latest")
        locked.append(1)
        return real(*arguments)

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(CheckpointException, match="SW0107"):
        save(tmp_path / "latest", 1, writer=StorageWriter(tmp_path / "latest"))
    assert len(locked) == 2 and (tmp_path / "latest" / "data").read_text() == "of another"
    assert os.listdir(tmp_path) == ["latest"]


class Unplannable(DefaultSavePlanner):
    def create_global_plan(self, all_plans):
        raise RuntimeError("spoilt")


class Unfinished(DefaultSavePlanner):
    """Fails where a writer is not told, as it isn't of another rank's failure."""

    def finish_plan(self, central_plan):
        raise RuntimeError("spoilt")


class Unwritable(DefaultSavePlanner):
    def resolve_data(self, write_item):
        raise RuntimeError("spoilt")


@pytest.mark.parametrize("planner", (Unplannable, Unwritable))
def test_a_save_that_failed_is_in_nobodys_way(tmp_path, planner):
    path, writer = tmp_path / "latest", StorageWriter(tmp_path / "latest")
    with pytest.raises(CheckpointException, match="spoilt") as caught:
        save(path, 1, planner(), writer)
    assert os.listdir(tmp_path) == []
    save(path, 2)  # while the first writer is still there, in `caught` too
    assert loaded(path) == {2.0} and caught


def test_a_save_that_failed_at_its_end_is_in_nobodys_way(tmp_path, monkeypatch):
    path, writer = tmp_path / "latest", StorageWriter(tmp_path / "latest")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_locks)
        with pytest.raises(CheckpointException) as caught:
            save(path, 1, writer=writer)
    save(path, 2)
    assert loaded(path) == {2.0} and caught


def test_what_a_killed_save_left_is_cleared(tmp_path):
    left = tmp_path / ".latest.partial"
    (left / "folder").mkdir(parents=True)
    for name in ("__0_0.distcp", "folder/file"):
        (left / name).write_text("left")
    save(tmp_path / "latest", 1)
    assert sorted(os.listdir(tmp_path / "latest")) == [".metadata", "__0_0.distcp"]


def test_links_in_its_place_are_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "notes").write_text("precious")
    (tmp_path / ".latest.partial").symlink_to(tmp_path / "precious")
    with pytest.raises(CheckpointException, match="Not a directory"):
        save(tmp_path / "latest", 1)
    assert (tmp_path / "precious" / "notes").read_text() == "precious"


def fail(path, writer):
    with pytest.raises(CheckpointException, match="spoilt"):
        save(path, 1, Unfinished(), writer)
    assert os.listdir(path.parent) == [f".{path.name}.partial"]


@pytest.mark.parametrize("other_writer", (False, True))
@pytest.mark.parametrize("target", ("latest", "next"))
def test_a_save_that_another_rank_failed_is_in_nobodys_way(tmp_path, other_writer, target):
    path, writer = tmp_path / "latest", StorageWriter(tmp_path / "latest")
    fail(path, writer)
    following = StorageWriter(tmp_path) if other_writer else writer
    dcp.save({f"w{i}": torch.full((1000,), 2.0) for i in range(4)}, storage_writer=following,
             checkpoint_id=tmp_path / target, no_dist=True)  # fmt: skip
    assert loaded(tmp_path / target) == {2.0} and os.listdir(tmp_path) == [target]


def test_nor_is_one_whose_thread_has_ended(tmp_path):
    path, writer = tmp_path / "latest", StorageWriter(tmp_path / "latest")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(fail, path, writer).result()
        # It might go on, for all that is known.
        with pytest.raises(CheckpointException, match="SW0107.*latest: another save"):
            save(path, 2)
    save(path, 2)
    assert loaded(path) == {2.0} and os.listdir(tmp_path) == ["latest"] and writer


def test_a_forked_process_ends_no_save_of_the_one_that_it_was_forked_from(tmp_path, monkeypatch):
    path, writer = tmp_path / "latest", StorageWriter(tmp_path / "latest")
    held = Held(monkeypatch, _writer.ItemFile, "write")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(save, path, 1, writer=writer)
        assert held.is_there.wait(60)
        child = os.fork()
        if child == 0:
            try:
                save(tmp_path / "other", 2)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        held.go_on()
        first.result()
    assert loaded(path) == {1.0} and loaded(tmp_path / "other") == {2.0}


def test_steps_of_one_save_in_several_threads(tmp_path, monkeypatch):
    """What plans in one thread and writes in another may plan the next meanwhile."""
    path, planner = tmp_path / "latest", DefaultSavePlanner()
    writer = StorageWriter(path)
    writer.reset()
    planner.set_up_planner({"w": torch.ones(3)}, is_coordinator=True)
    writer.set_up_storage_writer(True)
    plan = writer.prepare_local_plan(planner.create_local_plan())
    plans, metadata = planner.create_global_plan([plan])
    (plan,) = writer.prepare_global_plan(plans)
    held = Held(monkeypatch, _writer.ItemFile, "write")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(writer.write_data, planner.finish_plan(plan), planner)
        assert held.is_there.wait(60)
        save(tmp_path / "next", 2)
        held.go_on()
        results = first.result().value()
    writer.finish(metadata, [results])
    state = {"w": torch.zeros(3)}
    dcp.load(state, storage_reader=StorageReader(path), no_dist=True)
    assert state["w"].tolist() == [1.0] * 3 and loaded(tmp_path / "next") == {2.0}


def test_one_writer_writes_to_several_folders_at_once(tmp_path, monkeypatch):
    writer, held = StorageWriter(tmp_path / "none"), Held(monkeypatch, _writer.ItemFile, "write")

    def save_as(name, value):
        state = {f"w{i}": torch.full((1000,), float(value)) for i in range(4)}
        dcp.save(state, storage_writer=writer, checkpoint_id=tmp_path / name, no_dist=True)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(save_as, "one", 1)
        assert held.is_there.wait(60)
        save_as("two", 2)
        assert writer.checkpoint_id == tmp_path / "two"
        held.go_on()
        first.result()
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]
    assert loaded(tmp_path / "one") == {1.0} and loaded(tmp_path / "two") == {2.0}
    with pytest.raises(CheckpointException, match="SW0107.*two: found something there"):
        save(None, 3, writer=writer)  # to where the last one went


def test_a_writer_can_be_sent_to_another_process(tmp_path):
    """As torch's async saves in a process do."""
    path, writer = tmp_path / "latest", StorageWriter(tmp_path)
    with pytest.raises(CheckpointException, match="spoilt"):
        dcp.save({"w": torch.ones(3)}, storage_writer=writer, checkpoint_id=path,
                 planner=Unfinished(), no_dist=True)  # fmt: skip
    sent = pickle.loads(pickle.dumps(writer))
    assert sent.checkpoint_id == path
    save(path, 2, writer=sent)
    assert loaded(path) == {2.0} and os.listdir(tmp_path) == ["latest"]


def test_the_rank_that_failed_is_what_others_tell(tmp_path, monkeypatch):
    """It removes what the others write, file by file, before the folder is gone."""
    real = _writer.ItemFile.write

    def write(file):
        os.unlink(file.path)
        real(file)

    monkeypatch.setattr(_writer.ItemFile, "write", write)
    with pytest.raises(CheckpointException, match="SW0109.*latest: .* by a rank that failed"):
        save(tmp_path / "latest", 1)


NAMES = ("n" * 246, "n" * 247, "n" * 255, "\u00fc" * 127, "\u4e2d" * 85)


@pytest.mark.parametrize("name", NAMES, ids=lambda name: f"{name[0]}{len(name)}")
def test_names_may_be_as_long_as_any(tmp_path, monkeypatch, name):
    path, held = tmp_path / name, Held(monkeypatch, _writer.ItemFile, "write")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(save, path, 1)
        assert held.is_there.wait(60)
        (meanwhile,) = os.listdir(tmp_path)
        assert meanwhile.startswith(f".{name[:70]}") and meanwhile.endswith(".partial")
        assert len(os.fsencode(meanwhile)) <= 255
        # Another of the same beginning is another.
        save(tmp_path / (name[:-1] + "x"), 3)
        held.go_on()
        first.result()
    shutil.copytree(path, _published.hidden(path, ".old"))
    save(path, 2)
    assert loaded(path) == {2.0} and loaded(tmp_path / (name[:-1] + "x")) == {3.0}
    assert len(os.listdir(tmp_path)) == 2, "what a killed save had replaced is still there"
