# SPDX-License-Identifier: Apache-2.0
"""As test_same_outputs.py, of models that a later Megatron-Core computes: a model is what Megatron-LM's
own code makes of the checkpoint's arguments, out of the modules that training on GPUs has."""
import copy

import pytest
import torch
import transformers

import checkpoints
import hf_models
import hf_sizes
import test_families_further_towers
import test_families_hybrid
import test_families_newer_towers
import test_families_omni
import test_families_towers
from test_families_hybrid import DELTA, NEMOTRON, SHARED, TEXT

# Measured: what is right differs by at most 7e-4, and so do transformers' logits where the weights'
# last bits change; of the mistakes that are made on purpose the least makes 0.22.
TOLERANCE = 2e-3
NOTICED = 0.1

PLAIN = {"rope_type": "default", "rope_theta": 5000.0}
YARN = {**hf_sizes.YARN, "mscale": 0.8, "mscale_all_dim": 1.2}
FACTOR = {"rotary_scaling_factor": 3.0}
NO_GROWTH = {**hf_sizes.YARN, "llama_4_scaling_beta": 0.0}
NO_CAPS = {"attn_logit_softcapping": None, "final_logit_softcapping": None}
TWO_ROTATIONS = {
    "full_attention": {"rope_type": "default", "rope_theta": 70000.0},
    "sliding_attention": PLAIN,
}
SAME_ROTATION = {"full_attention": PLAIN, "sliding_attention": PLAIN}
SHARED_CHOICE = {"num_hidden_layers": 5, "index_topk_freq": 2, "index_skip_topk_offset": 2}
DELTA_NETS = {"layernorm_zero_centered_gamma": False, "rotary_percent": 1.0}
NO_TUNING = {"attn_temperature_tuning": False}
# That of norms in mixers; Megatron-Core has no other for them.
MIXER_NORM = {"rms_norm_eps": 1e-5}
# transformers writes wrong thirds of its one convolution where they are not.
AS_WIDE = {"linear_key_head_dim": 12, "linear_value_head_dim": 12}
GEMMA = ("scaled_embeddings", "gelu_by_tanh")

