# SPDX-License-Identifier: Apache-2.0
"""Items of `.distcp` files that are written out of memory, read by torch itself."""
import io
import os

import pytest
import torch

import shardwright
from shardwright.torch._items import ItemFile, Staging, share_of_processors

VALUES = {
    "matrix": torch.randn(3000, 1000, dtype=torch.bfloat16),  # several runs of a thread
    "scalar": torch.tensor(3.5),
    "empty": torch.zeros(0, 4),
    "transposed": torch.randn(5, 7).t(),
    "part": torch.arange(100)[10:20],
    "parameter": torch.nn.Parameter(torch.randn(3)),
    "conjugate": torch.randn(4, dtype=torch.complex64).conj(),
    "flags": torch.tensor([True, False, True]),
    "bytes": torch.arange(9, dtype=torch.uint8),
    "eighth": torch.randn(16).to(torch.float8_e4m3fn),
    "quantised": torch.quantize_per_tensor(torch.arange(4.0), 0.5, 0, torch.qint8),  # torch's own
}


def items():
    blob = io.BytesIO()
    torch.save({"step": 3}, blob)
    return [("object", blob), ("nothing", io.BytesIO()), *VALUES.items()]


def same(one, other):
    if one.dtype == torch.float8_e4m3fn:
        one, other = one.view(torch.uint8), other.view(torch.uint8)
    return one.dtype == other.dtype and torch.equal(one, other)


@pytest.mark.parametrize("staged_bytes", (None, 0, 3000, 1 << 30))
@pytest.mark.parametrize("threads", (1, 3))
def test_torch_reads_what_was_written(tmp_path, staged_bytes, threads):
    written = items()
    file = ItemFile(tmp_path, "__0_0.distcp", written, threads)
    if staged_bytes is not None:
        assert file.stage(Staging(staged_bytes)) <= staged_bytes
    file.write()
    raw = (tmp_path / "__0_0.distcp").read_bytes()
    assert len(raw) == file.bytes == sum(length for _, length in file.places)
    for (name, value), (offset, length) in zip(written, file.places):
        item = raw[offset : offset + length]
        if not isinstance(value, torch.Tensor):
            assert item == value.getvalue(), name
            continue
        loaded = torch.load(io.BytesIO(item), weights_only=True)
        assert loaded.shape == value.shape and same(loaded, value.detach()), name


def test_what_was_staged_may_change(tmp_path):
    tensor = torch.ones(1000)
    file = ItemFile(tmp_path, "file", [("tensor", tensor), ("late", tensor)])
    assert file.stage(Staging(4000)) == 4000  # the second is written at once
    tensor.zero_()
    file.write()
    raw = (tmp_path / "file").read_bytes()
    for offset, length in file.places:
        loaded = torch.load(io.BytesIO(raw[offset : offset + length]), weights_only=True)
        assert loaded.eq(1).all()


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "file").write_bytes(b"kept")
    with pytest.raises(shardwright.StorageError, match="SW0107"):
        ItemFile(tmp_path, "file", items())
    assert (tmp_path / "file").read_bytes() == b"kept"
    with pytest.raises(shardwright.StorageError, match="SW0101"):
        ItemFile(tmp_path / "missing", "file", items())


def test_ranks_of_a_machine_share_its_processors(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 24)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(24)))
    shares = {}
    for told in ("1", "4", "24", "100", "0", "many"):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", told)
        shares[told] = share_of_processors()
    assert shares == {"1": 16, "4": 6, "24": 1, "100": 1, "0": 16, "many": 16}
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 4})
    assert share_of_processors() == 2, "those that this rank may run on"
