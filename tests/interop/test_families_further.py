# SPDX-License-Identifier: Apache-2.0
"""As test_families: of families that came last."""
import json

import pytest
import torch
from safetensors.torch import save_file

import checkpoints
import family_rounds
import hf_models

TIED, UNTIED = ({"tie_word_embeddings": tied} for tied in (True, False))
ONE_GROUP = {"num_key_value_heads": 1}
PACKED = {"packed": True}

# name -> (model_type, settings)
CASES = {
    "lfm2": ("lfm2", ONE_GROUP),
    "lfm2_published": ("lfm2", UNTIED),
    "lfm2_as_said": (
        "lfm2", {"block_auto_adjust_ff_dim": False, "conv_bias": True, "layer_types": None, **UNTIED}
    ),
    "lfm2_moe": ("lfm2_moe", ONE_GROUP),
    "lfm2_moe_packed": ("lfm2_moe", {"use_expert_bias": False, **UNTIED, **PACKED}),
    "bamba": ("bamba", ONE_GROUP),
    "bamba_published": ("bamba", {}),
    "gemma3n": ("gemma3n_text", ONE_GROUP),
    "gemma3n_of_transformers_4": ("gemma3n_text", TIED),
    "jamba": ("jamba", ONE_GROUP),
    "jamba_packed": (
        "jamba", {"mamba_proj_bias": True, "mamba_conv_bias": False, **TIED, **PACKED}
    ),
    "minimax": ("minimax", ONE_GROUP),
    "minimax_published": ("minimax", {}),
    "minimax_packed": ("minimax", {**TIED, **PACKED}),
    "minicpm": ("minicpm", {"head_dim": 12, **ONE_GROUP}),
    "minicpm3": ("minicpm3", {}),
    "minicpm3_untied": ("minicpm3", UNTIED),
    "nanochat": ("nanochat", ONE_GROUP),
    "zamba2": ("zamba2", {}),
    "zamba2_one_block": (
        "zamba2",
        {"num_mem_blocks": 1, "use_shared_attention_adapter": False, "use_mem_rope": True, **UNTIED},
    ),
    "olmo_hybrid": ("olmo_hybrid", ONE_GROUP),
    "olmo_hybrid_packed": ("olmo_hybrid", {"linear_allow_neg_eigval": False, **TIED, **PACKED}),
}
# transformers does not have the model.
REMOTE = ("minicpm", "minimax_published", "gemma3n_of_transformers_4")
# What transformers computes and saves all the same: a legacy file has no place for it.
TABLES = (".slope_rate", ".query_decay", ".key_decay", ".diagonal_decay")


def own_name(name):
    """transformers renames this norm of OLMo Hybrid with those of delta nets, and its fourth
    version put something behind each `model` of Gemma 3n."""
    name = name.replace("model.language_model", "model")
    return name.replace("layers.3.feedforward_layer_norm", "layers.3.post_attention_layernorm")


def finish_olmo_hybrid(folder):
    """transformers saves its one convolution as thirds, whatever the widths of keys and values."""
    for form in (folder, folder.parent / "unpacked"):
        if not form.exists():
            continue
        tensors = checkpoints.load_hf(form)
        config = json.loads((form / "config.json").read_text())
        keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
        values = config["linear_num_value_heads"] * config["linear_value_head_dim"]
        for name in [name for name in tensors if name.endswith("q_conv1d.weight")]:
            names = [name.replace("q_conv", f"{part}_conv") for part in "qkv"]
            whole = torch.cat([tensors[part] for part in names])
            for part, rows in zip(names, whole.split([keys, keys, values])):
                tensors[part] = rows.contiguous()
        for file in form.glob("*.safetensors*"):
            file.unlink()
        save_file(tensors, form / "model.safetensors", metadata={"format": "pt"})


def finish_bamba(folder):
    """As transformers has it by default, which says nowhere that half of each head is rotated; and
    with how many channels are."""
    config = json.loads((folder / "config.json").read_text())
    assert config["rope_parameters"].pop("partial_rotary_factor") == 0.5
    if "bamba_published" in str(folder):
        config["attn_rotary_emb"] = 3
    (folder / "config.json").write_text(json.dumps(config))


def finish_lfm2(folder):
    """As published: with other words for some settings, and some twice."""
    config = json.loads((folder / "config.json").read_text())
    kinds = config.pop("layer_types")
    config.update(
        full_attn_idxs=[layer for layer, kind in enumerate(kinds) if kind == "full_attention"],
        block_ff_dim=config["intermediate_size"],
        tie_embedding=config.pop("tie_word_embeddings"),
    )
    (folder / "config.json").write_text(json.dumps(config))


