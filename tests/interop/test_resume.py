# SPDX-License-Identifier: Apache-2.0
"""A run that was saved with StorageWriter goes on with StorageReader: tensors and plain values."""
import argparse
import collections
import datetime
import io
import os
import pathlib
import random
import zipfile

import numpy
import pytest
import torch
import torch.distributed.checkpoint as dcp
from checkpoints import GOLDEN, filled_with_garbage, same_bits
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful

import shardwright
from shardwright import _pickles
from shardwright.torch import StorageReader, StorageWriter

OURS = (StorageWriter, StorageReader)
PAIRS = {
    "ours": OURS,
    "torch-reads": (StorageWriter, dcp.FileSystemReader),
    "torch-wrote": (dcp.FileSystemWriter, StorageReader),
}


def each_pair(test):
    return pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)(test)


def assert_equal(found, expected, where="state"):
    assert type(found) is type(expected), where
    if isinstance(expected, torch.Tensor):
        assert same_bits(found, expected), where
    elif isinstance(expected, numpy.ndarray):
        assert found.dtype == expected.dtype and numpy.array_equal(found, expected), where
    elif isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key, value in expected.items():
            assert_equal(found[key], value, f"{where}.{key}")
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), where
        for at, value in enumerate(expected):
            assert_equal(found[at], value, f"{where}.{at}")
    elif isinstance(expected, io.BytesIO):
        assert found.getvalue() == expected.getvalue(), where
    else:
        assert found == expected or (found != found and expected != expected), where


def blank(value):
    """The same structure with other values."""
    if isinstance(value, torch.Tensor):
        return filled_with_garbage(value.shape, value.dtype)
    if isinstance(value, dict):
        copy = value.copy()
        copy.update({key: blank(one) for key, one in value.items()})
        return copy
    if type(value) is list:
        return [blank(one) for one in value]
    return "blank"


def round_trip(state, path, pair=OURS):
    writer, reader = pair
    dcp.save(state, storage_writer=writer(path), no_dist=True)
    loaded = blank(state)
    dcp.load(loaded, storage_reader=reader(path), no_dist=True)
    assert_equal(loaded, state)


class Trainer(Stateful):
    """A small model that has taken steps, its optimizer and its scheduler."""

    def __init__(self, seed, optimizer, steps):
        torch.manual_seed(seed)
        self.model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.LayerNorm(7))
        groups = [
            {"params": self.model[0].parameters(), "weight_decay": 0.1 + seed},
            {"params": self.model[1].parameters(), "weight_decay": 0.0},
        ]
        self.optimizer = optimizer(groups)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=9)
        for _ in range(steps):
            self.model(torch.randn(3, 5)).square().sum().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.scheduler.step()

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optimizer, "scheduler": self.scheduler.state_dict()}

    def load_state_dict(self, state):
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optim"],
        )
        self.scheduler.load_state_dict(state["scheduler"])


OPTIMIZERS = {
    "adamw": lambda groups: torch.optim.AdamW(groups, lr=1.7e-3, betas=(0.9, 0.98), amsgrad=True),
    "sgd": lambda groups: torch.optim.SGD(groups, lr=0.3, momentum=0.9, nesterov=True),
    "adagrad": lambda groups: torch.optim.Adagrad(groups, lr=0.01),
}


@each_pair
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_a_training_run_resumes(tmp_path, optimizer, pair):
    saved, fresh = Trainer(1, optimizer, steps=3), Trainer(2, optimizer, steps=1)
    state = {"trainer": saved, "epoch": 4}
    writer, reader = pair
    dcp.save(state, storage_writer=writer(tmp_path / "step"), no_dist=True)
    loaded = {"trainer": fresh, "epoch": 0}
    dcp.load(loaded, storage_reader=reader(tmp_path / "step"), no_dist=True)
    assert loaded["epoch"] == 4
    assert_equal(fresh.state_dict(), saved.state_dict())
    assert fresh.scheduler.get_last_lr() == saved.scheduler.get_last_lr()


