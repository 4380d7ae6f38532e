# SPDX-License-Identifier: Apache-2.0
"""Vision-language families that transformers lacks: tensors of the names and shapes that their
published files have, there and back."""
import dataclasses
import json
import shutil

import pytest
import torch
from safetensors.torch import save_file

import checkpoints
import family_rounds
import hf_models
import hf_sizes
from test_families_hybrid import CASES, MOE, TEXT, build, chunks
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
    newer: bool = False  # the names are not those that are written where nothing tells

    def first_published(self):
        """The tensors under the names that a config.json alone leads to."""
        if not self.newer:
            return self.tensors
        older = (("model.language_model.", "model."), ("model.visual.", "visual."))
        tensors = {}
        for key, value in self.tensors.items():
            for new, old in older:
                if key.startswith(new):
                    key = old + key.removeprefix(new)
            tensors[key] = value
        return tensors


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
            dict(
                hf_sizes.MLA_SIZES,
                vocab_size=510,
                num_hidden_layers=4,
                n_group=1,
                topk_group=1,
                q_lora_rank=None,
            ),
            "deepseek_v3",
        ),
        "internlm2": (dict(TEXT, head_dim=12), "llama"),
        "phi3": (dict(TEXT, head_dim=12, pad_token_id=None), "phi3"),
    }[name]
    config = AutoConfig.for_model(model_type, **dict(sizes))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    hf_models.fill(model)
    return model, config.to_dict()


# Models of transformers, and language models that those cannot have.
CHAT = {
    "internvl_chat": ("internvl_norms", None),
    "internvl_chat_moe": ("internvl_moe", None),
    "internvl_chat_internlm2": ("internvl_norms", "internlm2"),
    "internvl_chat_phi3": ("internvl", "phi3"),
}
BOTH_FORMS = [name for name, (_, text) in CHAT.items() if text is None]
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


def chat_text(name):
    model, settings = text_of(name)
    tensors = model.state_dict()
    settings["architectures"] = ["Phi3ForCausalLM"]
    if name == "internlm2":
        tensors = hf_models.as_internlm2(tensors, settings)
        settings.update(model_type=name, architectures=["InternLM2ForCausalLM"])
    return tensors, settings