def finish_minimax(folder):
    """As MiniMax-Text-01 is published, without tables."""
    config = json.loads((folder / "config.json").read_text())
    kinds = config.pop("layer_types")
    for ours, theirs in (("full_attn", "full_attention"), ("linear_attn", "linear_attention"), ("mlp", "mlp")):
        for factor in ("alpha", "beta"):
            config[f"layernorm_{theirs}_{factor}"] = config.pop(f"{ours}_{factor}_factor")
    config.update(
        architectures=["MiniMaxText01ForCausalLM"],
        model_type="minimax_text_01",
        attn_type_list=[int(kind == "full_attention") for kind in kinds],
        rope_theta=config.pop("rope_parameters")["rope_theta"],
        rotary_dim=10,
        postnorm=True,
        shared_intermediate_size=0,
    )
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {k: v for k, v in checkpoints.load_hf(folder).items() if not k.endswith(TABLES)}
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def finish_gemma3n_of_transformers_4(folder):
    """Its save_pretrained, up to 4.57, undid a loader's renaming wherever the word stood."""
    tensors = {
        name.replace("model", "model.language_model"): tensor
        for name, tensor in checkpoints.load_hf(folder).items()
    }
    assert "model.language_model.per_layer_model.language_model_projection.weight" in tensors
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


FINISH = {"bamba_published": finish_bamba, "lfm2_published": finish_lfm2, "minimax_published": finish_minimax}
FINISH |= {"bamba": finish_bamba, "olmo_hybrid": finish_olmo_hybrid}
FINISH["olmo_hybrid_packed"] = finish_olmo_hybrid
FINISH["gemma3n_of_transformers_4"] = finish_gemma3n_of_transformers_4


@pytest.fixture(scope="module")
def imported(shardwright, tmp_path_factory):
    return family_rounds.imports(shardwright, tmp_path_factory, CASES, FINISH)


@pytest.mark.parametrize("name", CASES)
def test_there_and_back(shardwright, imported, tmp_path, name):
    family_rounds.there_and_back(shardwright, imported(name), tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_back_through_legacy_with_a_config_alone(shardwright, imported, tmp_path, name):
    root = imported(name)
    family_rounds.through_legacy(shardwright, root, tmp_path)
    known = family_rounds.known_form(root)
    expected = {
        own_name(key): value for key, value in known.items() if not key.endswith(TABLES)
    }
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), expected)


@pytest.mark.parametrize("name", [name for name in CASES if name not in REMOTE])
def test_back_from_arguments_alone(shardwright, imported, tmp_path, name):
    root = imported(name)
    family_rounds.without_hf(root / "megatron", tmp_path / "megatron")
    shardwright("convert", tmp_path / "megatron", tmp_path / "back", "--to", "hf")
    known = {own_name(key): value for key, value in family_rounds.known_form(root).items()}
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), known)
    ours, theirs = (family_rounds.logits(folder) for folder in (tmp_path / "back", root / "hf"))
    assert torch.isfinite(theirs).all()
    torch.testing.assert_close(ours, theirs)


