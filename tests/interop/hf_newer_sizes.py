# SPDX-License-Identifier: Apache-2.0
"""As hf_sizes: of models that came after those."""
from hf_sizes import FAMILY_SIZES, MLA_SIZES, MOE_SIZES, NO_PADDING_TOKEN, WINDOW, YARN

MIXED = ["sliding_attention", "full_attention", "sliding_attention"]
HEADS_OF_12 = {**NO_PADDING_TOKEN, "head_dim": 12}
LAYER_NORM = {
    {"rms_norm_eps": "layer_norm_eps"}.get(key, key): HEADS_OF_12[key] for key in HEADS_OF_12
}
EXPERTS_AS_WIDE = dict(HEADS_OF_12, num_local_experts=6, num_experts_per_tok=2)
FACTORS = dict(
    attention_multiplier=0.3, embedding_multiplier=6.0, residual_multiplier=0.4, logits_scaling=2.0
)
NEWER_SIZES = {
    "cohere": dict(LAYER_NORM, logit_scale=0.3),
    "cohere2": dict(LAYER_NORM, logit_scale=0.3, sliding_window=7, layer_types=MIXED),
    "cohere2_moe": dict(
        LAYER_NORM,
        logit_scale=0.3,
        sliding_window=7,
        layer_types=MIXED,
        intermediate_size=40,
        prefix_dense_intermediate_size=104,
        rope_theta=5000.0,
        prefix_dense_sliding_window_pattern=2,
        mlp_layer_types=["dense", "sparse", "sparse"],
        num_experts=6,
        num_experts_per_tok=2,
        num_shared_experts=2,
    ),
    "stablelm": dict(
        LAYER_NORM,
        rope_parameters={
            "rope_type": "default", "rope_theta": 5000.0, "partial_rotary_factor": 0.5
        },
    ),
    "hunyuan_v1_dense": NO_PADDING_TOKEN,
    "hunyuan_v1_moe": dict(NO_PADDING_TOKEN, num_experts=6, moe_topk=2),
    "granitemoe": dict(EXPERTS_AS_WIDE, **FACTORS),
    "granitemoeshared": dict(EXPERTS_AS_WIDE, shared_intermediate_size=56, **FACTORS),
    "granitemoehybrid": dict(
        EXPERTS_AS_WIDE,
        shared_intermediate_size=56,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
        mamba_n_heads=6,
        mamba_d_head=24,
        mamba_n_groups=2,
        mamba_d_state=10,
        mamba_d_conv=3,
        position_embedding_type="rope",
        **FACTORS,
    ),
    "granite_swa": dict(
        HEADS_OF_12, sliding_window=7, layer_types=MIXED, layer_rope_theta=[5000.0, 70000.0, 5000.0],
        **FACTORS,
    ),
    "hyperclovax": dict(NO_PADDING_TOKEN, use_post_norm=True, **FACTORS),
    "mistral4": dict(
        {key: MLA_SIZES[key] for key in MLA_SIZES if key != "routed_scaling_factor"},
        pad_token_id=None,
        n_group=2,
        topk_group=1,
        rope_parameters={**YARN, "llama_4_scaling_beta": 0.3, "mscale": 1.0, "mscale_all_dim": 1.0},
    ),
    "axk1": dict(
        {key: MLA_SIZES[key] for key in MLA_SIZES if key != "first_k_dense_replace"},
        n_group=2,
        topk_group=1,
        mlp_layer_types=["dense", "sparse", "sparse"],
    ),
    "kolibri1": dict(
        {key: MOE_SIZES[key] for key in MOE_SIZES if key != "intermediate_size"},
        num_experts=6,
        shared_expert_intermediate_size=56,
        sliding_window=7,
        layer_types=MIXED,
    ),
    "flint": dict(
        MOE_SIZES,
        num_experts=6,
        shared_expert_intermediate_size=56,
        mlp_only_layers=[1],
        sliding_window=7,
        layer_types=MIXED,
    ),
    "beam": dict(
        {key: MOE_SIZES[key] for key in MOE_SIZES if key != "rope_parameters"},
        num_experts=6,
        n_group=2,
        topk_group=1,
        routed_scaling_factor=1.7,
        sliding_window=7,
        layer_types=MIXED,
        mlp_layer_types=["dense", "sparse", "sparse"],
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
            "full_attention": None,
        },
    ),
    "afmoe": dict(
        MOE_SIZES,
        num_experts=6,
        num_shared_experts=2,
        num_dense_layers=1,
        route_scale=1.7,
        mup_enabled=True,
        sliding_window=7,
        layer_types=MIXED,
    ),
    "apertus": dict(
        HEADS_OF_12,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 5000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
        max_position_embeddings=16384,
    ),
    "laguna": dict(
        {key: MOE_SIZES[key] for key in MOE_SIZES if key != "rope_parameters"},
        num_experts=6,
        shared_expert_intermediate_size=56,
        moe_routed_scaling_factor=1.7,
        num_attention_heads_per_layer=[6, 12, 6],
        sliding_window=7,
        layer_types=["full_attention", "sliding_attention", "full_attention"],
        mlp_layer_types=["dense", "sparse", "sparse"],
        rope_parameters={
            kind: {"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": part}
            for kind, theta, part in (
                ("full_attention", 70000.0, 0.5), ("sliding_attention", 5000.0, 1.0)
            )
        },
    ),
    "olmo": {key: HEADS_OF_12[key] for key in HEADS_OF_12 if key != "rms_norm_eps"},
    "phi": dict(
        {key: LAYER_NORM[key] for key in LAYER_NORM if key != "head_dim"},
        rope_parameters={
            "rope_type": "default", "rope_theta": 5000.0, "partial_rotary_factor": 0.5
        },
    ),
    "phimoe": dict(EXPERTS_AS_WIDE, attention_bias=True, lm_head_bias=True),
    "gemma4_unified_text": dict(
        {
            key: FAMILY_SIZES["gemma4_text"][key]
            for key in FAMILY_SIZES["gemma4_text"]
            if not key.endswith("per_layer_input") and key != "global_head_dim"
        },
        per_layer_config={1: {"head_dim": 28}, 5: {"head_dim": 28}},
        use_bidirectional_attention=None,
    ),
    "vaultgemma": dict(WINDOW, query_pre_attn_scalar=30, tie_word_embeddings=True),
}
