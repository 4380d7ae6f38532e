# SPDX-License-Identifier: Apache-2.0
"""As test_families: of families that came after those there."""
import json

import pytest
import torch

import checkpoints
import family_rounds
import hf_models

TIED, UNTIED = ({"tie_word_embeddings": tied} for tied in (True, False))
ONE_GROUP = {"num_key_value_heads": 1}
PACKED = {"packed": True}

# name -> (model_type, settings)
CASES = {
    "cohere": ("cohere", ONE_GROUP),
    "cohere_norms": ("cohere", {"use_qk_norm": True, **UNTIED}),
    "cohere2": ("cohere2", ONE_GROUP),
    "cohere2_moe": ("cohere2_moe", ONE_GROUP),
    "cohere2_moe_packed": (
        "cohere2_moe",
        {"expert_selection_fn": "sigmoid", "shared_expert_combination_strategy": "sum", **PACKED},
    ),
    "stablelm": ("stablelm", {"use_qkv_bias": True, **ONE_GROUP}),
    "stablelm_parallel": (
        "stablelm", {"use_parallel_residual": True, "qk_layernorm": True, **TIED}
    ),
    "hunyuan_v1_dense": ("hunyuan_v1_dense", TIED),
    "hunyuan_v1_dense_alpha": (
        "hunyuan_v1_dense",
        {
            "rope_parameters": {
                "rope_type": "dynamic", "rope_theta": 5000.0, "factor": 1.0, "alpha": 50.0
            },
            **ONE_GROUP,
        },
    ),
    "hunyuan_v1_moe": ("hunyuan_v1_moe", ONE_GROUP),
    "hunyuan_v1_moe_packed": ("hunyuan_v1_moe", {**TIED, **PACKED}),
    "granitemoe": ("granitemoe", ONE_GROUP),
    "granitemoe_packed": ("granitemoe", {**TIED, **PACKED}),
    "granitemoeshared": ("granitemoeshared", TIED),
    "granitemoehybrid": ("granitemoehybrid", ONE_GROUP),
    "granitemoehybrid_packed": (
        "granitemoehybrid", {"position_embedding_type": "nope", **TIED, **PACKED}
    ),
    "granitemoehybrid_dense": ("granitemoehybrid", {"num_local_experts": 0}),
    "granite_swa": ("granite_swa", ONE_GROUP),
    "granite_swa_biases": (
        "granite_swa", {"attention_bias": True, "mlp_bias": True, **UNTIED}
    ),
    "hyperclovax": ("hyperclovax", ONE_GROUP),
    "hyperclovax_before": ("hyperclovax", {"use_post_norm": False, **TIED}),
    "mistral4": ("mistral4", {}),
    "mistral4_packed": ("mistral4", {"q_lora_rank": None, **PACKED}),
    "axk1": ("axk1", {}),
    "axk1_packed": ("axk1", {**TIED, **PACKED}),
    "kolibri1": ("kolibri1", ONE_GROUP),
    "kolibri1_packed": ("kolibri1", {"norm_topk_prob": True, **PACKED}),
    "flint": ("flint", ONE_GROUP),
    "flint_packed": ("flint", {**TIED, **PACKED}),
    "beam": ("beam", ONE_GROUP),
    "beam_packed": ("beam", PACKED),
    "afmoe": ("afmoe", ONE_GROUP),
    "afmoe_packed": ("afmoe", {"mup_enabled": False, **TIED, **PACKED}),
    "apertus": ("apertus", ONE_GROUP),
    "laguna": ("laguna", {}),
    "laguna_heads": (
        "laguna", {"num_attention_heads": 24, "num_attention_heads_per_layer": [6, 12, 18]}
    ),
    "laguna_packed": (
        "laguna", {"gating": "per-element", "num_key_value_heads": 3, **TIED, **PACKED}
    ),
    "deepseek_moe": ("deepseek_moe", ONE_GROUP),
    "bailing_moe": ("bailing_moe", {}),
    "olmo": ("olmo", {"clip_qkv": 0.7}),
    "olmo_tied": ("olmo", {**TIED, **ONE_GROUP}),
    "phi": ("phi", ONE_GROUP),
    "phimoe": ("phimoe", ONE_GROUP),
    "phimoe_packed": (
        "phimoe", {"attention_bias": False, "lm_head_bias": False, "sliding_window": 7, **PACKED}
    ),
    "gemma4_unified": ("gemma4_unified_text", {}),
    "gemma4_unified_key_is_value": (
        "gemma4_unified_text", {"attention_k_eq_v": True, **UNTIED, **ONE_GROUP}
    ),
    "vaultgemma": ("vaultgemma", ONE_GROUP),
}

# Their tensors and arguments are those of other families', so the family has to be named.
NAMED = (
    "stablelm", "hunyuan_v1_dense", "hyperclovax", "axk1", "kolibri1", "olmo", "phi", "vaultgemma",
    "gemma4_unified_text", "deepseek_moe", "bailing_moe",
)
# transformers does not have the model.
REMOTE = {
    "deepseek_moe": "deepseek",
    "bailing_moe": "bailing_moe",
}


@pytest.fixture(scope="module")
def imported(shardwright, tmp_path_factory):
    return family_rounds.imports(shardwright, tmp_path_factory, CASES, {})


@pytest.mark.parametrize("name", CASES)
def test_there_and_back(shardwright, imported, tmp_path, name):
    family_rounds.there_and_back(shardwright, imported(name), tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_back_through_legacy_with_a_config_alone(shardwright, imported, tmp_path, name):
    root = imported(name)
    family_rounds.through_legacy(shardwright, root, tmp_path)
    expected = family_rounds.known_form(root)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), expected)


