# SPDX-License-Identifier: Apache-2.0
"""Takes the pictures of docs/report.md: take_pictures.py FOLDER, with SHARDWRIGHT_BIN set.

Everything that they show is made here or is in tests/golden, so they are the same each time but for
the fonts of the machine.
"""
import json
import os
import pathlib
import shutil
import struct
import sys
import tempfile

from browser import Browser
from conftest import GOLDEN, TRAINED, shardwright, write_model

MOST_BYTES = 150_000
HIDDEN, FFN, VOCABULARY, LAYERS = 4096, 14336, 128256, 32


def llama_8b(folder):
    """The shapes of a dense model of 8 billion parameters, in four sparse files."""
    shapes = {"model.embed_tokens.weight": [VOCABULARY, HIDDEN],
              "lm_head.weight": [VOCABULARY, HIDDEN], "model.norm.weight": [HIDDEN]}
    for layer in range(LAYERS):
        for name, shape in {
                "input_layernorm": [HIDDEN], "post_attention_layernorm": [HIDDEN],
                "self_attn.q_proj": [HIDDEN, HIDDEN], "self_attn.k_proj": [1024, HIDDEN],
                "self_attn.v_proj": [1024, HIDDEN], "self_attn.o_proj": [HIDDEN, HIDDEN],
                "mlp.gate_proj": [FFN, HIDDEN], "mlp.up_proj": [FFN, HIDDEN],
                "mlp.down_proj": [HIDDEN, FFN]}.items():
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    tensors = {}
    for name, shape in shapes.items():
        size = 2
        for extent in shape:
            size *= extent
        tensors[name] = ("BF16", shape, size)
    write_model(folder, tensors, files=4)
    (folder / "config.json").write_text(
        '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,'
        ' "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,'
        ' "num_key_value_heads": 8, "vocab_size": 128256, "rms_norm_eps": 1e-5,'
        ' "tie_word_embeddings": false, "rope_theta": 500000.0, "hidden_act": "silu",'
        ' "max_position_embeddings": 8192, "dtype": "bfloat16"}')


def change_layers(folder):
    """Flips bits of some layers of a model, later ones in higher bits."""
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    length = struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:8 + length]).items():
        if ".layers.1." not in name and ".layers.3.mlp" not in name:
            continue
        begin, end = entry["data_offsets"]
        for at in range(8 + length + begin, 8 + length + end - 2, 64):
            data[at] ^= 1 + len(name) % 4
            if ".layers.3." in name:
                data[at + 1] ^= 1
    file.write_bytes(data)


def make_pages():
    """Writes the pages into the current folder."""
    shutil.copytree(TRAINED, "moe-run")
    shardwright("report", "moe-run", "-o", "run.html", "--statistics", "--verify")
    shutil.copytree(GOLDEN / "hf/llama3_4l/hf", "finetuned")
    shardwright("convert", "finetuned", "base", "--to", "torch_dist", "--tp", 2, "--pp", 2)
    change_layers(pathlib.Path("finetuned"))
    shardwright("report", "base", "finetuned", "-o", "difference.html", status=1)
    llama_8b(pathlib.Path("Llama-3.1-8B"))
    shardwright("plan", "Llama-3.1-8B", "ckpt", "--to", "torch_dist", "--tp", 4, "--pp", 2,
                "--html", "plan.html")


def main():
    """Takes each picture once."""
    target = pathlib.Path(sys.argv[1]).resolve()
    target.mkdir(parents=True, exist_ok=True)
    os.environ["SHARDWRIGHT_BIN"] = str(pathlib.Path(os.environ["SHARDWRIGHT_BIN"]).resolve())
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        make_pages()
        browser = Browser(width=1040)
        experts = "optimizer.state.exp_avg.decoder.layers.mlp.experts.experts.linear_fc1.weight"
        # picture: page, look, height, where on it
        pictures = {
            "report-overview": ("run.html", "light", 870, {"tab": "overview"}),
            "report-tensor": ("run.html", "dark", 640, {"tab": "tensors", "tensor": experts}),
            "report-layers": ("run.html", "light", 690, {"tab": "layers"}),
            "report-difference": ("difference.html", "light", 640, {}),
            "report-plan": ("plan.html", "light", 590, {}),
            "report-overview_zh": ("run.html", "dark", 870, {"tab": "overview", "lang": "zh"}),
        }
        for name, (page, look, height, where) in pictures.items():
            browser.prefer(look)
            browser.resize(height=height)
            browser.open(page, **where)
            if browser.complaints():
                sys.exit(f"{name}: {browser.complaints()}")
            browser.picture(target / f"{name}.png")
            size = (target / f"{name}.png").stat().st_size
            if size > MOST_BYTES:
                sys.exit(f"{name}.png has {size} bytes, expected at most {MOST_BYTES}")
        browser.close()
        os.chdir("/")


if __name__ == "__main__":
    main()
