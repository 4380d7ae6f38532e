# SPDX-License-Identifier: Apache-2.0
"""What a run notes of files whose experts are alike is in every document of what was written."""
import json
import shutil

import pytest
import torch
from checkpoints import GOLDEN, load_hf
from safetensors.torch import save_file

VISION = GOLDEN / "hf" / "qwen3_vl" / "hf"
EXPERTS, HIDDEN, FFN = 2, 64, 8


def is_of_experts(name):
    return ".mlp.experts." in name


def put_shards(model, out):
    """The model as torch's HuggingFaceStorageWriter stores it where two ranks share the experts."""
    shutil.copytree(model, out, ignore=shutil.ignore_patterns("*.safetensors*"))
    tensors = load_hf(model)
    for rank in range(EXPERTS):
        own, offsets = {}, {}
        for name, tensor in tensors.items():
            if is_of_experts(name):
                own[name] = tensor[rank : rank + 1].clone()
                offsets[name] = [rank, 0, 0]
            elif rank == 0:
                own[name] = tensor
                offsets[name] = [0] * tensor.ndim
        info = {name: {"saved_offsets": at} for name, at in offsets.items()}
        metadata = {"DCP_SHARDING_INFO": json.dumps(info), "DCP_VERSION": "1.0", "format": "pt"}
        save_file(own, out / f"shard-{rank + 1:05}-model-00001-of-00001.safetensors", metadata)


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

    def values(*shape):
        count = torch.Size(shape).numel()
        return (1 + torch.arange(count) % 61 / 64).bfloat16().reshape(shape)

    def is_of_mlp(name):
        return ".language_model.layers." in name and ".mlp." in name

    tensors = {name: one for name, one in load_hf(VISION).items() if not is_of_mlp(name)}
    for layer in range(config["text_config"]["num_hidden_layers"]):
        mlp = f"model.language_model.layers.{layer}.mlp."
        tensors[mlp + "gate.weight"] = values(EXPERTS, HIDDEN)
        for name, shape in (("gate_up_proj", [HIDDEN, 2 * FFN]), ("down_proj", [FFN, HIDDEN])):
            tensors[f"{mlp}experts.{name}"] = values(*shape).repeat(EXPERTS, 1, 1)
    save_file(tensors, out / "model.safetensors", {"format": "pt"})


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