VALUES = {
    "float": 0.1 + 0.2,
    "nan": float("nan"),
    "infinite": float("-inf"),
    "integer": -3,
    "long": 2**200 + 1,
    "flag": False,
    "none": None,
    "text": "läuft\n\0ü",
    "bytes": b"\0\xff",
    "empty": "",
    "complex": 1 - 2j,
    "tuple": (1, 2.5, None, ("a",)),
    "list": [1, 2.5, None, ["a", {"b": True}]],
    "dict": {"a": 1, "b": {"c": [torch.arange(3), 4]}},
    "dtype": torch.bfloat16,
    "size": torch.Size([2, 3]),
    "scalar": torch.tensor(1.5, dtype=torch.float64),
    "nothing": torch.empty(0, 4),
    "array": numpy.arange(6, dtype="int16").reshape(2, 3),
    "number": numpy.float32(1.25),
    "numpy_rng": numpy.random.RandomState(3).get_state(),
    "python_rng": random.Random(5).getstate(),
    "torch_rng": torch.get_rng_state(),
    "ordered": collections.OrderedDict(b=1, a=2),
    "default": collections.defaultdict(list, {"x": [1]}),
    "deque": collections.deque([1, 2], maxlen=4),
    "set": {1, 2},
    "frozen": frozenset("ab"),
    "time": datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc),
    "path": pathlib.PurePosixPath("a/b"),
    "namespace": argparse.Namespace(lr=1.0, names=["a"]),
    "stream": io.BytesIO(b"extra state"),
}


@each_pair
def test_every_plain_value_round_trips(tmp_path, pair):
    round_trip(VALUES, tmp_path / "step", pair)


@each_pair
def test_names_with_dots_and_unicode_round_trip(tmp_path, pair):
    state = {"a.b": {"c": 1, "ü 中": torch.ones(2)}, "d": [{"e.f": None}]}
    round_trip(state, tmp_path / "step", pair)


def test_compressed_values_are_read():
    path = GOLDEN / "dcp" / "zstd_twice" / "ckpt"
    names = shardwright.open(path).object_keys()
    assert names
    loaded = {name: "blank" for name in names}
    dcp.load(loaded, storage_reader=StorageReader(path), no_dist=True)
    assert "blank" not in loaded.values()


def test_a_part_of_the_state_is_loaded(tmp_path):
    state = {"a": torch.ones(3), "lr": 0.5, "other": "kept out"}
    dcp.save(state, storage_writer=StorageWriter(tmp_path / "step"), no_dist=True)
    loaded = {"lr": None}
    dcp.load(loaded, storage_reader=StorageReader(tmp_path / "step"), no_dist=True)
    assert loaded == {"lr": 0.5}
    with pytest.raises(CheckpointException, match="not_there"):
        dcp.load({"not_there": 0}, storage_reader=StorageReader(tmp_path / "step"), no_dist=True)


class RunsCode:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


class Mine:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(other) is Mine and other.value == self.value


def load_value(path, **options):
    loaded = {"x": 0}
    dcp.load(loaded, storage_reader=StorageReader(path, **options), no_dist=True)
    return loaded["x"]


def test_a_pickle_that_runs_code_is_refused(tmp_path):
    path, made = tmp_path / "step", tmp_path / "made"
    dcp.save({"x": RunsCode(made)}, storage_writer=StorageWriter(path), no_dist=True)
    with pytest.raises(CheckpointException, match=r"SW0224.*mkdir"):
        load_value(path)
    assert not made.exists()


def test_what_runs_nothing_is_read_however_it_is_spelled(tmp_path):
    """Protocol 2, torch's own, calls int `long` and range `xrange`."""
    for number, value in enumerate((range(2, 9, 3), {int}, {...}, {NotImplemented})):
        path = tmp_path / str(number)
        dcp.save({"x": value}, storage_writer=StorageWriter(path), no_dist=True)
        assert load_value(path) == value


