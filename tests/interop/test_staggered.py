# SPDX-License-Identifier: Apache-2.0
"""Encoders with fewer tensor ranks than the language model, in legacy checkpoints.

LoongForge needs GPUs, so its checkpoints are made here from its rules, with torch and not with our
writer: see staggered.py."""
import json

import pytest
import torch
from safetensors.torch import save_file

import checkpoints
import hf_models
import staggered
import test_families_published as published
from staggered import Layout

TEXT = dict(
    hf_models.SIZES,
    vocab_size=508,
    num_hidden_layers=4,
    num_attention_heads=8,
    num_key_value_heads=4,
)
MOE = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=40, norm_topk_prob=True)
HIDDEN, FFN, LAYERS, HEADS, PATCH = 32, 48, 3, 4, 4
QKV = "vision_model.decoder.layers.1.self_attention.linear_qkv.weight"


def onevision(moe):
    from transformers import AutoConfig, AutoModelForCausalLM

    kind = "qwen3_moe" if moe else "qwen3"
    settings = AutoConfig.for_model(kind, **TEXT, **(MOE if moe else {}))
    text = AutoModelForCausalLM.from_config(settings, dtype=torch.bfloat16)
    hf_models.fill(text)
    outer, merger = "model.visual.", HIDDEN * 9
    norm, linear = published.norm, published.linear
    shapes = [
        (f"{outer}embeddings.patch_embedding.weight", (HIDDEN, 3, PATCH, PATCH)),
        *norm(f"{outer}layernorm_pre", HIDDEN),
        *norm(f"{outer}merger.ln_q", HIDDEN),
        *linear(f"{outer}merger.mlp.0", merger, merger),
        *linear(f"{outer}merger.mlp.2", TEXT["hidden_size"], merger),
    ]
    for i in range(LAYERS):
        layer = f"{outer}encoder.layers.{i}."
        shapes += [
            *norm(f"{layer}layer_norm1", HIDDEN),
            *norm(f"{layer}layer_norm2", HIDDEN),
            *linear(f"{layer}self_attn.qkv", 3 * HIDDEN, HIDDEN),
            *linear(f"{layer}self_attn.proj", HIDDEN, HIDDEN),
            *linear(f"{layer}mlp.fc1", FFN, HIDDEN),
            *linear(f"{layer}mlp.fc2", HIDDEN, FFN),
        ]
    config = {
        "architectures": ["LlavaOnevision2ForConditionalGeneration"],
        "model_type": "llava_onevision2_moe" if moe else "llava_onevision2",
        "text_config": settings.to_dict(),
        "tie_word_embeddings": False,
        "vision_config": {
            "model_type": "onevision_encoder",
            "hidden_size": HIDDEN,
            "intermediate_size": FFN,
            "layer_norm_type": "layer_norm",
            "num_attention_heads": HEADS,
            "num_channels": 3,
            "num_hidden_layers": LAYERS,
            "out_hidden_size": TEXT["hidden_size"],
            "patch_size": PATCH,
            "spatial_merge_size": 3,
        },
    }
    tensors = dict(published.filled(shapes))
    for key, value in text.state_dict().items():
        name = key if key.startswith("lm_head.") else "model.language_model." + key[6:]
        tensors[name] = value
    return config, tensors


class Model:
    """A model as Hugging Face has it, and its global Megatron tensors."""

    def __init__(self, shardwright, folder, moe):
        self.hf = folder / "hf"
        config, self.tensors = onevision(moe)
        self.hf.mkdir()
        (self.hf / "config.json").write_text(json.dumps(config))
        save_file(self.tensors, self.hf / "model.safetensors", metadata={"format": "pt"})
        shardwright("convert", self.hf, folder / "dist", "--to", "torch_dist")
        self.canonical = staggered.unstacked(checkpoints.load_dcp(folder / "dist"))


@pytest.fixture(scope="module")
def dense(shardwright, tmp_path_factory):
    return Model(shardwright, tmp_path_factory.mktemp("dense"), moe=False)


@pytest.fixture(scope="module")
def sparse(shardwright, tmp_path_factory):
    return Model(shardwright, tmp_path_factory.mktemp("sparse"), moe=True)


def assert_is_model(shardwright, folder, out, model):
    """To Hugging Face, and to torch_dist with other sizes: bit for bit."""
    bare = ("--hf-config", model.hf)
    shardwright("convert", folder, out / "back", "--to", "hf", *bare)
    checkpoints.assert_same(checkpoints.load_hf(out / "back"), model.tensors)


LAYOUTS = {
    "whole": Layout(tp=4, encoder_tp=1),
    "half": Layout(tp=4, encoder_tp=2),
    "same": Layout(tp=4, encoder_tp=4),
    "stages": Layout(tp=4, encoder_tp=2, pp=2),
    "virtual": Layout(tp=4, encoder_tp=2, pp=2, vpp=2),
    "cut_patch": Layout(tp=4, encoder_tp=2, patch="cut"),
    "cut_patch_same": Layout(tp=4, encoder_tp=4, patch="cut"),
    "flat_patch": Layout(tp=4, encoder_tp=2, flat_patch=True),
    "flat_cut_patch": Layout(tp=4, encoder_tp=4, patch="cut", flat_patch=True),
    "merged": Layout(tp=4, encoder_tp=2, merged=True),
    "merged_stages": Layout(tp=4, encoder_tp=2, pp=2, vpp=2, merged=True),
}


@pytest.mark.parametrize("named", [True, False], ids=["told", "found"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_is_read(shardwright, dense, tmp_path, layout, named):
    layout = Layout(**{**vars(LAYOUTS[layout]), "named": named})
    staggered.save(tmp_path / "in", dense.canonical, layout)
    assert_is_model(shardwright, tmp_path / "in", tmp_path, dense)


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("pp", [1, 2])
def test_experts_are_read(shardwright, sparse, tmp_path, pp, merged):
    layout = Layout(tp=2, encoder_tp=1, pp=pp, ep=2, merged=merged, named=False)
    staggered.save(tmp_path / "in", sparse.canonical, layout)
    assert_is_model(shardwright, tmp_path / "in", tmp_path, sparse)
