# SPDX-License-Identifier: Apache-2.0
"""Linear layers as packed releases store them, and what they mean by the formats' definitions."""
import json
import pathlib
import shutil

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from safetensors.torch import save_file

import checkpoints
import quantised

E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
E2M1 = torch.cat([E2M1, -E2M1])
AWQ_COLUMNS = [0, 2, 4, 6, 1, 3, 5, 7]  # of eight columns, from the lowest four bits of a word on


class Packed:
    """`quantised` and `plain`: folders with the same model, in the latter multiplied out.

    `store(name, weight)` gives the stored tensors of `weight`, by the endings of their names behind
    the module's, and the plain one; `takes(name, weight)` says of which there are any."""

    def __init__(self, source, folder, method, store, takes=quantised.is_linear):
        self.quantised, self.plain = folder / "quantised", folder / "plain"
        self.count = 0
        tensors, multiplied = {}, {}
        for name, tensor in checkpoints.load_hf(source).items():
            if not takes(name, tensor):
                tensors[name] = multiplied[name] = tensor
                continue
            stored, plain = store(name, tensor)
            for ending, part in stored.items():
                tensors[name.removesuffix("weight") + ending] = part.contiguous()
            multiplied[name] = plain.contiguous()
            self.count += 1
        assert self.count > 0
        config = json.loads((pathlib.Path(source) / "config.json").read_text())
        for place, content in ((self.quantised, tensors), (self.plain, multiplied)):
            place.mkdir(parents=True)
            for file in pathlib.Path(source).iterdir():
                if "safetensors" not in file.name:
                    shutil.copy(file, place)
            save_file(content, place / "model.safetensors", metadata={"format": "pt"})
        config["quantization_config"] = method
        (self.quantised / "config.json").write_text(json.dumps(config, indent=2))

    def change(self, edit):
        """Writes the quantised tensors again, as `edit(tensors)` leaves them."""
        file = self.quantised / "model.safetensors"
        tensors = checkpoints.load_hf(self.quantised)
        edit(tensors)
        save_file(tensors, file, metadata={"format": "pt"})


class CompressedTensors:
    """What the package compressed-tensors stores, and what it makes of that again."""

    def __init__(self, format, dtype=torch.bfloat16, **weights):
        self.args = QuantizationArgs(**weights)
        self.scheme = QuantizationScheme(targets=["Linear"], weights=self.args)
        self.compressor = BaseCompressor.get_value_from_registry(format)
        self.dtype = dtype
        self.method = {
            "quant_method": "compressed-tensors",
            "format": format,
            "quantization_status": "compressed",
            "config_groups": {"group_0": json.loads(self.scheme.model_dump_json())},
            "ignore": ["lm_head"],
        }

    def groups_of(self, weight):
        strategy = str(self.args.strategy)
        if strategy == "tensor":
            return weight.flatten().unsqueeze(0)
        if strategy == "channel":
            return weight.unsqueeze(1)
        return weight.unflatten(-1, (-1, self.args.group_size))

    def store(self, name, weight):
        parts = self.groups_of(weight.float())
        largest = parts.abs().amax(-1) + 1e-3
        seed = torch.Generator().manual_seed(len(name))
        state = {"weight": weight.to(self.dtype)}
        if str(self.args.type) == "int":
            top = 2 ** (self.args.num_bits - 1)
            state["weight_scale"] = (largest / (top - 0.5)).to(self.dtype)
            if not self.args.symmetric:
                shape = state["weight_scale"].shape
                zeros = torch.randint(-top, top, shape, generator=seed, dtype=torch.int8)
                state["weight_zero_point"] = zeros
        elif self.args.num_bits == 8:
            state["weight_scale"] = (largest / 448).to(self.dtype)
        elif self.args.group_size == 16:
            total = (448 * 6 / weight.float().abs().max()).reshape(1)
            state["weight_global_scale"] = total
            state["weight_scale"] = (largest / 6 * total).to(torch.float8_e4m3fn).float()
        else:
            state["weight_scale"] = torch.exp2(torch.floor(torch.log2(largest)) - 2)
        stored = self.compressor.compress(state, self.scheme)
        plain = self.compressor.decompress(stored, self.scheme)["weight"]
        return stored, plain


def pack(values, bits, axis, order=None):
    """Neighbours along an axis as words of 32 bits; `order` are the positions from the lowest on."""
    per_word = 32 // bits
    moved = values.long().movedim(axis, -1).unflatten(-1, (-1, per_word))
    if order is not None:
        moved = moved[..., order]
    words = (moved << (torch.arange(per_word) * bits)).sum(-1)
    words = torch.where(words >= 2**31, words - 2**32, words)
    return words.to(torch.int32).movedim(-1, axis).contiguous()