# name -> (model_type, settings, layout, what added_modules.py adds, arguments that are wrong)
CASES = {
    "deepseek_v32": (
        "deepseek_v32", {}, ("--ep", 2), (),
        {"dsa_indexer_topk": 20, "dsa_indexer_rope_interleaved": True},
    ),
    "glm_moe_dsa": (
        "glm_moe_dsa", {"packed": True}, ("--ep", 3), (), {"dsa_indexer_rope_interleaved": False}
    ),
    "glm_moe_dsa_shared": ("glm_moe_dsa", SHARED_CHOICE, (), (), {"dsa_indexer_topk": 20}),
    "qwen3_next": ("qwen3_next", dict(TEXT, **DELTA, **SHARED), ("--ep", 2), (), DELTA_NETS),
    "qwen3_5": ("qwen3_5_text", dict(TEXT, **DELTA), ("--pp", 2), (), DELTA_NETS),
    "qwen3_5_moe": ("qwen3_5_moe_text", dict(TEXT, **DELTA, **SHARED), ("--tp", 2), (), {}),
    "nemotron_h": ("nemotron_h", NEMOTRON, ("--ep", 2), (), {"squared_relu": False}),
    "exaone_moe": ("exaone_moe", {}, ("--ep", 2), (), {"no_rope_freq": [1, 0, 1]}),
    # Megatron-LM has had arguments for it since it has Megatron-Core 0.17.
    "qwen2_yarn": ("qwen2", {"rope_parameters": YARN}, (), (), {**FACTOR, "mscale": 1.0}),
    "ministral3": ("ministral3", {"rope_parameters": NO_GROWTH}, (), (), FACTOR),
    "glm4": ("glm4", {"attention_bias": True}, ("--pp", 3), ("norms_behind",), {}),
    "gemma2": ("gemma2", NO_CAPS, ("--pp", 3), (*GEMMA, "norms_behind"), {"softmax_scale": 0.2}),
    "gemma3": (
        "gemma3_text", {"rope_parameters": TWO_ROTATIONS}, ("--pp", 3),
        (*GEMMA, "norms_behind", "rotation_of_windows"), {"window_attn_skip_freq": [0, 1, 1]},
    ),
    "vaultgemma": ("vaultgemma", NO_CAPS, (), GEMMA, {}),
    "exaone4": (
        "exaone4", {}, (), ("no_norms_before", "norms_behind"), {"no_rope_freq": [0, 0, 0]},
    ),
    "exaone4_no_window": (
        "exaone4", {"sliding_window": None, "layer_types": ["full_attention"] * 3}, ("--pp", 3),
        ("no_norms_before", "norms_behind"), {},
    ),
    "olmo2": ("olmo2", {}, (), ("no_norms_before", "norms_behind", "norms_of_all_heads"), {}),
    "olmo3": (
        "olmo3", {"rope_parameters": SAME_ROTATION}, (),
        ("no_norms_before", "norms_behind", "norms_of_all_heads"), {},
    ),
    "olmoe": (
        "olmoe", {"norm_topk_prob": True}, ("--ep", 2), ("norms_of_all_heads",),
        {"moe_router_pre_softmax": True},
    ),
    "minimax_m2": ("minimax_m2", {}, ("--ep", 2), ("norms_of_all_heads",), {"rotary_percent": 0.5}),
    "mellum": ("mellum", {}, (), ("rotation_of_windows",), {}),
    "llama4": (
        "llama4_text", NO_TUNING, ("--ep", 2), ("no_norms_without_rotation",),
        {"qk_l2_norm": False},
    ),
    "hunyuan_v1_dense": ("hunyuan_v1_dense", {}, (), ("norms_behind_rotation",), {}),
    "hunyuan_v1_moe": ("hunyuan_v1_moe", {}, ("--ep", 2), ("norms_behind_rotation",), {}),
    "ernie4_5_moe": ("ernie4_5_moe", {}, ("--ep", 2), ("softmax_of_experts",), {}),
    "afmoe": (
        "afmoe", {}, (), ("scaled_embeddings", "norms_behind", "norms_behind_experts", "gates"),
        {"moe_router_topk_scaling_factor": 1.0},
    ),
    "axk1": ("axk1", {}, (), ("norms_behind_experts",), {"moe_router_num_groups": 3}),
    "cohere": (
        "cohere", {"logit_scale": 1.3}, (), ("one_residual", "scaled_logits"),
        {"rotary_interleaved": False},
    ),
    "cohere_norms": (
        "cohere", {"logit_scale": 1.3, "use_qk_norm": True}, (),
        ("one_residual", "scaled_logits", "norms_of_each_head"), {},
    ),
    "cohere2": ("cohere2", {"logit_scale": 1.3}, (), ("one_residual", "scaled_logits"), {}),
    "cohere2_moe": (
        "cohere2_moe", {"logit_scale": 1.3, "shared_expert_combination_strategy": "sum"}, (),
        ("one_residual", "scaled_logits"), {},
    ),
    "gpt_neox_parallel": ("gpt_neox", {}, (), ("one_residual_two_norms",), {}),
    "falcon_parallel": ("falcon", {}, (), ("one_residual",), {}),
    "bloom": ("bloom", {}, ("--pp", 3), ("gelu_by_tanh", "norm_of_embeddings", "bias_by_distance"), {}),
    "mpt": ("mpt", {}, (), ("bias_by_distance",), {}),
    "opt": ("opt", {}, ("--pp", 3), ("relu", "places_from_the_third"), {}),
    "opt_post_norm": (
        "opt", {"do_layer_norm_before": False, "word_embed_proj_dim": 44}, (),
        ("relu", "places_from_the_third", "norms_behind_sums", "narrow_embeddings"), {},
    ),
    "phi": (
        "phi", {}, (), ("one_residual", "gelu_by_tanh", "bias_of_head"), {"rotary_percent": 1.0}
    ),
    "nanochat": (
        # Norms without weights are the same before and behind the rotation.
        "nanochat", {}, (), ("norms_of_ones", "rotation_backwards", "capped_logits"),
        {"squared_relu": False},
    ),
    "kolibri1": (
        "kolibri1", {}, ("--ep", 2),
        ("norms_behind", "norms_behind_experts", "biased_logits_of_experts"), {},
    ),
    "kolibri1_normalised": (
        "kolibri1", {"norm_topk_prob": True}, (),
        ("norms_behind", "norms_behind_experts", "biased_logits_of_experts"),
        {"norm_topk_prob": False},
    ),
    "granite_swa": (
        "granite_swa", {}, (), ("factors", "rotations_of_layers"), {"softmax_scale": 0.2},
    ),
    "granitemoehybrid": ("granitemoehybrid", MIXER_NORM, ("--ep", 2), ("mixers", "factors"), {}),
    "granitemoehybrid_dense": (
        "granitemoehybrid", {"num_local_experts": 0, "position_embedding_type": "nope", **MIXER_NORM},
        ("--pp", 3), ("mixers", "factors"), {},
    ),
    "bamba": ("bamba", MIXER_NORM, ("--pp", 2), ("mixers",), {"rotary_percent": 1.0}),
    "olmo_hybrid": ("olmo_hybrid", AS_WIDE, ("--pp", 2), ("olmo2_among_delta_nets",), {}),
    "beam": (
        "beam", {}, ("--ep", 2),
        ("norms_behind", "norms_behind_experts", "biased_gates", "sums_by_depth", "growing_queries",
         "capped_logits"),
        {"no_rope_freq": [0, 0, 0]},
    ),
    "granite_factors": ("granite", {}, ("--pp", 3), ("factors",), {"softmax_scale": 0.2}),
    "granitemoeshared_factors": ("granitemoeshared", {}, ("--ep", 2), ("factors",), {}),
    "hyperclovax_norms": (
        "hyperclovax", {}, ("--pp", 3), ("norms_behind", "factors", "logits_multiplied"), {}
    ),
    "apertus": ("apertus", {}, ("--pp", 3), ("xielu",), {}),
    "phimoe": (
        "phimoe", {}, ("--ep", 2),
        ("biases_of_projections", "one_expert_after_the_other", "bias_of_head"), {},
    ),
    "stablelm_parallel": ("stablelm", {"use_parallel_residual": True}, (), ("one_residual",), {}),
}  # fmt: skip