def chat_model(folder, name):
    """The model of transformers, as OpenGVLab's own files hold it."""
    tensors = {}
    case, text = CHAT[name]
    for key, value in build(folder, case).items():
        for old, new in CHAT_NAMES:
            key = key.replace(old, new)
        tensors[key] = value
    for key in [key for key in tensors if ".attn.q_proj." in key]:
        parts = [tensors.pop(key.replace("q_proj", f"{part}_proj")) for part in "qkv"]
        tensors[key.replace("q_proj", "qkv")] = torch.cat(parts)
    was = json.loads((folder / "config.json").read_text())
    vision, settings = was["vision_config"], was["text_config"]
    if text is not None:
        tensors = {key: value for key, value in tensors.items() if "language_model" not in key}
        texts, settings = chat_text(text)
        tensors.update({f"language_model.{key}": value for key, value in texts.items()})
    config = {
        "architectures": ["InternVLChatModel"],
        "model_type": "internvl_chat",
        "llm_config": settings,
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


def transformer_layer(prefix, names):
    """A layer of a vision tower: names of its norms, attention, projection and two linears."""
    first, second, qkv, proj, fc1, fc2 = names
    for part in (first, second):
        yield from norm(f"{prefix}{part}", HIDDEN)
    yield from linear(f"{prefix}{qkv}", 3 * HIDDEN, HIDDEN)
    yield from linear(f"{prefix}{proj}", HIDDEN, HIDDEN)
    yield from linear(f"{prefix}{fc1}", FFN, HIDDEN)
    yield from linear(f"{prefix}{fc2}", HIDDEN, FFN)


def merger(prefix, merge):
    width = HIDDEN * merge * merge
    yield from norm(f"{prefix}merger.ln_q", HIDDEN)
    yield from linear(f"{prefix}merger.mlp.0", width, width)
    yield from linear(f"{prefix}merger.mlp.2", TEXT_HIDDEN, width)


def one_by_one(tensors):
    """With the experts as published files have them; transformers 5 computes with packed ones."""
    for key, value in tensors.items():
        stem, _, packed = key.rpartition(".")
        for i in range(len(value) if stem.endswith(".experts") else 0):
            if packed == "down_proj":
                yield f"{stem}.{i}.down_proj.weight", value[i].clone()
            else:
                gate, up = value[i].chunk(2)
                yield f"{stem}.{i}.gate_proj.weight", gate.clone()
                yield f"{stem}.{i}.up_proj.weight", up.clone()
        if not stem.endswith(".experts"):
            yield key, value


def language(model, prefix, head="lm_head."):
    """The tensors of a text model of transformers under a vision-language model's names."""
    for key, value in one_by_one(model.state_dict()):
        if key.startswith("lm_head."):
            yield head + key.removeprefix("lm_head."), value
        else:
            yield prefix + key.removeprefix("model."), value


def onevision_1_5(folder, name):
    newer, is_moe = name.endswith("_new"), name.endswith("_moe")
    outer, inner = (
        ("model.visual.", "model.language_model.") if newer else ("visual.", "model.")
    )
    text, settings = text_of("qwen3_moe" if is_moe else "qwen3")
    settings["model_type"] = "LLaVAOneVision1_5_text"
    blocks = ("norm1", "norm2", "attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")
    shapes = [
        (f"{outer}class_embedding", (HIDDEN,)),
        (f"{outer}class_pos_emb", (1, HIDDEN // HEADS // 2)),
        (f"{outer}patch_embed.proj.weight", (HIDDEN, 3, PATCH, PATCH)),
        *norm(f"{outer}pre_layernorm", HIDDEN),
        *merger(outer, 2),
    ]
    for i in range(LAYERS):
        shapes += transformer_layer(f"{outer}blocks.{i}.", blocks)
    config = {
        "architectures": ["LLaVAOneVision1_5_ForConditionalGeneration"],
        "model_type": "llavaonevision1_5",
        "text_config": settings,
        "vision_config": {
            "model_type": "rice_vit",
            "depth": LAYERS,
            "embed_dim": HIDDEN,
            "hidden_size": HIDDEN,
            "in_channels": 3,
            "intermediate_size": FFN,
            "num_heads": HEADS,
            "patch_size": PATCH,
            "spatial_merge_size": 2,
            "temporal_patch_size": 1,
            "text_hidden_size": TEXT_HIDDEN,
        },
    }
    tensors = {**filled(shapes), **dict(language(text, inner))}
    return Model(config, tensors, "vision_model.", "rice_visual", is_moe, newer)


ONEVISION_2 = [
    "llava_onevision2",
    "llava_onevision2_rms",
    "llava_onevision2_moe",
]


def onevision_2(folder, name):
    outer = "model.visual."
    is_moe = name.endswith("moe")
    text, settings = text_of("qwen3_moe" if is_moe else "qwen3")
    names = ("layer_norm1", "layer_norm2", "self_attn.qkv", "self_attn.proj", "mlp.fc1", "mlp.fc2")
    shapes = [
        (f"{outer}embeddings.patch_embedding.weight", (HIDDEN, 3, PATCH, PATCH)),
        *norm(f"{outer}layernorm_pre", HIDDEN),
        *merger(outer, 3),
    ]
    for i in range(LAYERS):
        shapes += transformer_layer(f"{outer}encoder.layers.{i}.", names)
    rms = name == "llava_onevision2_rms"
    if rms:
        norms = ("layer_norm1.bias", "layer_norm2.bias", "layernorm_pre.bias")
        shapes = [(key, shape) for key, shape in shapes if not key.endswith(norms)]
    config = {
        "architectures": ["LlavaOnevision2ForConditionalGeneration"],
        "model_type": "llava_onevision2_moe" if is_moe else "llava_onevision2",
        "text_config": settings,
        "tie_word_embeddings": False,
        "vision_config": {
            "model_type": "onevision_encoder",
            "hidden_size": HIDDEN,
            "image_size": 12,
            "intermediate_size": FFN,
            "layer_norm_type": "rms_norm" if rms else "layer_norm",
            "num_attention_heads": HEADS,
            "num_channels": 3,
            "num_hidden_layers": LAYERS,
            "out_hidden_size": TEXT_HIDDEN,
            "patch_size": PATCH,
            "spatial_merge_size": 3,
        },
    }
    tensors = {**filled(shapes), **dict(language(text, "model.language_model."))}
    return Model(config, tensors, "vision_model.", "onevision_encoder", is_moe)


def kimi(folder, name):
    text, settings = text_of("deepseek_v3")
    outer = "vision_tower."
    names = ("norm0", "norm1", "wqkv", "wo", "mlp.fc0", "mlp.fc1")
    width = HIDDEN * 4
    shapes = [
        *linear(f"{outer}patch_embed.proj", HIDDEN, 3),
        (f"{outer}patch_embed.pos_emb.weight", (8, 6, HIDDEN)),
        *norm(f"{outer}encoder.final_layernorm", HIDDEN),
        *norm("multi_modal_projector.pre_norm", HIDDEN),
        *linear("multi_modal_projector.linear_1", width, width),
        *linear("multi_modal_projector.linear_2", TEXT_HIDDEN, width),
    ]
    for i in range(LAYERS):
        shapes += transformer_layer(f"{outer}encoder.blocks.{i}.", names)
    tensors = {**filled(shapes), **dict(language(text, "language_model.model.", "language_model.lm_head."))}
    patch = tensors[f"{outer}patch_embed.proj.weight"]
    tensors[f"{outer}patch_embed.proj.weight"] = patch[..., None, None].repeat(1, 1, PATCH, PATCH)
    for key in list(tensors):
        if key.endswith("e_score_correction_bias"):
            tensors[key] = tensors[key].float()
    config = {
        "architectures": ["KimiVLForConditionalGeneration"],
        "model_type": "kimi_vl",
        "media_placeholder_token_id": 500,
        "text_config": settings,
        "vision_config": {
            "model_type": "moonvit",
            "hidden_size": HIDDEN,
            "init_pos_emb_height": 8,
            "init_pos_emb_width": 6,
            "intermediate_size": FFN,
            "merge_kernel_size": [2, 2],
            "num_attention_heads": HEADS,
            "num_hidden_layers": LAYERS,
            "patch_size": PATCH,
        },
    }
    return Model(config, tensors, "vision_tower.", "moonvit", experts=True)


# Of which model of transformers, and the head of its own config.json.
ORIGINAL = {
    "llava_llama": ("llava", "LlavaLlamaForCausalLM", "openai/clip-vit-large-patch14-336"),
    "llava_mistral": ("llava_next", "LlavaMistralForCausalLM", "openai/clip-vit-large-patch14-336"),
    "llava_qwen": ("llava_onevision", "LlavaQwenForCausalLM", "google/siglip-so400m-patch14-384"),
}
ORIGINAL_NAMES = (
    ("language_model.model.", "model."),
    ("language_model.lm_head.", "lm_head."),
    ("vision_tower.", "model.vision_tower.vision_tower.vision_model."),
    ("multi_modal_projector.linear_1.", "model.mm_projector.0."),
    ("multi_modal_projector.linear_2.", "model.mm_projector.2."),
    ("image_newline", "model.image_newline"),
)


def original_llava(folder, name):
    """The model of transformers, as LLaVA's own code saves it. The tower is none that its name
    could tell the sizes of."""
    case, architecture, tower = ORIGINAL[name]
    tensors = {}
    for key, value in build(folder, case).items():
        old, new = next(pair for pair in ORIGINAL_NAMES if key.startswith(pair[0]))
        tensors[new + key.removeprefix(old)] = value
    was = json.loads((folder / "config.json").read_text())
    vision, is_tiled = was["vision_config"], "image_newline" in str(tensors.keys())
    own = ("num_attention_heads", "intermediate_size", "patch_size", "image_size")
    config = {
        **was["text_config"],
        "architectures": [architecture],
        "model_type": "llava" if name == "llava_qwen" else name,
        "image_aspect_ratio": "anyres" if is_tiled else "pad",
        "mm_hidden_size": vision["hidden_size"],
        "mm_patch_merge_type": "spatial_unpad" if is_tiled else "flat",
        "mm_projector_type": "mlp2x_gelu",
        "mm_vision_select_feature": "patch",
        "mm_vision_select_layer": -2,
        "mm_vision_tower": tower,
        "tie_word_embeddings": "lm_head.weight" not in tensors,
        "vision_config": {key: vision[key] for key in own},
    }
    return Model(config, tensors, "vision_model.", "clip_encoder")


MAKERS = {
    **{name: original_llava for name in ORIGINAL},
    **{name: chat_model for name in CHAT},
    "llavaonevision1_5": onevision_1_5,
    "llavaonevision1_5_new": onevision_1_5,
    "llavaonevision1_5_moe": onevision_1_5,
    **{name: onevision_2 for name in ONEVISION_2},
    "kimi_vl": kimi,
}


def save(folder, model):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(model.config))
    save_file(model.tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.fixture
def model(tmp_path, request):
    made = MAKERS[request.param](tmp_path / "made", request.param)
    save(tmp_path / "hf", made)
    return made


# Their Megatron models are those of transformers' own forms.
NAMED = {*CHAT, *ORIGINAL}

every = pytest.mark.parametrize("model", MAKERS, indirect=True)


def there(shardwright, tmp_path, model, *flags):
    experts = ("--ep", 2) if model.experts else ()
    out = tmp_path / "out"
    flags = flags or ("--tp", 2, "--pp", 2, *experts)
    return shardwright("convert", tmp_path / "hf", out, "--to", "torch_dist", *flags)


@every
def test_there_and_back(shardwright, tmp_path, model):
    there(shardwright, tmp_path, model)
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), model.tensors)
    one = checkpoints.load_dcp(tmp_path / "out")
    family_rounds.of_local_modules(shardwright, tmp_path / "hf", tmp_path)
    shardwright("convert", tmp_path / "out", tmp_path / "legacy", "--to", "legacy", "--tp", 2)
    bare = ("--hf-config", tmp_path / "hf")
    family_rounds.as_it_was(shardwright, tmp_path / "legacy", model.tensors)
    shardwright("convert", tmp_path / "legacy", tmp_path / "again", "--to", "hf", *bare)
    # Legacy files have no place for what Megatron has none for, and the conversion says so.
    kept = {key: v for key, v in model.first_published().items() if f"hf_extra.{key}" not in one}
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "again"), kept)
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


