# SPDX-License-Identifier: Apache-2.0
"""Legal but unusual directories, written byte by byte: torch reads them, so must we."""
import minidcp
import pytest
import torch

import checkpoints

# what is unusual -> (arguments of an item, arguments of the metadata, bytes between items)
VARIANTS = {
    "plain": ({}, {}, 0),
    "modern_classes": ({}, {"profile": "modern"}, 0),
    "protocol_2": ({}, {"proto": 2}, 0),
    "framed": ({}, {"frame": True}, 0),
    "no_memo": ({}, {"memo": False}, 0),
    "no_chunk_index": ({}, {"index": False}, 0),
    "tuple_sizes": ({}, {"size": tuple}, 0),
    "empty_planner_data": ({}, {"planner_data": "empty"}, 0),
    "storage_meta": ({}, {"storage_meta": True, "version": "1.0.0"}, 0),
    "no_transforms": ({}, {"transform": "none"}, 0),
    "gaps": ({}, {}, 1000),
    "no_zip64_end": ({"eocd64": False}, {}, 0),
    "known_sizes": ({"style": "known"}, {}, 0),
    "python_zipfile": ({"style": "plain"}, {}, 0),
    "page_aligned": ({"align": 4096}, {}, 0),
    "other_prefix": ({"prefix": "weights"}, {}, 0),
    "few_records": ({"variant": "minimal"}, {}, 0),
    "version_first": ({"variant": "version_first"}, {}, 0),
    "data_before_pickle": ({"variant": "data_before_pkl"}, {}, 0),
    "untyped_storage": ({"v3": True}, {}, 0),
}


def write(folder, tensors, item, metadata, gap):
    """Each tensor as two chunks along its first axis, the later one first in the file."""
    folder.mkdir()
    described, blob = [], bytearray()
    for name, tensor in tensors.items():
        chunks, begin = [], tensor.shape[0]
        for part in reversed(tensor.split((tensor.shape[0] + 1) // 2)):
            begin -= part.shape[0]
            data = part.contiguous().view(torch.uint8).numpy().tobytes()
            dtype = str(part.dtype).removeprefix("torch.")
            blob += b"\xff" * gap
            packed = minidcp.item(dtype, tuple(part.shape), data, base=len(blob), **item)
            offsets = (begin,) + (0,) * (part.dim() - 1)
            chunks.append((offsets, tuple(part.shape), "__0_0.distcp", len(blob), len(packed)))
            blob += packed
        described.append((name, dtype, tuple(tensor.shape), chunks))
    (folder / "__0_0.distcp").write_bytes(blob)
    (folder / ".metadata").write_bytes(minidcp.metadata(described, [], **metadata))


@pytest.mark.parametrize("name", VARIANTS)
def test_we_read_what_torch_reads(shardwright, tmp_path, name):
    item, metadata, gap = VARIANTS[name]
    torch.manual_seed(1)
    tensors = {
        "layer.weight": torch.randn(5, 3).to(torch.bfloat16),
        "layer.bias": torch.randn(7),
        "steps": torch.arange(6).reshape(3, 2),
    }
    write(tmp_path / "in", tensors, item, metadata, gap)
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "in"), tensors)
    shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", "safetensors")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "out"), tensors)


def test_compressed_items_are_refused_by_name(shardwright, tmp_path):
    """torch inflates them in memory; we would have to as well, so we say which item it is."""
    write(tmp_path / "in", {"layer.weight": torch.zeros(500)}, {"deflate": True}, {}, 0)
    done = shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", "safetensors", expect=2)
    assert "SW0211" in done.stderr and "layer.weight" in done.stderr
    assert not (tmp_path / "out").exists()
