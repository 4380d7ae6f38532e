# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_encoder_buckets.py do: a BERT or a T5 with Megatron-Core's distributed
optimizer, whose states are buckets of each data-parallel rank."""
import argparse
import os

import gpu_modules

gpu_modules.install()

import megatron_cpu  # noqa: E402
import megatron_optimizer  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from megatron.core import dist_checkpointing, parallel_state  # noqa: E402
from megatron.core.distributed import (  # noqa: E402
    DistributedDataParallel,
    DistributedDataParallelConfig,
)
from megatron.core.models.bert import bert_layer_specs  # noqa: E402
from megatron.core.models.bert.bert_model import BertModel  # noqa: E402
from megatron.core.models.T5 import t5_spec  # noqa: E402
from megatron.core.models.T5.t5_model import T5Model  # noqa: E402
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer  # noqa: E402
from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: E402
from newer_truth import STATES, weight_of  # noqa: E402
from training_steps import leaves, states_of  # noqa: E402

LAYERS = 2


def build(kind, tp, pp):
    config = TransformerConfig(
        num_layers=LAYERS, hidden_size=32, num_attention_heads=4, ffn_hidden_size=64, bf16=True,
        params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, use_cpu_initialization=True,
        tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp,
    )  # fmt: skip
    shared = dict(
        vocab_size=256, max_sequence_length=32, share_embeddings_and_output_weights=True,
        pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(),
    )  # fmt: skip
    if kind == "bert":
        return BertModel(config, 2, bert_layer_specs.bert_layer_local_spec, **shared)
    encoder = t5_spec.get_t5_encoder_with_local_block_spec(LAYERS)
    decoder = t5_spec.get_t5_decoder_with_local_block_spec(LAYERS)
    return T5Model(config, config, encoder, decoder, **shared)


def arguments(tp, pp):
    return argparse.Namespace(
        num_layers=LAYERS, encoder_num_layers=LAYERS, decoder_num_layers=LAYERS, hidden_size=32,
        ffn_hidden_size=64, num_attention_heads=4, max_position_embeddings=32, bf16=True,
        padded_vocab_size=256, untie_embeddings_and_output_weights=False, transformer_impl="local",
        position_embedding_type="learned_absolute", optimizer="adam", use_distributed_optimizer=True,
        tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp,
    )  # fmt: skip


@megatron_cpu.without_children
def save(folder, kind, tp=1, pp=1):
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    megatron_cpu.join(tp, pp)
    model = build(kind, tp, pp).bfloat16()
    buckets = DistributedDataParallelConfig(
        grad_reduce_in_fp32=True, use_distributed_optimizer=True
    )
    wrapped = DistributedDataParallel(model.config, buckets, model)
    config = OptimizerConfig(
        optimizer="adam", lr=1e-3, bf16=True, params_dtype=torch.bfloat16, clip_grad=0.0,
        use_distributed_optimizer=True,
    )  # fmt: skip
    with megatron_optimizer.cuda_types():
        optimizer = get_megatron_optimizer(config, [wrapped])
    with torch.no_grad():
        # The last of two names counts, as for the optimizer's states.
        for key, data, place, shape in megatron_cpu._pieces(model):
            data.copy_(weight_of(key, shape)[place].reshape(data.shape))
    for weight, master, states in states_of(optimizer):
        master.data.copy_(STATES["param"](weight))
        for name in ("exp_avg", "exp_avg_sq"):
            states[name] = STATES[name](weight).clone()
    for leaf in leaves(optimizer):
        for group in leaf.optimizer.param_groups:
            group["step"] = 10
    group = parallel_state.get_data_parallel_group(with_context_parallel=True)
    metadata = dict(distrib_optim_sharding_type="dp_reshardable", dp_cp_group=group)
    weights = model.sharded_state_dict(metadata=metadata)
    state = dict(
        args=arguments(tp, pp), checkpoint_version=3.0, iteration=10, model=weights,
        optimizer=optimizer.sharded_state_dict(weights, metadata=metadata),
    )  # fmt: skip
    if dist.get_rank() == 0:
        os.makedirs(folder)
    dist.barrier()
    dist_checkpointing.save(state, folder)
