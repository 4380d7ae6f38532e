# SPDX-License-Identifier: Apache-2.0
"""Quantised twins of Hugging Face models, and what torch makes of their numbers."""
import json
import pathlib
import shutil

import torch
from safetensors.torch import save_file

import checkpoints

F8 = torch.float8_e4m3fn


def is_linear(name, tensor):
    endings = ("_proj.weight", "w1.weight", "w2.weight", "w3.weight", "_with_mqa.weight")
    return tensor.dim() == 2 and ".layers." in name and name.endswith(endings)


def spread(scales, block, shape):
    """One scale for each element, by the definition of blocks."""
    rows = torch.arange(shape[0]) // block[0]
    columns = torch.arange(shape[1]) // block[1]
    return scales[rows][:, columns]


def quantise(tensor, block):
    """Values and scales of blocks; partial ones at the edges count as blocks."""
    rows, columns = (-(-n // b) for n, b in zip(tensor.shape, block))
    scales = torch.empty(rows, columns, dtype=torch.float32)
    for r in range(rows):
        for c in range(columns):
            part = tensor[r * block[0] : (r + 1) * block[0], c * block[1] : (c + 1) * block[1]]
            scales[r, c] = part.float().abs().max() / 448
    # Not what training would choose, so that each block is seen in the result.
    scales *= 1 + 0.1 * torch.arange(rows * columns).reshape(rows, columns)
    values = (tensor.float() / spread(scales, block, tensor.shape)).to(F8)
    return values, scales


def dequantise(values, scales, block):
    return (values.to(torch.float32) * spread(scales, block, values.shape)).to(torch.bfloat16)


class Twins:
    """`quantised` and `plain`: folders with the same model, the latter multiplied out by torch."""

    def __init__(self, source, folder, method, block_of, ending="_scale_inv", store=None, extra=()):
        self.quantised, self.plain = folder / "quantised", folder / "plain"
        self.count = 0
        tensors, multiplied = {}, {}
        for name, tensor in checkpoints.load_hf(source).items():
            # Real ones hold these in float32.
            tensor = tensor.float() if name.endswith("correction_bias") else tensor
            if not is_linear(name, tensor):
                tensors[name] = multiplied[name] = tensor
                continue
            block = block_of(tensor.shape)
            values, scales = quantise(tensor, block)
            scales = scales.to(store or torch.float32)
            multiplied[name] = dequantise(values, scales.float(), block)
            tensors[name] = values
            tensors[name + ending] = scales
            for other in extra:
                tensors[name.removesuffix("weight") + other] = torch.tensor(0.5)
            self.count += 1
        assert self.count > 0
        config = json.loads((source / "config.json").read_text())
        for place, content in ((self.quantised, tensors), (self.plain, multiplied)):
            place.mkdir()
            for file in pathlib.Path(source).iterdir():
                if "safetensors" not in file.name:
                    shutil.copy(file, place)
            save_file(content, place / "model.safetensors", metadata={"format": "pt"})
        config["quantization_config"] = method
        (self.quantised / "config.json").write_text(json.dumps(config, indent=2))
