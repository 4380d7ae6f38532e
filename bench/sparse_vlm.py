# SPDX-License-Identifier: Apache-2.0
"""A dense 27B vision-language model (Qwen3.5-VL's shapes) to MIMO and back: parity, time, memory.

    python3 bench/sparse_vlm.py build/release/shardwright /big/disk --scale 4

The source has the true key set, 1184 tensors and 15 of a layer for multi-token prediction, in
sparse files: at the edges of blocks of rows (of every row with --marks rows) there are values that
follow from the tensor's name and the element's index, and nothing in between. What is written from
it is not sparse, so --scale N makes every width 1/N of the model's. What is in between is dug out of
the MIMO checkpoint before the way back: 1 needs 60 GB, 4 about 4 GB.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import struct
import subprocess
import sys
import zlib

import numpy

import timing

SHARD_BYTES = 5_000_000_000
BLOCKS = 64  # of rows: at least as many as any split of a tensor
LAYERS, DEPTH = 64, 27


def sizes(scale):
    """The model's widths; counts of heads and layers stay."""
    return {
        "hidden": 5120 // scale, "ffn": 17408 // scale, "vocab": 248320 // scale,
        "heads": 24, "groups": 4, "head_dim": 256 // scale,
        "key_heads": 16, "value_heads": 48, "linear_dim": 128 // scale,
        "vision": 1152 // scale // 16 * 16, "vision_ffn": 4304 // scale, "positions": 2304,
    }  # fmt: skip


def config(size):
    text = {
        "model_type": "qwen3_5_text", "dtype": "bfloat16", "hidden_size": size["hidden"],
        "intermediate_size": size["ffn"], "vocab_size": size["vocab"], "num_hidden_layers": LAYERS,
        "num_attention_heads": size["heads"], "num_key_value_heads": size["groups"],
        "head_dim": size["head_dim"], "full_attention_interval": 4, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": size["linear_dim"], "linear_num_key_heads": size["key_heads"],
        "linear_value_head_dim": size["linear_dim"], "linear_num_value_heads": size["value_heads"],
        "mtp_num_hidden_layers": 1, "hidden_act": "silu", "rms_norm_eps": 1e-6,
        "max_position_embeddings": 262144, "tie_word_embeddings": False, "attention_bias": False,
        "rope_parameters": {
            "rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25,
        },
    }  # fmt: skip
    vision = {
        "model_type": "qwen3_5_vision", "depth": DEPTH, "hidden_size": size["vision"],
        "intermediate_size": size["vision_ffn"], "num_heads": 16, "in_channels": 3,
        "num_position_embeddings": size["positions"], "patch_size": 16, "temporal_patch_size": 2,
        "spatial_merge_size": 2, "out_hidden_size": size["hidden"],
        "hidden_act": "gelu_pytorch_tanh",
    }  # fmt: skip
    return {
        "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
        "dtype": "bfloat16", "tie_word_embeddings": False, "text_config": text,
        "vision_config": vision,
    }  # fmt: skip


def layer(size, prefix, is_full):
    hidden, ffn, head = size["hidden"], size["ffn"], size["head_dim"]
    yield prefix + "input_layernorm.weight", (hidden,)
    yield prefix + "post_attention_layernorm.weight", (hidden,)
    yield prefix + "mlp.gate_proj.weight", (ffn, hidden)
    yield prefix + "mlp.up_proj.weight", (ffn, hidden)
    yield prefix + "mlp.down_proj.weight", (hidden, ffn)
    if is_full:
        queries, keys = size["heads"] * head, size["groups"] * head
        yield prefix + "self_attn.q_proj.weight", (2 * queries, hidden)  # queries and their gates
        yield prefix + "self_attn.k_proj.weight", (keys, hidden)
        yield prefix + "self_attn.v_proj.weight", (keys, hidden)
        yield prefix + "self_attn.o_proj.weight", (hidden, queries)
        yield prefix + "self_attn.q_norm.weight", (head,)
        yield prefix + "self_attn.k_norm.weight", (head,)
        return
    keys = size["key_heads"] * size["linear_dim"]
    values = size["value_heads"] * size["linear_dim"]
    yield prefix + "linear_attn.in_proj_qkv.weight", (2 * keys + values, hidden)
    yield prefix + "linear_attn.in_proj_z.weight", (values, hidden)
    yield prefix + "linear_attn.in_proj_b.weight", (size["value_heads"], hidden)
    yield prefix + "linear_attn.in_proj_a.weight", (size["value_heads"], hidden)
    yield prefix + "linear_attn.conv1d.weight", (2 * keys + values, 1, 4)
    yield prefix + "linear_attn.A_log", (size["value_heads"],)
    yield prefix + "linear_attn.dt_bias", (size["value_heads"],)
    yield prefix + "linear_attn.norm.weight", (size["linear_dim"],)
    yield prefix + "linear_attn.out_proj.weight", (hidden, values)