@pytest.mark.parametrize("name", [name for name in CASES if name not in REMOTE])
def test_back_from_arguments_alone(shardwright, imported, tmp_path, name):
    family = CASES[name][0]
    flags = ("--family", family.removesuffix("_text")) if family in NAMED else ()
    family_rounds.from_arguments(shardwright, imported(name), tmp_path, *flags)


@pytest.mark.parametrize("name", REMOTE)
def test_tensors_from_arguments_alone(shardwright, imported, tmp_path, name):
    root = imported(name)
    family_rounds.without_hf(root / "megatron", tmp_path / "megatron")
    flags = ("--to", "hf", "--family", name)
    shardwright("convert", tmp_path / "megatron", tmp_path / "back", *flags)
    checkpoints.assert_same(
        checkpoints.load_hf(tmp_path / "back"), family_rounds.known_form(root)
    )
    was, now = (
        json.loads((at / "config.json").read_text()) for at in (root / "hf", tmp_path / "back")
    )
    assert now["model_type"] == REMOTE[name]
    said = ("architectures", "norm_topk_prob", "num_experts_per_tok", "hidden_size")
    assert {key: now[key] for key in said} == {key: was[key] for key in said}


# What Megatron's arguments say where no way back and no logits would show it.
ARGUMENTS = {
    "cohere": {"rotary_interleaved": True, "normalization": "LayerNorm"},
    "cohere2": {"no_rope_freq": [0, 1, 0], "window_attn_skip_freq": 2},
    "phi": {"rotary_percent": 0.5, "add_qkv_bias": True},
    "axk1": {"moe_router_num_groups": 2, "moe_layer_freq": [0, 1, 1]},
    "afmoe": {"moe_router_score_function": "sigmoid", "no_rope_freq": [0, 1, 0]},
    "beam": {"moe_router_num_groups": 2, "no_rope_freq": [0, 1, 0]},
    "kolibri1": {"moe_router_score_function": "sigmoid", "no_rope_freq": [0, 1, 0]},
    "laguna": {"rotary_base": 70000, "rotary_percent": 0.5, "moe_layer_freq": [0, 1, 1]},
    "deepseek_moe": {"moe_router_pre_softmax": True, "moe_router_score_function": "softmax"},
    "bailing_moe": {"moe_router_pre_softmax": False, "moe_router_score_function": "softmax"},
    "granitemoehybrid": {"position_embedding_type": "rope"},
    "granitemoehybrid_packed": {"position_embedding_type": "none"},
    "granitemoehybrid_dense": {"num_experts": None, "moe_ffn_hidden_size": None},
    "hunyuan_v1_moe": {"moe_router_topk": 2, "moe_router_pre_softmax": False},
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(shardwright, imported, name):
    shown = json.loads(shardwright("inspect", imported(name) / "megatron", "--json").stdout)
    expected = ARGUMENTS[name]
    assert {key: shown["arguments"].get(key) for key in expected} == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_zeros_have_the_dtype_of_the_model(shardwright, tmp_path, dtype):
    hf_models.create(tmp_path / "hf", "olmo", dtype=dtype)
    name = str(dtype).removeprefix("torch.")
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist")
    made = checkpoints.load_dcp(tmp_path / "out")
    assert {tensor.dtype for tensor in made.values() if tensor.is_floating_point()} == {dtype}
    # The same model, whichever way it went.
    shardwright("convert", tmp_path / "hf", tmp_path / "cast", "--to", "torch_dist", "--dtype", name)
    shardwright("diff", tmp_path / "hf", tmp_path / "cast")


def test_norms_without_bias_have_zeros(imported):
    """Megatron's LayerNorm has a bias always."""
    made = checkpoints.load_dcp(imported("cohere") / "megatron")
    biases = [name for name in made if name.endswith(("layer_norm_bias", "final_layernorm.bias"))]
    assert len(biases) == 2  # of all layers, which are alike, and behind them
    assert not any(made[name].any() for name in biases)


# Both ways round look alike in a round trip: case, Megatron's part of a layer, HF's gate and rows.
GATES = [
    ("cohere2_moe", "shared_experts", "mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"),
    ("hunyuan_v1_moe", "shared_experts", "mlp.shared_mlp.gate_proj", "mlp.shared_mlp.up_proj"),
    ("laguna", "shared_experts", "mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj"),
    ("phimoe", "experts.experts", "block_sparse_moe.experts.0.w1", "block_sparse_moe.experts.0.w3"),
    ("axk1", "experts.experts", "mlp.experts.0.gate_proj", "mlp.experts.0.up_proj"),
    ("kolibri1", "experts.experts", "mlp.experts.0.gate_proj", "mlp.experts.0.up_proj"),
]


@pytest.mark.parametrize("name, part, gate, up", GATES)
def test_gates_come_first(imported, name, part, gate, up):
    root = imported(name)
    source, made = checkpoints.load_hf(root / "hf"), checkpoints.load_dcp(root / "megatron")
    rest = f"mlp.{part}.linear_fc1.weight"
    stack = made.get(f"decoder.layers.{rest}")  # where all layers are alike
    ours = made[f"decoder.layers.1.{rest}"] if stack is None else stack[1]
    ours = ours[0] if ours.dim() == 3 else ours
    theirs = [source[f"model.layers.1.{half}.weight"] for half in (gate, up)]
    assert torch.equal(ours, torch.cat(theirs))