class Gptq:
    """`q * scale - zero * scale` of columns in groups, written down as gptq says."""

    def __init__(self, bits, group, is_ordered=False, version=1, dtype=torch.float16, has_order=True):
        self.bits, self.group, self.is_ordered, self.dtype = bits, group, is_ordered, dtype
        self.version, self.has_order = version, has_order
        self.method = {
            "quant_method": "gptq",
            "bits": bits,
            "group_size": group,
            "desc_act": is_ordered,
            "sym": False,
        }
        if version == 2:
            self.method["checkpoint_format"] = "gptq_v2"

    def store(self, name, weight):
        rows, columns = weight.shape
        group = columns if self.group == -1 else self.group
        groups = -(-columns // group)
        seed = torch.Generator().manual_seed(len(name))
        order = torch.arange(columns) // group
        if self.is_ordered:
            order = order[torch.randperm(columns, generator=seed)]
        most = 2**self.bits
        one_in_each = (2**32 - 1) // (most - 1)
        # GPTQModel makes version 1 of version 2 by taking one in each place from whole words, so a
        # zero of 0 borrows from the next; and version 2 again by adding it.
        zeros = torch.randint(0, most, (groups, rows), generator=seed)
        largest = weight.float().abs().amax(1, keepdim=True).T.expand(groups, rows) / most
        scales = (largest * (1 + torch.arange(groups).unsqueeze(1) / 7)).to(self.dtype)
        values = torch.randint(0, most, (columns, rows), generator=seed)
        stored = {
            "qweight": pack(values, self.bits, 0),
            "qzeros": pack(zeros, self.bits, 1) - (one_in_each if self.version == 1 else 0),
            "scales": scales,
        }
        if self.has_order:
            stored["g_idx"] = order.to(torch.int32)
        plain = (values - zeros[order]).float() * scales[order].float()
        return stored, plain.T.to(torch.bfloat16)


def of_auto_round(maker, packing_format):
    """The same tensors as AutoRound's config describes them."""
    for key in ("checkpoint_format", "desc_act", "version", "zero_point"):
        maker.method.pop(key, None)
    maker.method |= {"quant_method": "auto-round", "packing_format": packing_format}
    maker.method |= {"data_type": "int", "act_bits": 16, "sym": False}
    maker.method["extra_config"] = {"lm_head": {"bits": 16, "data_type": "float"}}
    return maker


class Awq:
    def __init__(self, group, dtype=torch.float16):
        self.group, self.dtype = group, dtype
        self.method = {
            "quant_method": "awq",
            "bits": 4,
            "group_size": group,
            "version": "gemm",
            "zero_point": True,
        }

    def store(self, name, weight):
        rows, columns = weight.shape
        group = columns if self.group == -1 else self.group
        seed = torch.Generator().manual_seed(len(name))
        zeros = torch.randint(0, 16, (columns // group, rows), generator=seed)
        values = torch.randint(0, 16, (columns, rows), generator=seed)
        scales = (torch.rand(zeros.shape, generator=seed) / 50).to(self.dtype)
        order = torch.arange(columns) // group
        stored = {
            "qweight": pack(values, 4, 1, AWQ_COLUMNS),
            "qzeros": pack(zeros, 4, 1, AWQ_COLUMNS),
            "scales": scales,
        }
        plain = (values - zeros[order]).float() * scales[order].float()
        return stored, plain.T.to(torch.bfloat16)


def spread_e2m1(bytes):
    """Two values a byte, the first one in its lower half."""
    pairs = torch.stack([bytes & 15, bytes >> 4], dim=-1).flatten(-2)
    return E2M1[pairs.long()]


class ModelOptNvfp4:
    method = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}

    def store(self, name, weight):
        rows, columns = weight.shape
        seed = torch.Generator().manual_seed(len(name))
        bytes = torch.randint(0, 256, (rows, columns // 2), generator=seed, dtype=torch.uint8)
        scales = (torch.rand(rows, columns // 16, generator=seed) * 400).to(torch.float8_e4m3fn)
        second = torch.rand((), generator=seed) / 3000
        factors = (scales.float() * second).repeat_interleave(16, dim=1)
        stored = {
            "weight": bytes,
            "weight_scale": scales,
            "weight_scale_2": second,
            "input_scale": torch.tensor(0.5),
        }
        return stored, (spread_e2m1(bytes) * factors).to(torch.bfloat16)


def holds_experts(name, tensor):
    return tensor.dim() == 3 and name.endswith((".experts.gate_up_proj", ".experts.down_proj"))


class ModelOptNvfp4Experts(ModelOptNvfp4):
    """Of one parameter for all experts, [experts, inputs, outputs]: each is quantised with its inputs
    last, then axes are put back, those of bytes and scales too."""

    def store(self, name, weight):
        stored, plain = super().store(name, weight.mT.flatten(0, 1))

        def back(part):
            return part.unflatten(0, (weight.shape[0], -1)).mT.contiguous()

        return {
            "": back(stored["weight"]),
            "_weight_scale": back(stored["weight_scale"].view(torch.uint8)).view(torch.float8_e4m3fn),
            "_weight_scale_2": stored["weight_scale_2"],
            "_input_scale": stored["input_scale"],
        }, back(plain)


class DeepSeekV4:
    """Experts of fp4 in groups of 32, all else of e4m3 in blocks; exponents for scales."""

    method = {
        "quant_method": "fp8",
        "fmt": "e4m3",
        "scale_fmt": "ue8m0",
        "activation_scheme": "dynamic",
        "weight_block_size": [128, 128],
    }

    def store(self, name, weight):
        rows, columns = weight.shape
        seed = torch.Generator().manual_seed(len(name))
        if ".experts." in name:
            bytes = torch.randint(0, 256, (rows, columns // 2), generator=seed, dtype=torch.uint8)
            codes = torch.randint(110, 130, (rows, columns // 32), generator=seed, dtype=torch.uint8)
            factors = torch.exp2(codes.float() - 127).repeat_interleave(32, dim=1)
            plain = spread_e2m1(bytes) * factors
            values = bytes.view(torch.int8)
        else:
            grid = (-(-rows // 128), -(-columns // 128))
            codes = torch.randint(110, 130, grid, generator=seed, dtype=torch.uint8)
            values = (weight.float() * 100).to(torch.float8_e4m3fn)
            factors = quantised.spread(torch.exp2(codes.float() - 127), (128, 128), weight.shape)
            plain = values.float() * factors
        stored = {"weight": values, "scale": codes.view(torch.float8_e8m0fnu)}
        return stored, plain.to(torch.bfloat16)