def vision(size):
    width, ffn = size["vision"], size["vision_ffn"]
    yield "model.visual.patch_embed.proj.weight", (width, 3, 2, 16, 16)
    yield "model.visual.patch_embed.proj.bias", (width,)
    yield "model.visual.pos_embed.weight", (size["positions"], width)
    for number in range(DEPTH):
        prefix = f"model.visual.blocks.{number}."
        shapes = (
            ("norm1", (width,)), ("norm2", (width,)), ("attn.qkv", (3 * width, width)),
            ("attn.proj", (width, width)), ("mlp.linear_fc1", (ffn, width)),
            ("mlp.linear_fc2", (width, ffn)),
        )  # fmt: skip
        for name, shape in shapes:
            yield f"{prefix}{name}.weight", shape
            yield f"{prefix}{name}.bias", shape[:1]
    merged = 4 * width
    shapes = (
        ("norm", (width,)), ("linear_fc1", (merged, merged)), ("linear_fc2", (size["hidden"], merged)),
    )  # fmt: skip
    for name, shape in shapes:
        yield f"model.visual.merger.{name}.weight", shape
        yield f"model.visual.merger.{name}.bias", shape[:1]


def tensors(size):
    """Names and shapes, in files' order: the model, then its layer for multi-token prediction."""
    hidden, vocab = size["hidden"], size["vocab"]
    yield "model.language_model.embed_tokens.weight", (vocab, hidden)
    for number in range(LAYERS):
        yield from layer(size, f"model.language_model.layers.{number}.", number % 4 == 3)
    yield "model.language_model.norm.weight", (hidden,)
    yield "lm_head.weight", (vocab, hidden)
    yield from vision(size)
    yield "mtp.fc.weight", (hidden, 2 * hidden)
    for name in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
        yield f"mtp.{name}.weight", (hidden,)
    yield from layer(size, "mtp.layers.0.", True)


def count(shape):
    return int(numpy.prod(shape, dtype=numpy.int64))


def values(name, indices):
    """Finite bf16 bits that follow from a tensor's name and an element's index."""
    mixed = indices.astype(numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
    mixed = mixed + numpy.uint64(zlib.crc32(name.encode()) << 20)
    mixed = (mixed ^ (mixed >> numpy.uint64(29))) * numpy.uint64(0xBF58476D1CE4E5B9)
    return ((mixed >> numpy.uint64(40)) & numpy.uint64(0xBFFF)).astype("<u2")


def marked(shape, every_row):
    """Indices of the elements that are not zero: both ends of rows, at the edges of blocks."""
    columns = count(shape[1:])
    rows = numpy.arange(shape[0], dtype=numpy.int64)
    if not every_row and shape[0] > 2 * BLOCKS:
        edges = numpy.linspace(0, shape[0], BLOCKS + 1).astype(numpy.int64)
        rows = numpy.unique(numpy.concatenate([edges[:-1], edges[1:] - 1]))
    return numpy.unique(numpy.concatenate([rows * columns, rows * columns + columns - 1]))


def write_marks(file, start, name, indices):
    """Only the marks, each run of neighbours at once: what is between stays a hole."""
    for run in numpy.split(indices, numpy.flatnonzero(numpy.diff(indices) != 1) + 1):
        os.pwrite(file, values(name, run).tobytes(), start + 2 * int(run[0]))


def plan_files(listed):
    files, filled = [[]], 0
    for name, shape in listed:
        size = 2 * count(shape)
        if files[-1] and filled + size > SHARD_BYTES:
            files.append([])
            filled = 0
        files[-1].append((name, shape))
        filled += size
    return files


def write(folder, size, every_row):
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config(size), file, indent=2)
    listed = list(tensors(size))
    files, weight_map = plan_files(listed), {}
    for number, held in enumerate(files, 1):
        base = f"model-{number:05}-of-{len(files):05}.safetensors"
        header, offset = {}, 0
        for name, shape in held:
            end = offset + 2 * count(shape)
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, end]}
            weight_map[name], offset = base, end
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(os.path.join(folder, base), "w+b", buffering=0) as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + offset)
            for name, shape in held:
                start = 8 + len(text) + header[name]["data_offsets"][0]
                write_marks(file.fileno(), start, name, marked(shape, every_row))
    index = {"metadata": {}, "weight_map": weight_map}
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
        json.dump(index, file)
    return listed