@pytest.mark.parametrize("model", ["internvl_chat_internlm2"], indirect=True)
def test_each_rank_has_the_norms_of_its_heads(shardwright, tmp_path, model):
    """As Megatron-LM's InternViT has them: one norm over all heads, cut with the heads."""
    there(shardwright, tmp_path, model, "--tp", 2)
    whole = chunks(tmp_path / "out")
    part = "self_attention.q_layernorm.weight"
    rows = {(i, at): (1, HIDDEN // 2) for i in range(LAYERS) for at in (0, HIDDEN // 2)}
    assert dict(whole[f"vision_model.decoder.layers.{part}"]) == rows
    shardwright("convert", tmp_path / "out", tmp_path / "legacy", "--to", "legacy", "--tp", 2)
    for rank in range(2):
        folder = checkpoints.iteration_folder(tmp_path / "legacy") / f"mp_rank_{rank:02d}"
        own = torch.load(folder / "model_optim_rng.pt", weights_only=False)["model"]  # our own file
        norm = model.tensors["vision_model.encoder.layers.1.attn.q_norm.weight"]
        assert torch.equal(own[f"vision_model.decoder.layers.1.{part}"], norm.chunk(2)[rank])


@pytest.mark.parametrize("model", ["internvl_chat_internlm2"], indirect=True)
def test_heads_that_ranks_cannot_share(shardwright, tmp_path, model):
    """Of six heads four ranks would have one and a half each, though they can share the rows:
    torch_dist can be loaded by two ranks then, files of ranks by none."""
    words = "vision_model.decoder.layers.self_attention.linear_qkv.weight: 4 tensor parallel ranks cannot share its 6"
    hf, out, one = (tmp_path / name for name in ("hf", "out", "one"))
    four = ("--tp", 4, "--make-vocab-size-divisible-by", 4)
    done = shardwright("convert", hf, tmp_path / "cut", "--to", "torch_dist", *four)
    heads = "self_attention.linear_qkv.weight: 4 tensor parallel ranks cannot share its 6"
    assert f"{heads} attention heads" in done.stderr
    assert "what is written loads with such a size only" in done.stderr
    parts = ("--component", "language=tp=1", "--component", "images=tp=4")
    done = shardwright("convert", hf, out, "--to", "mimo", *parts, expect=2)
    assert words in done.stderr
    shardwright("convert", hf, one, "--to", "torch_dist")
    done = shardwright("convert", one, out, "--to", "legacy", *four, expect=2)
    assert heads in done.stderr
    assert not out.exists()
    parts = ("--component", "language=tp=2", "--component", "images=tp=1")
    shardwright("convert", one, out, "--to", "mimo", *parts)


@pytest.mark.parametrize("name", ORIGINAL)
def test_both_forms_of_llava_are_one_model(shardwright, tmp_path, name):
    save(tmp_path / "original", original_llava(tmp_path / "own", name))
    made = []
    for form in ("original", "own"):
        out = tmp_path / f"{form}_out"
        done = shardwright("convert", tmp_path / form, out, "--to", "torch_dist", "--tp", 2)
        assert "the tensors show" not in done.stderr  # how many layers, as the file does not say
        tensors = checkpoints.load_dcp(out)
        made.append({k: v for k, v in tensors.items() if not k.startswith("hf_extra.")})
    checkpoints.assert_same(made[1], made[0])


@pytest.mark.parametrize("name, kind", [("llava_llama", "clip"), ("llava_qwen", "siglip")])
def test_a_tower_that_is_published_elsewhere(shardwright, tmp_path, name, kind):
    """What is missing is said by name; a checkpoint of the tower completes the model."""
    made = original_llava(tmp_path / "own", name)
    tower = {key: made.tensors.pop(key) for key in list(made.tensors) if "vision_tower" in key}
    save(tmp_path / "hf", made)
    flags = ("--to", "torch_dist")
    done = shardwright("convert", tmp_path / "hf", tmp_path / "out", *flags, expect=2)
    assert "model.vision_tower.vision_tower.vision_model.embeddings.patch_embedding" in done.stderr
    assert "nothing of its images: 'shardwright split' it" in done.stderr
    assert not (tmp_path / "out").exists()
    shardwright("split", tmp_path / "hf", tmp_path / "parts")
    outer = "model.vision_tower.vision_tower."
    for form, prefix in (("published", outer), ("newer", outer + "vision_model.")):
        alone = {key.removeprefix(prefix): value for key, value in tower.items()}
        save(tmp_path / form, Model({"model_type": f"{kind}_vision_model"}, alone, "", ""))
        folders = {name: tmp_path / "parts" / name for name in ("language", "adapter")}
        folders["images"] = tmp_path / form
        flags_of_parts = [f"--component={name}={path}" for name, path in folders.items()]
        config = ("--config", tmp_path / "hf" / "config.json")
        shardwright("merge", tmp_path / f"{form}_whole", *flags_of_parts, *config)
        whole = checkpoints.load_hf(tmp_path / f"{form}_whole")
        checkpoints.assert_same(whole, {**made.tensors, **tower})
    shardwright("convert", tmp_path / "newer_whole", tmp_path / "out", *flags)


@pytest.mark.parametrize("name", BOTH_FORMS)
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


@pytest.mark.parametrize("model", [m for m in MAKERS if m not in NAMED], indirect=True)
def test_by_arguments_alone(shardwright, tmp_path, model):
    """They tell the family, and a config.json that says what the published one said of shapes."""
    there(shardwright, tmp_path, model)
    shutil.rmtree(checkpoints.iteration_folder(tmp_path / "out") / "hf")
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), model.first_published())
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    assert config["architectures"] == model.config["architectures"]
    for section in ("text_config", "vision_config"):
        for key, value in config[section].items():
            was = model.config[section].get(key, value)
            assert value == was or key in ("dtype", "torch_dtype", "rope_theta"), f"{section}.{key}"