ARGUMENTS = {
    "lfm2": {"ffn_hidden_size": 80, "qk_layernorm": True, "conv_L_cache": 3},
    "lfm2_as_said": {"ffn_hidden_size": 104},
    "lfm2_moe": {
        "moe_layer_freq": [0, 1, 1, 1],
        "moe_router_enable_expert_bias": True,
        "moe_router_score_function": "sigmoid",
    },
    "lfm2_moe_packed": {"moe_router_enable_expert_bias": False},
    "gemma3n": {"num_kv_shared_layers": 2, "laurel_rank": 6, "window_attn_skip_freq": [1, 0, 1, 0, 0]},
    "bamba_published": {"rotary_percent": 0.25},
    "bamba": {"mamba_num_heads": 6, "rotary_percent": 0.5, "attn_layer_indices": [1, 3]},
    "jamba": {"position_embedding_type": "none", "mamba_dt_rank": 5, "attn_layer_offset": 1},
    "minimax_published": {
        "full_attn_alpha_factor": 1.5,
        "linear_attn_beta_factor": 0.7,
        "mlp_alpha_factor": 2,
        "attn_type_list": [0, 1, 0],
        "rotary_percent": 0.5,
    },
    "lfm2_published": {"ffn_hidden_size": 80, "full_attn_idxs": [1, 3]},
    "minimax": {"full_attn_alpha_factor": 1.5, "mlp_alpha_factor": 2, "num_experts": 6},
    "minicpm": {"scale_emb": 12, "dim_model_base": 36},
    "minicpm3": {"scale_depth": 1.1, "multi_latent_attention": True, "q_lora_rank": 44},
    "nanochat": {"squared_relu": True, "swiglu": False, "final_logit_softcapping": 9.0},
    "zamba2_one_block": {"use_mem_rope": True, "num_mem_blocks": 1},
    "zamba2": {"hybrid_layer_ids": [1, 3, 5], "num_mem_blocks": 2, "adapter_rank": 7},
    "olmo_hybrid": {"linear_attention_freq": 4, "linear_allow_neg_eigval": True},
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(shardwright, imported, name):
    shown = json.loads(shardwright("inspect", imported(name) / "megatron", "--json").stdout)
    expected = ARGUMENTS[name]
    assert {key: shown["arguments"].get(key) for key in expected} == expected


# Both ways round look alike in a round trip: case, Megatron's part of layer 1, HF's in that order.
PARTS = [
    ("lfm2", "mlp.linear_fc1.weight", ["feed_forward.w1", "feed_forward.w3"]),
    (
        "lfm2_moe",
        "mlp.experts.experts.linear_fc1.weight",
        ["feed_forward.experts.0.w1", "feed_forward.experts.0.w3"],
    ),
    ("bamba", "mlp.linear_fc1.weight", ["feed_forward.gate_proj", "feed_forward.up_proj"]),
    (
        "jamba",
        "mlp.experts.experts.linear_fc1.weight",
        ["feed_forward.experts.0.gate_proj", "feed_forward.experts.0.up_proj"],
    ),
    (
        "minimax",
        "mlp.experts.experts.linear_fc1.weight",
        ["block_sparse_moe.experts.0.w1", "block_sparse_moe.experts.0.w3"],
    ),
    ("minicpm", "mlp.linear_fc1.weight", ["mlp.gate_proj", "mlp.up_proj"]),
    ("minicpm3", "mlp.linear_fc1.weight", ["mlp.gate_proj", "mlp.up_proj"]),
    ("olmo_hybrid", "self_attention.in_proj.weight.z", ["linear_attn.g_proj"]),
    ("olmo_hybrid", "self_attention.in_proj.weight.alpha", ["linear_attn.a_proj"]),
    ("olmo_hybrid", "self_attention.conv1d.weight.key", ["linear_attn.k_conv1d"]),
    ("olmo_hybrid_packed", "self_attention.in_proj.weight.key", ["linear_attn.k_proj"]),
]


def of_layer(made, layer, part):
    stack = made.get(f"decoder.layers.{part}")  # where all layers are alike
    return made[f"decoder.layers.{layer}.{part}"] if stack is None else stack[layer]


@pytest.mark.parametrize("name, part, theirs", PARTS)
def test_parts_follow_each_other(imported, name, part, theirs):
    root = imported(name)
    source, made = checkpoints.load_hf(root / "hf"), checkpoints.load_dcp(root / "megatron")
    ours = of_layer(made, 1, part)
    ours = ours[0] if ".experts." in part else ours
    expected = [source[f"model.layers.1.{half}.weight"] for half in theirs]
    assert torch.equal(ours, torch.cat(expected))


def test_norms_without_weights_have_ones(imported):
    made = checkpoints.load_dcp(imported("nanochat") / "megatron")
    norms = [name for name in made if "norm" in name]
    assert len(norms) == 5  # of all layers, which are alike, and behind them
    assert all((made[name] == 1).all() for name in norms)


def test_an_mlp_of_another_width_than_config_json_says_is_no_note(shardwright, imported, tmp_path):
    """LFM2's is rounded, so that the tensors alone show it."""
    root = imported("lfm2")
    done = shardwright("plan", root / "hf", tmp_path / "out", "--to", "torch_dist")
    assert "ffn: config.json says" not in done.stdout + done.stderr
    config = ("--hf-config", root / "hf")
    family_rounds.without_hf(root / "megatron", tmp_path / "megatron")
    shardwright("convert", tmp_path / "megatron", tmp_path / "back", "--to", "hf", *config)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), checkpoints.load_hf(root / "hf"))


def test_other_names_of_norms_behind(shardwright, tmp_path):
    """Megatron-Bridge's modules of GLM-4 call the norms behind attention and MLP so."""
    hf_models.create(tmp_path / "hf", "glm4", dtype=torch.bfloat16)
    pad = ("--make-vocab-size-divisible-by", 1)
    shardwright("convert", tmp_path / "hf", tmp_path / "megatron", "--to", "torch_dist", *pad)
    shardwright("convert", tmp_path / "megatron", tmp_path / "own", "--to", "safetensors")
    tensors = checkpoints.load_hf(tmp_path / "own")
    other = {
        name.replace("linear_proj.post_layernorm", "post_self_attn_layernorm").replace(
            "linear_fc2.post_layernorm", "post_mlp_layernorm"
        ): tensor
        for name, tensor in tensors.items()
    }
    assert len(other.keys() - tensors.keys()) == 2
    for file in (tmp_path / "own").glob("*.safetensors*"):
        file.unlink()
    save_file(other, tmp_path / "own" / "model.safetensors")
    config = ("--hf-config", tmp_path / "hf")
    shardwright("convert", tmp_path / "own", tmp_path / "back", "--to", "hf", *config)
    checkpoints.assert_same(
        checkpoints.load_hf(tmp_path / "back"), checkpoints.load_hf(tmp_path / "hf")
    )


@pytest.mark.parametrize(
    "key, value, told",
    [
        ("mamba_expand", 4, "in_proj.weight (334, 72): found shape"),
        ("use_shared_attention_adapter", False, "18 tensors without a rule"),
    ],
)
def test_zamba2_is_as_its_tensors_are(shardwright, tmp_path, key, value, told):
    model = tmp_path / "model"
    hf_models.create(model, "zamba2")
    config = json.loads((model / "config.json").read_text())
    assert config[key] != value
    (model / "config.json").write_text(json.dumps(dict(config, **{key: value})))
    refused = shardwright("convert", model, tmp_path / "no", "--to", "torch_dist", expect=2)
    assert told in refused.stderr