def places(folder):
    """Where each tensor's bytes are: file, first byte, length, dtype and shape."""
    found = {}
    for base in sorted(os.listdir(folder)):
        if not base.endswith(".safetensors"):
            continue
        path = os.path.join(folder, base)
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        for name, entry in header.items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                found[name] = (path, 8 + length + begin, end - begin, entry["dtype"], entry["shape"])
    return found


def equal_bytes(one, other):
    if one[2:] != other[2:]:
        return False
    with open(one[0], "rb") as left, open(other[0], "rb") as right:
        left.seek(one[1])
        right.seek(other[1])
        rest = one[2]
        while rest > 0:
            step = min(rest, 16 << 20)
            if left.read(step) != right.read(step):
                return False
            rest -= step
    return True


def parity(source, target):
    """How many of the target's tensors the source has, bit by bit, and names that differ."""
    there, back = places(source), places(target)
    equal = [name for name in back if name in there and equal_bytes(there[name], back[name])]
    return len(equal), len(back), sorted(set(there) - set(back)), sorted(set(back) - set(equal))


def in_child(function, *arguments):
    """What a program is said to need begins with what its parent had: work is done elsewhere."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def allocated(folder):
    return sum(os.stat(os.path.join(folder, name)).st_blocks * 512 for name in os.listdir(folder))


def apparent(folder):
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))


def dig(folder):
    """Makes what holds only zeros holes again, so that one written model at a time fills the disk."""
    for root, _, names in os.walk(folder):
        for name in names:
            subprocess.run(["fallocate", "--dig-holes", os.path.join(root, name)], check=True)


def round_trip(program, folder, policy, more):
    """To MIMO and back with one --mtp policy; what was found and what it took."""
    source, mimo, back = (os.path.join(folder, name) for name in ("source", "mimo", "back"))
    layout = ["--component", "language=tp=4,dp=1", "--component", "images=tp=1", "--mtp", policy]
    there = timing.run([program, "convert", source, mimo, "--to", "mimo", *layout, *more])
    dig(mimo)
    again = timing.run([program, "convert", mimo, back, "--to", "hf", *more])
    equal, total, ignored, wrong = in_child(parity, source, back)
    for path in (mimo, back):
        shutil.rmtree(path)
    megabytes = max(there.peak_bytes, again.peak_bytes) / 1e6
    print(
        f"--mtp {policy}: {equal}/{total} equal, {len(ignored)} ignored; "
        f"to mimo {there.seconds:.1f} s, to hf {again.seconds:.1f} s, peak {megabytes:.0f} MB"
    )
    expected = 1184 if policy == "drop" else 1199
    fine = equal == total == expected and len(ignored) == 1199 - expected and not wrong
    return {
        "is_fine": fine, "equal": equal, "ignored": len(ignored), "to_mimo_seconds": there.seconds,
        "to_hf_seconds": again.seconds,
        "peak_bytes": max(there.peak_bytes, again.peak_bytes),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="shardwright")
    parser.add_argument("folder", help="where the checkpoints are made")
    parser.add_argument("--scale", type=int, default=4, choices=(1, 2, 4, 8))
    parser.add_argument("--marks", choices=("blocks", "rows"), default="blocks")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--results", help="a JSON file for what was measured")
    arguments = parser.parse_args()
    folder = os.path.join(arguments.folder, "sparse_vlm")
    os.makedirs(folder)
    try:
        source = os.path.join(folder, "source")
        listed = in_child(write, source, sizes(arguments.scale), arguments.marks == "rows")
        print(
            f"{len(listed)} tensors, {apparent(source) / 1e9:.2f} GB, "
            f"{allocated(source) / 1e9:.2f} GB of it on the disk; widths 1/{arguments.scale}"
        )
        room = shutil.disk_usage(folder).free
        if 1.1 * apparent(source) > room:
            sys.exit(f"found {room / 1e9:.0f} GB free, expected more than the model; raise --scale")
        more = ["--threads", arguments.threads]
        policies = ("drop", "keep")
        trips = {name: round_trip(arguments.program, folder, name, more) for name in policies}
        if arguments.results:
            machine = timing.machine(folder)
            bytes_of_model = apparent(source)
            with open(arguments.results, "w") as file:
                json.dump({"machine": machine, "bytes": bytes_of_model, "mtp": trips}, file, indent=1)
    finally:
        shutil.rmtree(folder)
    sys.exit(0 if all(trip["is_fine"] for trip in trips.values()) else 1)


if __name__ == "__main__":
    main()