TOWERS = (
    test_families_hybrid, test_families_towers, test_families_newer_towers,
    test_families_further_towers, test_families_omni,
)  # fmt: skip
# Of models that see or hear, those whose language models test_vision_outputs.py leaves out.
# name: (model_type, changes of the language model, what is added, arguments that are wrong)
LANGUAGES = {
    "qwen3_5_vl": ("qwen3_5", {}, (), DELTA_NETS),
    "qwen3_5_vl_moe": ("qwen3_5_moe", {}, (), {}),
    "gemma3_vl": ("gemma3", {}, (*GEMMA, "norms_behind", "rotation_of_windows"), {}),
    "exaone4_5": ("exaone4_5", {}, ("no_norms_before", "norms_behind"), {}),
    "mistral3": ("mistral3", {"rope_parameters": NO_GROWTH}, (), FACTOR),
    "llama4_vl": ("llama4", NO_TUNING, ("no_norms_without_rotation",), {}),
    "glm4v": ("glm4v", {}, ("norms_behind",), {}),
    "qwen2_audio": ("qwen2_audio", {}, (), {}),
    "qwen3_omni_moe_thinker": ("qwen3_omni_moe_thinker", {}, (), {}),
    "idefics3": ("idefics3", {}, (), {}),
    "smolvlm": ("smolvlm", {}, (), {}),
    "paligemma": ("paligemma", {}, GEMMA, {}),
    "paligemma2": ("paligemma", NO_CAPS, (*GEMMA, "norms_behind"), {}),
    "aya_vision": ("aya_vision", {}, ("one_residual",), {}),
    "aya_vision_cohere": ("aya_vision", {}, ("one_residual", "norms_of_each_head"), {}),
    "cohere2_vision": ("cohere2_vision", {}, ("one_residual",), {}),
    "qwen3_asr_hf": ("qwen3_asr", {}, (), {}),
    "qwen2_5_omni_thinker": (
        "qwen2_5_omni_thinker", {"rope_parameters": {**PLAIN, "mrope_section": [2, 2, 2]}}, (), {}
    ),
    "mistral4_vl": (
        "mistral3", {"rope_parameters": {**NO_GROWTH, "mscale": 1.0, "mscale_all_dim": 1.0}, "n_group": 1},
        (), FACTOR,
    ),
}
THINKERS = ("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker", "qwen3_asr_hf")


