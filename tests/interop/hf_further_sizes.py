# SPDX-License-Identifier: Apache-2.0
"""As hf_sizes: of models that came last, hybrid ones above all."""
from hf_sizes import NO_PADDING_TOKEN

HEADS_OF_12 = {key: NO_PADDING_TOKEN[key] for key in NO_PADDING_TOKEN if key != "head_dim"}
FOUR_LAYERS = dict(HEADS_OF_12, num_hidden_layers=4)
NORM_EPSILON = {
    {"rms_norm_eps": "norm_eps"}.get(key, key): FOUR_LAYERS[key] for key in FOUR_LAYERS
}
TURNS = ["conv", "full_attention"] * 2
EXPERTS = dict(num_experts=6, num_experts_per_tok=2)
FURTHER_SIZES = {
    # An MLP of 80, as 2/3 of 104 is rounded up.
    "lfm2": dict(NORM_EPSILON, layer_types=TURNS, block_multiple_of=16),
    "lfm2_moe": dict(
        NORM_EPSILON, layer_types=TURNS, moe_intermediate_size=40, num_dense_layers=1, **EXPERTS
    ),
    "gemma3n_text": dict(
        {key: FOUR_LAYERS[key] for key in FOUR_LAYERS if key != "rope_parameters"},
        num_hidden_layers=5,
        head_dim=12,
        vocab_size_per_layer_input=400,
        hidden_size_per_layer_input=16,
        laurel_rank=6,
        num_kv_shared_layers=2,
        altup_num_inputs=3,
        activation_sparsity_pattern=[0.95, 0.0, 0.0, 0.0, 0.0],
        sliding_window=7,
        layer_types=["sliding_attention", "full_attention"] * 2 + ["full_attention"],
        bos_token_id=1,
        eos_token_id=2,
    ),
    "bamba": dict(
        FOUR_LAYERS,
        attn_layer_indices=[1, 3],
        mamba_n_heads=6,
        mamba_d_head=24,
        mamba_n_groups=2,
        mamba_d_state=10,
        mamba_d_conv=3,
        rope_parameters={
            "rope_type": "default", "rope_theta": 5000.0, "partial_rotary_factor": 0.5
        },
    ),
    "zamba2": dict(
        FOUR_LAYERS,
        num_hidden_layers=6,
        num_key_value_heads=6,
        n_mamba_heads=6,
        mamba_d_state=10,
        mamba_d_conv=3,
        mamba_ngroups=2,
        layers_block_type=["mamba", "hybrid"] * 3,
        num_mem_blocks=2,
        adapter_rank=7,
        use_shared_attention_adapter=True,
    ),
    "jamba": dict(
        {key: FOUR_LAYERS[key] for key in FOUR_LAYERS if key != "rope_parameters"},
        attn_layer_period=2,
        attn_layer_offset=1,
        mamba_d_state=10,
        mamba_d_conv=3,
        mamba_dt_rank=5,
        **EXPERTS,
    ),
    "minimax": dict(
        NO_PADDING_TOKEN,
        num_local_experts=6,
        num_experts_per_tok=2,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
        block_size=32,
        full_attn_alpha_factor=1.5,
        linear_attn_beta_factor=0.7,
        mlp_alpha_factor=2,
    ),
    "minicpm3": dict(
        HEADS_OF_12,
        num_key_value_heads=6,
        q_lora_rank=44,
        kv_lora_rank=28,
        qk_nope_head_dim=12,
        qk_rope_head_dim=8,
        v_head_dim=20,
        dim_model_base=36,
        scale_depth=1.1,
        scale_emb=7,
    ),
    "nanochat": dict(HEADS_OF_12, final_logit_softcapping=9.0),
    "olmo_hybrid": dict(
        FOUR_LAYERS,
        eos_token_id=2,
        linear_num_key_heads=6,
        linear_num_value_heads=6,
        linear_key_head_dim=10,
        linear_value_head_dim=14,
        linear_conv_kernel_dim=3,
    ),
}
