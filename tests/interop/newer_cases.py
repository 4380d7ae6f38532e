# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a later Megatron-Core, as command lines of Megatron-LM for two ranks."""

COMMON = """
  --num-layers 4 --hidden-size 64 --ffn-hidden-size 96 --num-attention-heads 4 --seq-length 32
  --max-position-embeddings 32 --micro-batch-size 1 --lr 1e-3 --min-lr 1e-4 --train-iters 10
  --lr-decay-iters 10 --save-interval 10 --bf16 --use-cpu-initialization --disable-bias-linear
  --swiglu --normalization RMSNorm --position-embedding-type rope --vocab-size 512
  --make-vocab-size-divisible-by 64 --tokenizer-type NullTokenizer --distributed-backend gloo
  --untie-embeddings-and-output-weights
  --no-masked-softmax-fusion --no-gradient-accumulation-fusion --no-bias-swiglu-fusion
  --no-bias-dropout-fusion --no-persist-layer-norm --no-rope-fusion --num-workers 0
"""

# Optimizer states: whole tensors, buckets of each data-parallel rank, or each parameter's own.
WHOLE = " --use-distributed-optimizer --dist-ckpt-optim-fully-reshardable"
BUCKETS = " --use-distributed-optimizer"
RANK_FILES = " --ckpt-format torch"
TP = " --tensor-model-parallel-size 2"
PP = " --pipeline-model-parallel-size 2"
EP = " --expert-model-parallel-size 2"
GROUPED = " --group-query-attention --num-query-groups 2"
MOE = (
    " --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 32 --moe-grouped-gemm"
    " --moe-router-load-balancing-type none --moe-token-dispatcher-type alltoall"
)
SHARED = MOE + " --moe-layer-freq ([0]+[1]*3) --moe-shared-expert-intermediate-size 48"
LATENT = (
    " --multi-latent-attention --q-lora-rank 24 --kv-lora-rank 16 --qk-head-dim 16"
    " --qk-pos-emb-head-dim 8 --v-head-dim 16"
)
FUSED = LATENT + " --mla-down-proj-fusion"
HYBRID = (
    " --mamba-state-dim 16 --mamba-head-dim 16 --mamba-num-groups 2 --hybrid-layer-pattern M*-G-"
    + GROUPED
)
DELTA = (
    " --linear-key-head-dim 8 --linear-value-head-dim 8 --linear-num-key-heads 4"
    " --linear-num-value-heads 8 --linear-conv-kernel-dim 4"
)
GATED = (
    " --experimental-attention-variant gated_delta_net --linear-attention-freq 2"
    " --attention-output-gate" + DELTA + GROUPED
)
PREDICTION = " --mtp-num-layers 1"
LATENT_EXPERTS = " --moe-latent-size 32"
OFFSET = " --softmax-type learnable"
SP = " --sequence-parallel"
FROZEN = "embedding|final_layernorm|linear_proj"
FREEZE = " --frozen " + FROZEN
BIASED = GROUPED + MOE + " --biases"

CASES = {
    "dense_whole": TP + GROUPED + WHOLE,
    "frozen_whole": TP + GROUPED + WHOLE + FREEZE,
    "moe_buckets": EP + SHARED + PREDICTION + BUCKETS,
    "biased_whole": BIASED + WHOLE,
    "fused_buckets": TP + FUSED + BUCKETS,
    "fused_rank_files": TP + FUSED + PREDICTION + RANK_FILES,
    "hybrid_buckets": HYBRID + DELTA + BUCKETS,
    "layout_buckets": PP + GROUPED + " --pipeline-model-parallel-layout Et|tt|t|L" + BUCKETS,
    "prediction_buckets": PP
    + GROUPED
    + PREDICTION
    + " --pipeline-model-parallel-layout Et|tt|t|mL"
    + BUCKETS,
    "latent_experts": EP + SHARED + LATENT_EXPERTS + BUCKETS,
    "latent_rank_files": EP + SHARED + LATENT_EXPERTS + RANK_FILES,
    "offset_rank_files": TP + GROUPED + OFFSET + RANK_FILES,
    "hybrid_rank_files": TP + HYBRID + DELTA + RANK_FILES,
    "gated_rank_files": PP + GATED + RANK_FILES + BUCKETS,
}

