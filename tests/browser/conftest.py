# SPDX-License-Identifier: Apache-2.0
"""Pages that the program makes of the golden checkpoints, and a browser to open them in."""
import json
import os
import pathlib
import struct
import subprocess

import pytest

from browser import Browser

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
TRAINED = GOLDEN / "mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full"


def shardwright(*words, status=0):
    """Runs the program; gives its standard output."""
    done = subprocess.run([os.environ["SHARDWRIGHT_BIN"], *map(str, words)], check=False,
                          capture_output=True, text=True)
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def write_file(file, tensors):
    """Writes a safetensors file: name -> (dtype, shape, bytes), sparse."""
    header, at = {}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(file, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + at)


def write_model(folder, tensors, files=1):
    """Writes a model of so many files, which hold equal counts of its tensors in order."""
    folder.mkdir(parents=True)
    if files == 1:
        write_file(folder / "model.safetensors", tensors)
        return folder
    names, index = list(tensors), {}
    for number in range(files):
        file = f"model-{number + 1:05d}-of-{files:05d}.safetensors"
        held = names[number * len(names) // files:(number + 1) * len(names) // files]
        write_file(folder / file, {name: tensors[name] for name in held})
        index.update(dict.fromkeys(held, file))
    total = sum(size for _, _, size in tensors.values())
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": index}))
    return folder


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests: each opens its own page."""
    it = Browser()
    yield it
    it.close()


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder for all pages."""
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="session")
def trained(place):
    """A page about a checkpoint with optimizer states, statistics and proof."""
    page = place / "trained.html"
    shardwright("report", TRAINED, "-o", page, "--statistics", "--verify")
    return page


@pytest.fixture(scope="session")
def different(place):
    """A page about two layouts of a model, of which one has other bits in one layer."""
    left, right = place / "left", place / "right"
    shardwright("convert", GOLDEN / "hf/llama3_4l/hf", left, "--to", "torch_dist", "--tp", 2)
    shardwright("convert", left, right, "--to", "hf")
    name = "model.layers.2.mlp.down_proj.weight"
    chunk = json.loads(shardwright("show", right, name, "--json"))["chunks"][0]
    file = right / chunk["file"]
    data = bytearray(file.read_bytes())
    data[chunk["offset"] + 1] ^= 1
    file.write_bytes(data)
    page = place / "different.html"
    shardwright("report", left, right, "-o", page, status=1)
    return page


@pytest.fixture(scope="session")
def plan(place):
    """A page about a conversion."""
    page = place / "plan.html"
    shardwright("plan", GOLDEN / "hf/llama3_4l/hf", place / "none", "--to", "torch_dist",
                "--tp", 2, "--pp", 2, "--html", page)
    return page


@pytest.fixture(scope="session")
def many(place):
    """A page about 46,000 tensors."""
    tensors = {}
    for layer in range(60):
        for expert in range(256):
            for kind in ("gate", "up", "down"):
                name = f"model.layers.{layer}.mlp.experts.{expert}.{kind}_proj.weight"
                tensors[name] = ("BF16", [64, 64], 8192)
    page = place / "many.html"
    shardwright("report", write_model(place / "many", tensors), "-o", page)
    return page
