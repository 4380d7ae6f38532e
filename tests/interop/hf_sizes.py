# SPDX-License-Identifier: Apache-2.0
"""Settings of small models of the real transformers library, which has a default for all others."""
# Nothing here is a power of two or a multiple of what else there is: heads are not hidden / heads
# wide, three layers, a vocabulary that only 7 and 73 divide.
SIZES = dict(
    vocab_size=511,
    hidden_size=72,
    intermediate_size=104,
    num_hidden_layers=3,
    num_attention_heads=6,
    num_key_value_heads=3,
    head_dim=20,
    max_position_embeddings=256,
    # Neither transformers' default nor Megatron's, and large enough to be seen in the outputs.
    rms_norm_eps=1e-3,
    rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
)
MOE_SIZES = dict(SIZES, num_experts_per_tok=2, moe_intermediate_size=40)
MLA_SIZES = dict(
    MOE_SIZES,
    num_key_value_heads=6,
    kv_lora_rank=28,
    q_lora_rank=44,
    qk_nope_head_dim=12,
    qk_rope_head_dim=8,
    v_head_dim=20,
    n_routed_experts=6,
    n_shared_experts=2,
    first_k_dense_replace=1,
    routed_scaling_factor=1.7,
    # transformers gives the norms inside the attention this one, whatever the configuration says.
    rms_norm_eps=1e-6,
)
del MLA_SIZES["head_dim"]  # it is qk_rope_head_dim there
# Fewer tokens are chosen than the tests' texts have.
DSA_SIZES = dict(
    MLA_SIZES, index_topk=24, index_head_dim=18, index_n_heads=5, num_nextn_predict_layers=0
)

NO_PADDING_TOKEN = dict(SIZES, pad_token_id=None)
YARN = {
    "rope_type": "yarn",
    "rope_theta": 5000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
    "beta_fast": 16.0,
    "beta_slow": 0.5,
}
PACKED_EXPERT_SIZES = dict(SIZES, num_local_experts=6, num_experts_per_tok=2)
WINDOW = dict(NO_PADDING_TOKEN, sliding_window=7)
DELTA_SIZES = dict(
    {key: MLA_SIZES[key] for key in MLA_SIZES if key.startswith(("kv_", "qk_", "v_", "num_"))},
    vocab_size=511,
    hidden_size=72,
    intermediate_size=104,
    moe_intermediate_size=40,
    num_experts=6,
    num_shared_experts=2,
    num_experts_per_token=2,
    num_expert_group=1,
    topk_group=1,
    model_max_length=256,
    rms_norm_eps=1e-3,
    layer_types=["linear_attention", "full_attention", "linear_attention"],
    pad_token_id=None,
    bos_token_id=1,
    eos_token_id=2,
)
del DELTA_SIZES["num_experts_per_tok"]
LINEAR_ATTENTION = dict(
    linear_num_key_heads=2,
    linear_num_value_heads=6,
    linear_key_head_dim=10,
    linear_value_head_dim=14,
    linear_conv_kernel_dim=3,
)
GEMMA4_EXPERTS = dict(
    attention_k_eq_v=True,
    num_global_key_value_heads=2,
    hidden_size_per_layer_input=0,
    enable_moe_block=True,
    num_experts=6,
    top_k_experts=2,
    moe_intermediate_size=40,
)
T5_SIZES = dict(
    vocab_size=510,
    d_model=72,
    d_kv=20,
    d_ff=104,
    num_decoder_layers=2,
    num_heads=6,
    relative_attention_num_buckets=18,
    feed_forward_proj="gated-gelu",
)
# Towers of models that see and hear.
VIT = dict(
    hidden_size=36,
    intermediate_size=52,
    num_hidden_layers=3,
    num_attention_heads=6,
    image_size=28,
    patch_size=14,
)
AUDIO_ENCODER = dict(
    d_model=36,
    encoder_layers=2,
    encoder_attention_heads=3,
    encoder_ffn_dim=52,
    num_mel_bins=8,
    max_source_positions=20,
)
# What models have whose heads are hidden / heads wide, and all have keys of their own.
PLAIN_SIZES = dict(
    vocab_size=511, hidden_size=72, num_hidden_layers=3, num_attention_heads=6
)