# MTP layers in a stage of their own, for four ranks.
APART = GROUPED + PREDICTION + BUCKETS
APART += " --pipeline-model-parallel-size 4 --pipeline-model-parallel-layout Et|ttt|m|L"

# Tied models whose last stage has a word embedding for MTP layers and an output layer that nothing uses. Megatron
# saves them in files of ranks only.
TIED = PP + GROUPED + PREDICTION + " --tied"
VIRTUAL = " --num-virtual-stages-per-pipeline-rank 2"
IDLE_HEADS = {
    "rank_files": TIED + RANK_FILES,
    "rank_buckets": TIED + RANK_FILES + BUCKETS,
    "virtual_rank_files": TIED + VIRTUAL + RANK_FILES,
}
IDLE_LOADS = {
    "rank_files": ("legacy --pp 2 --vpp 2", IDLE_HEADS["virtual_rank_files"]),
    "rank_buckets": ("torch_dist --tp 2", TP + GROUPED + PREDICTION + " --tied" + WHOLE),
    "virtual_rank_files": ("legacy --pp 2", IDLE_HEADS["rank_files"]),
}

# Layers that are not shared out evenly. What goes on with rank files has the run's own flags.
BARS = HYBRID.replace("M*-G-", "{}") + DELTA
STAGES = {
    "first": PP + GROUPED + " --decoder-first-pipeline-num-layers 3",
    "counted": PP + GROUPED.replace("--num", "--account-for-loss-in-pipeline-split --num-layers 3 --num"),
    "layout": PP + GROUPED + " --pipeline-model-parallel-layout Et|tt|t|L",
    "predicting": PP + GROUPED + PREDICTION + " --pipeline-model-parallel-layout Ett|t|t|mL",
    "bars": PP + BARS.format("M*-G|-"),
    "virtual_bars": PP + BARS.format("M*|-|G|-"),
}
STAGE_LOADS = {name: ("", words + RANK_FILES) for name, words in STAGES.items()}

# Without a distributed optimizer, whose chain has a part for experts that are sharded apart.
PLAIN = {
    "together": TP + SHARED + " --sequence-parallel",
    "apart": EP + SHARED,
}
PLAIN_LOADS = {
    "together": ("torch_dist --ep 2", PLAIN["apart"]),
    "apart": ("torch_dist --tp 2", PLAIN["together"]),
}

# What is made of a case, and with which arguments that is loaded.
LOADS = {
    "dense_whole": ("torch_dist --pp 2", PP + GROUPED + WHOLE),
    "frozen_whole": ("legacy --pp 2", PP + GROUPED + RANK_FILES + FREEZE),
    "moe_buckets": ("torch_dist --tp 2", TP + SHARED + PREDICTION + WHOLE + " --sequence-parallel"),
    "biased_whole": ("torch_dist --ep 2", EP + BIASED + WHOLE),
    "fused_buckets": ("legacy --tp 2", TP + FUSED + RANK_FILES),
    "fused_rank_files": ("torch_dist --tp 1", LATENT + PREDICTION + WHOLE),
    "hybrid_buckets": ("legacy --tp 2", TP + HYBRID + DELTA + RANK_FILES),
    "layout_buckets": ("torch_dist --tp 2", TP + GROUPED + WHOLE),
    "prediction_buckets": ("torch_dist --tp 2", TP + GROUPED + PREDICTION + WHOLE),
    "latent_experts": ("legacy --tp 2", TP + SHARED + LATENT_EXPERTS + SP + RANK_FILES),
    "latent_rank_files": ("torch_dist --tp 2", TP + SHARED + LATENT_EXPERTS + SP + WHOLE),
    "offset_rank_files": ("torch_dist --pp 2", PP + GROUPED + OFFSET + WHOLE),
    "hybrid_rank_files": ("torch_dist --tp 1", HYBRID + DELTA + WHOLE),
    "gated_rank_files": ("torch_dist --tp 2", TP + GATED + WHOLE),
}