def test_other_classes_are_allowed_as_torch_allows_them(tmp_path):
    path = tmp_path / "step"
    dcp.save({"x": Mine(3)}, storage_writer=StorageWriter(path), no_dist=True)
    with pytest.raises(CheckpointException, match=r"SW0224.*Mine"):
        load_value(path)
    assert load_value(path, weights_only=False) == Mine(3)
    with torch.serialization.safe_globals([Mine]):
        assert load_value(path) == Mine(3)


def test_a_damaged_value_is_named(tmp_path):
    path = tmp_path / "step"
    dcp.save({"lr": "z" * 500}, storage_writer=StorageWriter(path), no_dist=True)
    file = path / "__0_0.distcp"
    data = bytearray(file.read_bytes())
    at = data.index(b"z" * 400)
    data[at + 8] ^= 1
    file.write_bytes(data)
    with pytest.raises(CheckpointException, match=r"SW0314.*lr"):
        loaded = {"lr": ""}
        dcp.load(loaded, storage_reader=StorageReader(path), no_dist=True)


def test_each_bit_of_an_archives_directory(tmp_path):
    """Whatever is damaged there, the error is ours and says where."""
    buffer = io.BytesIO()
    torch.save({"lr": 0.5}, buffer)
    intact, causes = buffer.getvalue(), set()
    _pickles.check_intact(intact, "step: object lr")
    for at in range(intact.index(b"PK\1\2"), len(intact)):
        for bit in range(8):
            damaged = bytearray(intact)
            damaged[at] ^= 1 << bit
            try:
                _pickles.check_intact(bytes(damaged), "step: object lr")
            except shardwright.FormatError as error:
                assert error.code == "SW0314" and "step: object lr: " in str(error), error
                causes.add(type(error.__cause__))
    assert {UnicodeDecodeError, NotImplementedError, ValueError, zipfile.BadZipFile} <= causes


def test_a_file_that_ends_early_is_named(tmp_path):
    path = tmp_path / "step"
    dcp.save({"a": 1, "b": 2}, storage_writer=StorageWriter(path), no_dist=True)
    file = path / "__0_0.distcp"
    reader = StorageReader(path)
    reader.read_metadata()
    os.truncate(file, file.stat().st_size - 9)
    with pytest.raises(CheckpointException, match=r"SW0104"):
        dcp.load({"a": 0, "b": 0}, storage_reader=reader, no_dist=True)


def test_what_torch_cannot_hold_hinders_nobody_else(tmp_path, monkeypatch):
    """An older torch lacks newer types: the other tensors are there."""
    path = tmp_path / "step"
    state = {"a": torch.arange(3), "b": torch.zeros(4).to(torch.float8_e8m0fnu)}
    dcp.save(state, storage_writer=StorageWriter(path), no_dist=True)
    monkeypatch.delattr(torch, "float8_e8m0fnu")
    loaded = {"a": torch.zeros(3, dtype=torch.int64)}
    dcp.load(loaded, storage_reader=StorageReader(path), no_dist=True)
    assert_equal(loaded["a"], state["a"])


def test_megatrons_objects_are_offered():
    """A torch_dist checkpoint's own objects, as torch's reader gives them."""
    path = GOLDEN / "mcore" / "dense_te" / "v0.16.1" / "tp2pp2-torch_dist-full" / "iter_0000010"
    described = dcp.FileSystemReader(path).read_metadata().state_dict_metadata
    ours = StorageReader(path).read_metadata().state_dict_metadata
    assert sorted(ours) == sorted(described)
    names = [name for name, entry in described.items() if not hasattr(entry, "size")]
    assert names
    for name in names:
        expected, found = {name: "blank"}, {name: "blank"}
        dcp.load(expected, storage_reader=dcp.FileSystemReader(path), no_dist=True)
        dcp.load(found, storage_reader=StorageReader(path), no_dist=True)
        assert_equal(found[name], expected[name], name)
        assert not isinstance(found[name], str), name