def test_forms_of_internvl_need_a_name(shardwright, tmp_path):
    """In Megatron they are the same, and transformers' form is the one that is written."""
    save(tmp_path / "hf", chat_model(tmp_path / "own", "internvl_chat"))
    out = tmp_path / "out"
    shardwright("convert", tmp_path / "hf", out, "--to", "torch_dist")
    shutil.rmtree(checkpoints.iteration_folder(out) / "hf")
    for family, form in (("internvl", "own"), ("internvl_chat", "hf")):
        back = tmp_path / f"{family}_back"
        flags = () if family == "internvl" else ("--family", family)
        shardwright("convert", out, back, "--to", "hf", *flags)
        checkpoints.assert_same(checkpoints.load_hf(back), checkpoints.load_hf(tmp_path / form))


@pytest.mark.parametrize("model", ["llavaonevision1_5", "llava_onevision2"], indirect=True)
def test_adapters_are_whole_on_every_rank(shardwright, tmp_path, model):
    there(shardwright, tmp_path, model, "--tp", 2)
    made = checkpoints.load_dcp(tmp_path / "out")
    whole = chunks(tmp_path / "out")
    adapter = [key for key in made if key.startswith("adapter.")]
    assert len(adapter) == 6
    assert all(len(whole[key]) == 1 for key in adapter)
    qkv = "vision_model.decoder.layers.self_attention.linear_qkv.weight"
    assert len(whole[qkv]) == 2 * LAYERS
    stem = next(key for key in model.tensors if key.endswith("qkv.weight") and ".0." in key)
    parts = model.tensors[stem].view(3, HEADS, HIDDEN // HEADS, HIDDEN)
    assert torch.equal(made[qkv][0], parts.transpose(0, 1).reshape(3 * HIDDEN, HIDDEN))
    shardwright("convert", tmp_path / "hf", tmp_path / "legacy", "--to", "legacy", "--tp", 2)
    for rank in range(2):
        folder = checkpoints.iteration_folder(tmp_path / "legacy") / f"mp_rank_{rank:02d}"
        own = torch.load(folder / "model_optim_rng.pt", weights_only=False)["model"]  # our own file
        assert all(torch.equal(own[key], made[key]) for key in adapter)


@pytest.mark.parametrize("model", ["kimi_vl"], indirect=True)
def test_a_tower_that_megatron_takes_as_it_is(shardwright, tmp_path, model):
    there(shardwright, tmp_path, model, "--tp", 2)
    made = checkpoints.load_dcp(tmp_path / "out")
    whole = chunks(tmp_path / "out")
    parts = ("vision_tower.", "multi_modal_projector.")
    kept = {key: value for key, value in model.tensors.items() if key.startswith(parts)}
    checkpoints.assert_same({key: made[key] for key in made if key.startswith(parts)}, kept)
    assert all(len(whole[key]) == 1 for key in kept)
    reader = checkpoints.dcp.FileSystemReader(str(checkpoints.iteration_folder(tmp_path / "out")))
    entries = reader.read_metadata().state_dict_metadata
    assert not [key for key in entries if key.startswith(parts) and "_extra_state" in key]


def test_experts_by_the_names_of_its_own_code(shardwright, tmp_path):
    """That calls the whole Qwen2-VL: tower and experts tell it from one."""
    made = onevision_1_5(tmp_path / "made", "llavaonevision1_5_moe")
    made.config.update(architectures=["Qwen2VLForConditionalGeneration"], model_type="qwen2_vl")
    save(tmp_path / "hf", made)
    there(shardwright, tmp_path, made)
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), made.tensors)


