# SPDX-License-Identifier: Apache-2.0
"""Reading checkpoints with the software they are meant for, and comparing them bit by bit."""
import pathlib

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"


def iteration_folder(root):
    """The folder with `.metadata`: `root` itself, or the iteration that its tracker file names."""
    root = pathlib.Path(root)
    if (root / ".metadata").exists():
        return root
    iteration = int((root / "latest_checkpointed_iteration.txt").read_text())
    return root / f"iter_{iteration:07d}"


def filled_with_garbage(size, dtype):
    """A tensor of a value that no checkpoint has, so that what a load leaves out is seen."""
    tensor = torch.empty(size, dtype=dtype)
    return tensor.view(-1).view(torch.uint8).fill_(0xA5).view(dtype).view(size)


def load_dcp(root):
    """Every tensor of a torch_dist directory, as torch.distributed.checkpoint reads it."""
    reader = dcp.FileSystemReader(str(iteration_folder(root)))
    described = reader.read_metadata().state_dict_metadata
    tensors = {
        name: filled_with_garbage(entry.size, entry.properties.dtype)
        for name, entry in described.items()
        if isinstance(entry, TensorStorageMetadata)
    }
    dcp.load(tensors, storage_reader=reader, no_dist=True)
    return tensors


def load_hf(folder):
    """All tensors of a Hugging Face directory, whatever its files."""
    tensors = {}
    files = sorted(pathlib.Path(folder).glob("*.safetensors"))
    assert files, f"{folder} has no .safetensors files"
    for file in files:
        for name, tensor in load_file(file).items():
            assert name not in tensors, f"{name} is in two files"
            tensors[name] = tensor
    return tensors


def same_bits(one, other):
    """Equal as bytes: NaN equals NaN, and -0.0 is not 0.0."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    flat = [t.contiguous().view(-1).view(torch.uint8) for t in (one, other)]
    return torch.equal(*flat)


def assert_same(actual, expected):
    """The same names, and under each the same bits."""
    missing = sorted(expected.keys() - actual.keys())
    extra = sorted(actual.keys() - expected.keys())
    assert not missing and not extra, f"missing {missing}, extra {extra}"
    wrong = [
        f"{name}: {tuple(actual[name].shape)} {actual[name].dtype},"
        f" expected {tuple(tensor.shape)} {tensor.dtype}"
        for name, tensor in expected.items()
        if not same_bits(actual[name], tensor)
    ]
    assert not wrong, "bits differ: " + "; ".join(wrong)


def truth(family):
    """The global Megatron tensors that the real converter made of golden `family`."""
    return load_file(GOLDEN / "hf" / family / "megatron_global.safetensors")


def llama_shards(tp):
    """What each of `tp` tensor ranks has of the golden llama, layers numbered through: cut by
    Megatron's rules, the halves of a gated MLP each for itself."""
    parts = [{} for _ in range(tp)]
    for name, whole in truth("llama3").items():
        layers = whole if ".layers." in name else whole[None]
        for number, tensor in enumerate(layers):
            numbered = name.replace(".layers.", f".layers.{number}.")
            for part, piece in zip(parts, _cut(numbered, tensor, tp)):
                part[numbered] = piece.clone()
    return parts


def _cut(name, tensor, tp):
    if tensor.dim() == 1:
        return [tensor] * tp
    if name.endswith(("linear_proj.weight", "linear_fc2.weight")):
        return tensor.chunk(tp, 1)
    if name.endswith("linear_fc1.weight"):
        halves = [half.chunk(tp, 0) for half in tensor.chunk(2, 0)]
        return [torch.cat(pair) for pair in zip(*halves)]
    return tensor.chunk(tp, 0)