FAMILY_SIZES = {
    "mixtral": dict(SIZES, num_local_experts=6),
    "qwen2_moe": dict(MOE_SIZES, num_experts=6, shared_expert_intermediate_size=56),
    "qwen3_moe": dict(MOE_SIZES, num_experts=6, norm_topk_prob=True),
    "deepseek_v2": MLA_SIZES,
    # As real ones have it, two experts count for each group that is chosen.
    "deepseek_v3": dict(MLA_SIZES, n_group=2, topk_group=1, num_nextn_predict_layers=0),
    "gemma": dict(NO_PADDING_TOKEN, tie_word_embeddings=True),
    "gemma2": dict(WINDOW, query_pre_attn_scalar=30),
    "gemma3_text": dict(
        WINDOW,
        query_pre_attn_scalar=30,
        layer_types=["sliding_attention", "full_attention", "full_attention"],
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 70000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
        },
    ),
    "gemma4_text": dict(
        vocab_size=511,
        hidden_size=72,
        intermediate_size=104,
        num_hidden_layers=6,
        num_attention_heads=6,
        num_key_value_heads=3,
        head_dim=20,
        max_position_embeddings=256,
        rms_norm_eps=1e-3,
        pad_token_id=None,
        sliding_window=7,
        global_head_dim=28,
        hidden_size_per_layer_input=10,
        vocab_size_per_layer_input=510,
        final_logit_softcapping=30.0,
        layer_types=[
            "sliding_attention",
            "full_attention",
            "sliding_attention",
            "sliding_attention",
            "sliding_attention",
            "full_attention",
        ],
        rope_parameters={
            "full_attention": {
                "rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 70000.0
            },
            "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
        },
    ),
    "llama4_text": dict(
        {**NO_PADDING_TOKEN, "intermediate_size": 40},
        intermediate_size_mlp=104,
        num_local_experts=6,
        moe_layers=[1],
        no_rope_layers=[1, 0, 1],
        attention_chunk_size=256,
    ),
    "seed_oss": dict(NO_PADDING_TOKEN, attention_dropout=0.0, residual_dropout=0.0),
    "cwm": dict(
        {**WINDOW, "head_dim": 12},
        layer_types=["full_attention", "sliding_attention", "sliding_attention"],
        max_position_embeddings=16384,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 5000.0,
            "factor": 16.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    ),
    "helium": dict(NO_PADDING_TOKEN, head_dim=12),
    "arcee": NO_PADDING_TOKEN,
    # Which has another key for it.
    "jais2": {
        {"rms_norm_eps": "layer_norm_eps"}.get(key, key): NO_PADDING_TOKEN[key]
        for key in NO_PADDING_TOKEN
    },
    "solar_open": dict(
        MOE_SIZES, n_routed_experts=6, n_shared_experts=1, n_group=1, topk_group=1,
        routed_scaling_factor=1.7, norm_topk_prob=True,
    ),
    "youtu": {
        key: MLA_SIZES[key]
        for key in MLA_SIZES
        if not key.startswith(("n_", "moe_", "routed_", "first_k", "num_experts"))
    },
    "dots1": dict(
        MOE_SIZES,
        n_routed_experts=6,
        n_shared_experts=2,
        first_k_dense_replace=1,
        routed_scaling_factor=1.7,
        norm_topk_prob=True,
        sliding_window=7,
        layer_types=["full_attention", "sliding_attention", "full_attention"],
    ),
    "mellum": dict(
        MOE_SIZES,
        num_experts=6,
        sliding_window=7,
        layer_types=["full_attention", "sliding_attention", "full_attention"],
        mlp_layer_types=["sparse", "dense", "sparse"],
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 70000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
        },
    ),
    "glm": dict(NO_PADDING_TOKEN, partial_rotary_factor=0.5),
    "glm4": dict(NO_PADDING_TOKEN, partial_rotary_factor=0.5),
    "glm4_moe": dict(
        MOE_SIZES,
        n_routed_experts=6,
        n_shared_experts=2,
        first_k_dense_replace=1,
        routed_scaling_factor=1.7,
        num_nextn_predict_layers=0,
    ),
    "glm4_moe_lite": dict(MLA_SIZES, n_group=2, topk_group=1, num_nextn_predict_layers=0),
    "deepseek_v32": dict(DSA_SIZES, n_group=2, topk_group=1),
    "glm_moe_dsa": DSA_SIZES,
    "hy_v3": dict(
        MOE_SIZES, num_experts=6, num_shared_experts=2, router_scaling_factor=1.7
    ),
    "minimax_m2": PACKED_EXPERT_SIZES,
    "gpt_oss": dict(
        PACKED_EXPERT_SIZES,
        sliding_window=7,
        swiglu_limit=1.2,
        rope_parameters={**YARN, "truncate": False},
    ),
    "gpt2": dict(
        vocab_size=511, n_embd=72, n_layer=3, n_head=6, n_positions=256, layer_norm_epsilon=0.1
    ),
    "olmo2": NO_PADDING_TOKEN,
    "olmo3": dict(
        WINDOW,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"],
        # transformers gives the layers with a window this theta, whatever a flat file says.
        rope_parameters={
            "full_attention": {**YARN, "rope_theta": 500000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 500000.0},
        },
    ),
    # transformers sizes these norms by hidden_size alone.
    "olmoe": dict(
        {**NO_PADDING_TOKEN, "head_dim": 12}, num_experts=6, num_experts_per_tok=2
    ),
    "phi3": NO_PADDING_TOKEN,
    "nemotron": dict(NO_PADDING_TOKEN, norm_eps=1e-3, partial_rotary_factor=0.5),
    "exaone4": dict(
        NO_PADDING_TOKEN,
        sliding_window=7,
        layer_types=["sliding_attention", "full_attention", "full_attention"],
    ),
    "ernie4_5": NO_PADDING_TOKEN,
    "ernie4_5_moe": dict(
        NO_PADDING_TOKEN,
        moe_intermediate_size=40,
        moe_num_experts=6,
        moe_k=2,
        moe_num_shared_experts=2,
        moe_layer_start_index=1,
    ),
    "granite": dict(
        NO_PADDING_TOKEN,
        attention_multiplier=0.3,
        embedding_multiplier=6.0,
        residual_multiplier=0.4,
        logits_scaling=2.0,
    ),
    "smollm3": dict(NO_PADDING_TOKEN, no_rope_layers=[1, 0, 1]),
    "ministral": dict(
        WINDOW, layer_types=["sliding_attention", "full_attention", "full_attention"]
    ),
    "ministral3": dict(
        NO_PADDING_TOKEN, rope_parameters={**YARN, "llama_4_scaling_beta": 0.3}
    ),
    "mimo_v2_flash": dict(
        MOE_SIZES,
        n_routed_experts=6,
        v_head_dim=14,
        routed_scaling_factor=1.7,
        sliding_window=7,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"],
        mlp_layer_types=["dense", "sparse", "sparse"],
        rope_parameters={
            kind: {"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": 0.5}
            for kind, theta in (("full_attention", 70000.0), ("sliding_attention", 5000.0))
        },
    ),
    "exaone_moe": dict(
        {**MOE_SIZES, "head_dim": 12},
        pad_token_id=None,
        eos_token_id=2,
        num_experts=6,
        num_shared_experts=2,
        routed_scaling_factor=1.7,
        sliding_window=7,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        mlp_layer_types=["dense", "sparse", "sparse"],
    ),
    "deepseek_v4": dict(
        vocab_size=511,
        hidden_size=72,
        moe_intermediate_size=40,
        num_hidden_layers=4,
        num_attention_heads=6,
        head_dim=20,
        partial_rotary_factor=0.4,
        q_lora_rank=44,
        o_groups=2,
        o_lora_rank=14,
        n_routed_experts=6,
        n_shared_experts=1,
        num_experts_per_tok=2,
        num_nextn_predict_layers=0,
        hc_mult=3,
        index_head_dim=18,
        index_n_heads=5,
        index_topk=24,
        sliding_window=7,
        layer_types=[
            "sliding_attention",
            "heavily_compressed_attention",
            "compressed_sparse_attention",
            "compressed_sparse_attention",
        ],
        compress_rates={"compressed_sparse_attention": 2, "heavily_compressed_attention": 8},
        mlp_layer_types=["hash_moe", "moe", "moe", "moe"],
        max_position_embeddings=256,
        rms_norm_eps=1e-3,
    ),
    "longcat_flash": dict(
        vocab_size=511,
        hidden_size=72,
        ffn_hidden_size=104,
        expert_ffn_hidden_size=40,
        num_layers=3,
        num_attention_heads=6,
        n_routed_experts=6,
        zero_expert_num=3,
        moe_topk=2,
        kv_lora_rank=28,
        q_lora_rank=44,
        qk_nope_head_dim=12,
        qk_rope_head_dim=8,
        v_head_dim=20,
        max_position_embeddings=256,
        rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
    ),
    "kimi_linear": dict(
        DELTA_SIZES,
        linear_num_heads=4,
        linear_head_dim=10,
        linear_conv_kernel_dim=3,
        mlp_layer_types=["dense", "sparse", "sparse"],
    ),
    # transformers takes the heads of both attentions from the same keys.
    "bailing_hybrid": dict(
        DELTA_SIZES,
        head_dim=10,
        short_conv_kernel_size=3,
        layer_group_size=2,
        first_k_dense_replace=1,
        rope_theta=5000.0,
        num_nextn_predict_layers=0,
    ),
    "starcoder2": dict(
        NO_PADDING_TOKEN, norm_epsilon=0.1, sliding_window=None, bos_token_id=1, eos_token_id=2
    ),
    "gpt_bigcode": dict(
        vocab_size=511, n_embd=72, n_layer=3, n_head=6, n_positions=256, layer_norm_epsilon=0.1
    ),
    "gpt_neox": dict(
        PLAIN_SIZES,
        intermediate_size=104,
        layer_norm_eps=0.1,
        max_position_embeddings=256,
        rope_parameters={"rope_theta": 5000.0, "partial_rotary_factor": 0.5},
    ),
    "falcon": dict(
        PLAIN_SIZES,
        ffn_hidden_size=104,
        layer_norm_epsilon=0.1,
        rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
        bos_token_id=1,
        eos_token_id=2,
    ),
    "bloom": dict(
        vocab_size=511,
        hidden_size=72,
        n_layer=3,
        n_head=6,
        layer_norm_epsilon=0.1,
        seq_length=256,
    ),
    "opt": dict(PLAIN_SIZES, ffn_dim=104, max_position_embeddings=256, pad_token_id=None),
    "mpt": dict(
        vocab_size=511, d_model=72, n_layers=3, n_heads=6, max_seq_len=256, layer_norm_epsilon=0.1
    ),
}