@pytest.mark.parametrize("model", ["llava_onevision2", "llava_onevision2_moe"], indirect=True)
def test_a_head_that_megatron_lacks(shardwright, tmp_path, model):
    """It would also put a norm before the merger."""
    model.config["vision_config"]["use_head"] = True
    (tmp_path / "hf" / "config.json").write_text(json.dumps(model.config))
    flags = ("--to", "torch_dist")
    done = shardwright("convert", tmp_path / "hf", tmp_path / "out", *flags, expect=2)
    assert "found vision_config.use_head = True, expected False" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "model, section, kind, words",
    [
        ("kimi_vl", "vision_config", "siglip", "expected 'moonvit': family kimi_vl knows no other"),
        ("internvl_chat", "llm_config", "internlm", "internvl_chat knows no other"),
        ("llava_onevision2", "text_config", "llama", "llava_onevision2 knows no other"),
    ],
    indirect=["model"],
)
def test_variants_that_are_not_known(shardwright, tmp_path, model, section, kind, words):
    model.config[section]["model_type"] = kind
    (tmp_path / "hf" / "config.json").write_text(json.dumps(model.config))
    done = shardwright(
        "convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", expect=2
    )
    assert f"found {section}.model_type = '{kind}'" in done.stderr
    assert words in done.stderr
    assert not (tmp_path / "out").exists()


