# SPDX-License-Identifier: Apache-2.0
"""Vision-language families that transformers lacks: tensors of the names and shapes that their
published files have, there and back."""
import dataclasses
import json
import math
import shutil

import pytest
import torch
from safetensors.torch import save_file

import checkpoints
import hf_models
from test_families_hybrid import CASES, MOE, TEXT, build
from test_mimo import convert

# Towers have sizes of their own: three layers of six heads that are six wide.
HIDDEN, FFN, LAYERS, HEADS, PATCH = 36, 52, 3, 6, 4
TEXT_HIDDEN = TEXT["hidden_size"]


@dataclasses.dataclass
class Model:
    config: dict
    tensors: dict
    tower: str  # what its tensors begin with in Megatron
    mimo: str  # and in a MIMO model
    experts: bool = False


def linear(name, rows, columns, bias=True):
    yield f"{name}.weight", (rows, columns)
    if bias:
        yield f"{name}.bias", (rows,)


def norm(name, width, bias=True):
    yield f"{name}.weight", (width,)
    if bias:
        yield f"{name}.bias", (width,)


def filled(shapes):
    """Random bfloat16 tensors of these names."""
    generator = torch.Generator().manual_seed(7)
    return {
        name: torch.randn(shape, generator=generator).to(torch.bfloat16)
        for name, shape in shapes
    }


def text_of(name):
    """A language model that transformers made: its tensors behind `model.`, and its settings."""
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes, model_type = {
        "qwen3": (TEXT, "qwen3"),
        "qwen3_moe": (dict(TEXT, num_experts=6, **MOE), "qwen3_moe"),
        "deepseek_v3": (
            dict(hf_models.MLA_SIZES, vocab_size=510, num_hidden_layers=4, n_group=1, topk_group=1),
            "deepseek_v3",
        ),
    }[name]
    config = AutoConfig.for_model(model_type, **dict(sizes))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    hf_models.fill(model)
    return model, config.to_dict()


CHAT = {"internvl_chat": "internvl_norms", "internvl_chat_moe": "internvl_moe"}
CHAT_NAMES = (
    ("vision_tower.embeddings.cls_token", "vision_model.embeddings.class_embedding"),
    ("vision_tower.embeddings.position_embeddings", "vision_model.embeddings.position_embedding"),
    ("vision_tower.embeddings.patch_embeddings.projection", "vision_model.embeddings.patch_embedding"),
    ("vision_tower.encoder.layer.", "vision_model.encoder.layers."),
    (".attention.projection_layer.", ".attn.proj."),
    (".attention.", ".attn."),
    (".layernorm_before.", ".norm1."),
    (".layernorm_after.", ".norm2."),
    (".lambda_", ".ls"),
    ("multi_modal_projector.layer_norm.", "mlp1.0."),
    ("multi_modal_projector.linear_1.", "mlp1.1."),
    ("multi_modal_projector.linear_2.", "mlp1.3."),
)


def chat_model(folder, name):
    """The model of transformers, as OpenGVLab's own files hold it."""
    tensors = {}
    for key, value in build(folder, CHAT[name]).items():
        for old, new in CHAT_NAMES:
            key = key.replace(old, new)
        tensors[key] = value
    for key in [key for key in tensors if ".attn.q_proj." in key]:
        parts = [tensors.pop(key.replace("q_proj", f"{part}_proj")) for part in "qkv"]
        tensors[key.replace("q_proj", "qkv")] = torch.cat(parts)
    was = json.loads((folder / "config.json").read_text())
    vision = was["vision_config"]
    config = {
        "architectures": ["InternVLChatModel"],
        "model_type": "internvl_chat",
        "llm_config": was["text_config"],
        "torch_dtype": "bfloat16",
        "vision_config": {
            "model_type": "intern_vit_6b",
            "image_size": 28,
            "norm_type": vision["norm_type"],
            "patch_size": 14,
            "qk_normalization": vision["use_qk_norm"],
            "qkv_bias": vision["attention_bias"],
            **{key: vision[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers")},
            "num_attention_heads": vision["num_attention_heads"],
        },
    }
    return Model(config, tensors, "vision_model.", "internvit", name.endswith("moe"))


MAKERS = {name: chat_model for name in CHAT}


def save(folder, model):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(model.config))
    save_file(model.tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.fixture
def model(tmp_path, request):
    made = MAKERS[request.param](tmp_path / "made", request.param)
    save(tmp_path / "hf", made)
    return made


every = pytest.mark.parametrize("model", MAKERS, indirect=True)


def there(shardwright, tmp_path, model, *flags):
    experts = ("--ep", 2) if model.experts else ()
    out = tmp_path / "out"
    flags = flags or ("--tp", 2, "--pp", 2, *experts)
    return shardwright("convert", tmp_path / "hf", out, "--to", "torch_dist", *flags)


@every
def test_there_and_back(shardwright, tmp_path, model):
    done = shardwright("plan", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist")
    assert done.returncode == 0
    there(shardwright, tmp_path, model)
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), model.tensors)
    one = checkpoints.load_dcp(tmp_path / "out")
    shardwright("convert", tmp_path / "out", tmp_path / "legacy", "--to", "legacy", "--tp", 2)
    bare = ("--hf-config", tmp_path / "hf")
    shardwright("convert", tmp_path / "legacy", tmp_path / "again", "--to", "hf", *bare)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "again"), model.tensors)
    assert any(key.startswith(model.tower) for key in one)


@every
def test_components(shardwright, tmp_path, model):
    experts = ",dp=2,ep=2,etp=1" if model.experts else ""
    convert(shardwright, tmp_path / "hf", tmp_path / "one", ("language=tp=2", "images=tp=1"))
    specs = ("images=tp=2,dp=2", f"language=tp=1,pp=2{experts}")
    convert(shardwright, tmp_path / "one", tmp_path / "two", specs)
    shutil.rmtree(tmp_path / "one")
    made = checkpoints.load_dcp(tmp_path / "two")
    path = f"modality_submodules.images.encoders.{model.mimo}."
    assert any(key.startswith(path) for key in made)
    assert not any(key.startswith(model.tower) for key in made)
    shardwright("convert", tmp_path / "two", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), model.tensors)


@pytest.mark.parametrize("name", CHAT)
def test_both_forms_of_internvl_are_one_model(shardwright, tmp_path, name):
    made = []
    save(tmp_path / "chat", chat_model(tmp_path / "own", name))
    for form in ("chat", "own"):
        out = tmp_path / f"{form}_out"
        shardwright("convert", tmp_path / form, out, "--to", "torch_dist", "--tp", 2)
        made.append(checkpoints.load_dcp(out))
    checkpoints.assert_same(made[1], made[0])
    done = shardwright("convert", tmp_path / "chat_out", tmp_path / "x", "--to", "hf")
    assert "config.json is written" not in done.stderr
