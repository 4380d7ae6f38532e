# SPDX-License-Identifier: Apache-2.0
"""What a run notes of files whose experts are alike is in every document of what was written."""
import json
import shutil
import struct

import pytest
from checkpoints import GOLDEN

VISION = GOLDEN / "hf" / "qwen3_vl" / "hf"
EXPERTS, HIDDEN, FFN = 2, 64, 8


def read(folder):
    """dtype, shape and bytes of each tensor of a model's only file."""
    (file,) = folder.glob("*.safetensors")
    data = file.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    ranges = {name: [begin + at for at in one["data_offsets"]] for name, one in header.items()}
    return {
        name: (one["dtype"], one["shape"], data[slice(*ranges[name])])
        for name, one in header.items()
    }


def write(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, (dtype, shape, values) in tensors.items():
        end = len(data) + len(values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), end]}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def is_of_experts(name):
    return ".mlp.experts." in name


def put_shards(model, out):
    """The model as torch's HuggingFaceStorageWriter stores it where two ranks share the experts."""
    shutil.copytree(model, out, ignore=shutil.ignore_patterns("*.safetensors*"))
    tensors = read(model)
    for rank in range(EXPERTS):
        own, offsets = {}, {}
        for name, (dtype, shape, values) in tensors.items():
            if is_of_experts(name):
                size = len(values) // EXPERTS
                part = values[rank * size : (rank + 1) * size]
                own[name] = (dtype, [1, *shape[1:]], part)
                offsets[name] = [rank, 0, 0]
            elif rank == 0:
                own[name] = (dtype, shape, values)
                offsets[name] = [0] * len(shape)
        info = {name: {"saved_offsets": at} for name, at in offsets.items()}
        metadata = {"DCP_SHARDING_INFO": json.dumps(info), "DCP_VERSION": "1.0", "format": "pt"}
        write(out / f"shard-{rank + 1:05}-model-00001-of-00001.safetensors", own, metadata)


def put_experts(out):
    """The golden vision model with experts, which are copies of each other."""
    out.mkdir()
    config = json.loads((VISION / "config.json").read_text())
    config.update(model_type="qwen3_vl_moe", architectures=["Qwen3VLMoeForConditionalGeneration"])
    config["text_config"].update(
        model_type="qwen3_vl_moe_text", num_experts=EXPERTS, num_experts_per_tok=1,
        moe_intermediate_size=FFN, decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True,
    )  # fmt: skip
    config["vision_config"]["model_type"] = "qwen3_vl_moe"
    (out / "config.json").write_text(json.dumps(config))

    def values(count):
        return b"".join(struct.pack("<e", 1 + i % 61 / 64) for i in range(count))

    def is_of_mlp(name):
        return ".language_model.layers." in name and ".mlp." in name

    tensors = {name: one for name, one in read(VISION).items() if not is_of_mlp(name)}
    for layer in range(config["text_config"]["num_hidden_layers"]):
        mlp = f"model.language_model.layers.{layer}.mlp."
        tensors[mlp + "gate.weight"] = ("BF16", [EXPERTS, HIDDEN], values(EXPERTS * HIDDEN))
        for name, shape in (("gate_up_proj", [HIDDEN, 2 * FFN]), ("down_proj", [FFN, HIDDEN])):
            expert = values(shape[0] * shape[1])
            tensors[f"{mlp}experts.{name}"] = ("BF16", [EXPERTS, *shape], EXPERTS * expert)
    write(out / "model.safetensors", tensors, {"format": "pt"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory, shardwright):
    folder = tmp_path_factory.mktemp("alike")
    put_experts(folder / "model")
    shardwright("split", folder / "model", folder / "parts")
    put_shards(folder / "model", folder / "shards")
    put_shards(folder / "parts" / "language", folder / "language")
    return folder


@pytest.mark.parametrize("command", ["convert", "split", "merge"])
def test_documents_have_the_note(command, folder, shardwright):
    words = {
        "convert": [folder / "shards", folder / "converted", "--to", "torch_dist"],
        "split": [folder / "shards", folder / "again"],
        "merge": [folder / "merged", "--config", folder / "parts" / "model"]
        + ["--component", f"language={folder / 'language'}"]
        + [
            word
            for part in ("images", "adapter")
            for word in ("--component", f"{part}={folder / 'parts' / part}")
        ],
    }[command]
    document = json.loads(shardwright(command, *words, "--json").stdout)
    alike = [note for note in document["notes"] if "its parts of 6 tensors are those" in note]
    assert len(alike) == 1, document["notes"]
    assert "experts or layers that were copied" in alike[0]