def split_and_merge(shardwright, tmp_path, source):
    """What comes of taking a model apart and putting it together again."""
    parts = tmp_path / "parts"
    shardwright("split", source, parts)
    names = [part.name for part in parts.iterdir() if part.name != "model"]
    flags = [word for name in names for word in ("--component", f"{name}={parts / name}")]
    shardwright("merge", tmp_path / "merged", *flags, "--config", parts / "model")
    return {name: checkpoints.load_hf(parts / name) for name in names}


@every
def test_parts(shardwright, tmp_path, model):
    """The parts have the names that their own checkpoints have, and make the same model again."""
    parts = split_and_merge(shardwright, tmp_path, tmp_path / "hf")
    assert sorted(parts) == ["adapter", "images", "language"]
    words = {"model.embed_tokens.weight", "model.tok_embeddings.weight"}
    assert len(words & parts["language"].keys()) == 1
    assert sum(map(len, parts.values())) == len(model.tensors)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "merged"), model.tensors)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("llava", "internvl"))])
def test_parts_of_transformers_models(shardwright, tmp_path, name):
    source = build(tmp_path / "hf", name)
    parts = split_and_merge(shardwright, tmp_path, tmp_path / "hf")
    assert sorted(parts) == ["adapter", "images", "language"]
    assert sum(map(len, parts.values())) == len(source)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "merged"), source)