@pytest.fixture
def same_logits(shardwright, newer_ranks, tmp_path):
    """Converts the model in hf/, and compares what Megatron computes of it with `logits`."""

    def compare(logits, layout, prefix, additions, wrong):
        torch.save((hf_models.tokens(logits.shape[-1]), logits), tmp_path / "outputs.pt")
        shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", *layout)
        newer_ranks(
            "newer_output_jobs", "compare", 1, folder=checkpoints.iteration_folder(tmp_path / "out"),
            outputs=tmp_path / "outputs.pt", prefix=prefix, additions=additions, wrong=wrong,
            tolerance=TOLERANCE, noticed=NOTICED,
        )  # fmt: skip

    return compare


@pytest.mark.parametrize("name", CASES)
def test_same_logits(same_logits, tmp_path, name):
    model_type, settings, layout, additions, wrong = CASES[name]
    model = hf_models.create(tmp_path / "hf", model_type, **settings)
    same_logits(hf_models.logits(model, model.config.vocab_size), layout, "", additions, wrong)


@pytest.mark.parametrize("name", LANGUAGES)
def test_same_logits_of_text(same_logits, tmp_path, name):
    model_type, changes, additions, wrong = LANGUAGES[name]
    case = next(module.CASES[name] for module in TOWERS if name in module.CASES)
    known_type, architecture, settings = copy.deepcopy(case)
    assert known_type == model_type
    if changes:
        settings["text_config"].update(changes)
    config = transformers.AutoConfig.for_model(model_type, **settings)
    model = getattr(transformers, architecture)._from_config(
        config, dtype=torch.float32, **hf_models.EAGER
    )
    hf_models.fill(model)
    model.eval().save_pretrained(tmp_path / "hf")
    logits = hf_models.logits(model, config.get_text_config().vocab_size)
    prefix = "thinker." * (name in THINKERS) + "language_model."
    same_logits(logits, (), prefix, additions, wrong)


def test_same_logits_of_published_text(same_logits, tmp_path):
    """Qwen3-ASR's files have other names than transformers gives them."""
    test_families_omni.qwen3_asr(tmp_path)
    made = tmp_path / "made"
    config = transformers.AutoConfig.from_pretrained(made)
    model = transformers.Qwen3ASRForConditionalGeneration._from_config(
        config, dtype=torch.float32, **hf_models.EAGER
    )
    model.load_state_dict(hf_models.tensors_of(made), strict=False)
    model.tie_weights()
    logits = hf_models.logits(model.eval(), config.get_text_config().vocab_size)
    same_logits(logits, ("--tp", 2), "thinker.language_model.", (), {})
