#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_adapter.py MODEL ADAPTER: a LoRA adapter as PEFT writes it, for a small Hugging Face model.

Of rank 2, for the linears of its layers; with a new head. Nothing but Python is needed.
"""
import json
import pathlib
import re
import struct
import sys

RANK = 2
PREFIX = "base_model.model."
LINEAR = re.compile(r"\.layers\.\d+\..*_proj\.weight$")


def header_of(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length])


def values(count, seed):
    return [((i * 37 + seed * 11) % 127 - 63) / 1024 for i in range(count)]


def write(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, floats) in sorted(tensors.items()):
        begin = len(data)
        data += struct.pack(f"<{len(floats)}f", *floats)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    model, adapter = map(pathlib.Path, sys.argv[1:3])
    stored = {}
    for file in sorted(model.glob("*.safetensors")):
        stored.update(header_of(file))
    tensors, modules = {}, set()
    for number, (name, entry) in enumerate(sorted(stored.items())):
        module = PREFIX + name.removesuffix(".weight")
        if name == "lm_head.weight":
            rows, columns = entry["shape"]
            tensors[PREFIX + name] = (entry["shape"], values(rows * columns, number))
        elif LINEAR.search(name):
            outputs, inputs = entry["shape"]
            modules.add(module.rsplit(".", 1)[1])
            tensors[f"{module}.lora_A.weight"] = ([RANK, inputs], values(RANK * inputs, number))
            tensors[f"{module}.lora_B.weight"] = ([outputs, RANK], values(RANK * outputs, number))
    adapter.mkdir()
    write(adapter / "adapter_model.safetensors", tensors)
    config = {
        "base_model_name_or_path": model.name, "bias": "none", "fan_in_fan_out": False,
        "init_lora_weights": True, "lora_alpha": 4, "lora_dropout": 0.0,
        "modules_to_save": ["lm_head"], "peft_type": "LORA", "r": RANK,
        "target_modules": sorted(modules), "task_type": "CAUSAL_LM",
    }  # fmt: skip
    (adapter / "adapter_config.json").write_text(json.dumps(config, indent=2))


if __name__ == "__main__":
    main()
