# SPDX-License-Identifier: Apache-2.0
"""Tensors of other classes than torch's own: their values are saved, or nothing."""
import io

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException

from computed_tensors import Elsewhere, Float8Tensor, InheritedFloat8, OnlyHere, Tagged, Wide
import shardwright as package
from shardwright.torch import StorageReader, StorageWriter
from shardwright.torch._items import ItemFile, Staging


def saved(path, state):
    dcp.save(state, storage_writer=StorageWriter(path), no_dist=True)


@pytest.mark.parametrize("kind", (Float8Tensor, InheritedFloat8))
@pytest.mark.parametrize("reader", (dcp.FileSystemReader, StorageReader))
def test_values_are_saved(shardwright, tmp_path, kind, reader):
    weight, norm = kind.random(6, 8), torch.ones(8, dtype=torch.bfloat16)
    saved(tmp_path / "step", {"w": weight, "norm": norm})
    shardwright("verify", tmp_path / "step")
    loaded = {"w": torch.zeros(6, 8, dtype=torch.bfloat16), "norm": torch.zeros_like(norm)}
    dcp.load(loaded, storage_reader=reader(tmp_path / "step"), no_dist=True)
    assert torch.equal(loaded["w"], weight.dequantize()) and torch.equal(loaded["norm"], norm)


def test_copies_on_the_cpu_are_saved(tmp_path):
    saved(tmp_path / "step", {"w": torch.arange(4.0).as_subclass(Elsewhere)})
    loaded = {"w": torch.zeros(4)}
    dcp.load(loaded, storage_reader=StorageReader(tmp_path / "step"), no_dist=True)
    assert torch.equal(loaded["w"], torch.arange(4.0))


@pytest.mark.parametrize("staged_bytes", (0, 40, 1 << 20))
def test_values_are_those_of_the_moment(tmp_path, staged_bytes):
    """Of staging: what the job does afterwards is in no file."""
    weights = [Float8Tensor.random(3, 5), Float8Tensor.random(3, 5)]
    truth = [weight.dequantize() for weight in weights]
    file = ItemFile(tmp_path, "file", [(f"w{i}", one) for i, one in enumerate(weights)])
    assert file.stage(Staging(staged_bytes)) == {0: 0, 40: 30, 1 << 20: 60}[staged_bytes]
    for weight in weights:
        weight._data.fill_(0)
    file.write()
    raw = (tmp_path / "file").read_bytes()
    for (offset, length), values in zip(file.places, truth):
        item = io.BytesIO(raw[offset : offset + length])
        assert torch.equal(torch.load(item, weights_only=True), values)


@pytest.mark.parametrize(
    "tensor,says",
    (
        (Wide.random(2, 3), "found float32 (2, 3) of a Wide, expected bfloat16 (2, 3)"),
        (torch.ones(3).as_subclass(Tagged), "found a Tagged, which torch.load does not give back"),
        (torch.ones(3).as_subclass(OnlyHere), "found a OnlyHere"),
        (torch.eye(3).to_sparse(), "found layout sparse_coo, which dcp.load does not fill"),
    ),
)
def test_what_nobody_could_load_is_refused(tmp_path, tensor, says):
    with pytest.raises(CheckpointException, match="SW0409") as caught:
        saved(tmp_path / "step", {"model": {"w": tensor}, "norm": torch.ones(8)})
    assert f"tensor model.w: {says}" in str(caught.value)
    assert list(tmp_path.iterdir()) == [], "something was left"


@pytest.mark.parametrize("writer", (StorageWriter, dcp.FileSystemWriter))
def test_types_that_only_torch_knows_hinder_nobody_else(shardwright, tmp_path, writer):
    quantised = torch.quantize_per_tensor(torch.arange(4.0), 0.5, 0, torch.qint8)
    state, path = {"q": quantised, "w": torch.arange(3.0), "step": 7}, tmp_path / "step"
    dcp.save(state, storage_writer=writer(path), no_dist=True)
    loaded = {"w": torch.zeros(3), "step": 0}
    dcp.load(loaded, storage_reader=StorageReader(path), no_dist=True)
    assert torch.equal(loaded["w"], state["w"]) and loaded["step"] == 7
    checkpoint = package.open(path, "pt")
    assert "q" in checkpoint and checkpoint.keys() == ["w"]
    for use in (
        lambda: checkpoint["q"],
        lambda: checkpoint.shape_of("q"),
        lambda: dcp.load({"q": quantised.clone()}, storage_reader=StorageReader(path), no_dist=True),
    ):
        with pytest.raises((package.Error, CheckpointException), match="SW0409.* tensor q: found dtype torch.qint8"):
            use()
    # A conversion would leave it behind.
    assert "SW0409" in shardwright("convert", path, tmp_path / "out", "--to", "safetensors", expect=2).stderr


def test_what_torch_loads_is_kept(tmp_path):
    """Quantised types, and classes that the user allows."""
    quantised, empty = (
        torch.quantize_per_tensor(values, 0.5, 0, torch.qint8)
        for values in (torch.arange(4.0), torch.zeros(4))
    )
    saved(tmp_path / "step", {"w": quantised})
    dcp.load({"w": empty}, storage_reader=dcp.FileSystemReader(tmp_path / "step"), no_dist=True)
    assert torch.equal(empty.dequantize(), torch.arange(4.0))
    with torch.serialization.safe_globals([Tagged]):
        saved(tmp_path / "tagged", {"w": torch.ones(3).as_subclass(Tagged)})
        loaded = {"w": torch.zeros(3)}
        dcp.load(loaded, storage_reader=dcp.FileSystemReader(tmp_path / "tagged"), no_dist=True)
    assert torch.equal(loaded["w"], torch.ones(3))


@pytest.mark.parametrize("is_async", (False, True))
def test_megatron_saves_values(shardwright, ranks, tmp_path, is_async):
    ranks("training_jobs", "save_float8", 2, root=tmp_path, is_async=is_async)
    shardwright("verify", tmp_path / "ours")
