# SPDX-License-Identifier: Apache-2.0
"""What one rank of a T5's job does. Stages share out the layers that read and those that write, each by
themselves."""
import argparse
import dataclasses

import torch
from megatron.core import parallel_state
from megatron.core.models.T5 import t5_spec
from megatron.core.models.T5.t5_model import T5Model
from megatron.core.transformer.transformer_config import TransformerConfig

import megatron_cpu
import megatron_optimizer
from hf_sizes import T5_SIZES

VOCABULARY = 512
SPECS = {
    "te": (t5_spec.encoder_model_with_transformer_engine_default_spec, t5_spec.decoder_model_with_transformer_engine_default_spec),
    "local": (t5_spec.encoder_model_with_local_spec, t5_spec.decoder_model_with_local_spec),
}  # fmt: skip


def build(depths, spec, sizes, tied=False):
    megatron_cpu.join(**sizes)
    decoder = TransformerConfig(
        num_layers=depths[1], hidden_size=T5_SIZES["d_model"], ffn_hidden_size=T5_SIZES["d_ff"],
        num_attention_heads=T5_SIZES["num_heads"], kv_channels=T5_SIZES["d_kv"], normalization="RMSNorm",
        gated_linear_unit=True, activation_func=torch.nn.functional.gelu, add_bias_linear=False, bf16=True,
        params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, use_cpu_initialization=True,
        tensor_model_parallel_size=sizes["tp"], pipeline_model_parallel_size=sizes.get("pp", 1),
    )  # fmt: skip
    encoder = dataclasses.replace(decoder, num_layers=depths[0])
    model = T5Model(
        decoder, encoder, *(make() for make in SPECS[spec]), vocab_size=VOCABULARY, max_sequence_length=512,
        pre_process=parallel_state.is_pipeline_first_stage(), post_process=parallel_state.is_pipeline_last_stage(),
        share_embeddings_and_output_weights=tied, position_embedding_type="relative",
        relative_attention_num_buckets=T5_SIZES["relative_attention_num_buckets"],
    )  # fmt: skip
    return model.bfloat16()


def arguments(depths, sizes, tied=False):
    return argparse.Namespace(
        num_layers=depths[0], encoder_num_layers=depths[0], decoder_num_layers=depths[1],
        hidden_size=T5_SIZES["d_model"], ffn_hidden_size=T5_SIZES["d_ff"], kv_channels=T5_SIZES["d_kv"],
        num_attention_heads=T5_SIZES["num_heads"], num_query_groups=1, group_query_attention=False,
        max_position_embeddings=512, padded_vocab_size=VOCABULARY, untie_embeddings_and_output_weights=not tied,
        normalization="RMSNorm", swiglu=False, gated_linear_unit=True, openai_gelu=True, add_bias_linear=False,
        add_qkv_bias=False, position_embedding_type="relative", relative_attention_max_distance=128,
        relative_attention_num_buckets=T5_SIZES["relative_attention_num_buckets"], num_experts=None,
        tensor_model_parallel_size=sizes["tp"], pipeline_model_parallel_size=sizes.get("pp", 1),
        expert_model_parallel_size=1, bf16=True, iteration=10,
    )  # fmt: skip


def truth_of(model):
    """Values by name, of one head under both names and of norms whichever module has them."""
    truth = {}
    for key, _, _, shape in megatron_cpu._pieces(model):
        name = key.replace("lm_head.output_layer.", "output_layer.")
        name = name.replace("input_layernorm.", "self_attention.linear_qkv.layer_norm_")
        name = name.replace("pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_")
        generator = torch.Generator().manual_seed(sum(name.encode()) * 7 + len(name))
        truth[key] = torch.randn(shape, generator=generator).bfloat16()
    return truth


def save(folder, depths, spec, sizes, optimizer=False, tied=False):
    model = build(depths, spec, sizes, tied)
    megatron_cpu.fill(model, truth_of(model))
    megatron_cpu.arguments_of = lambda *_: arguments(depths, sizes, tied)
    state = None
    if optimizer:
        made = megatron_optimizer.build(model)
        megatron_optimizer.step(made, 5)
        state = made.state_dict()
    megatron_cpu.save_legacy(model, folder, None, optimizer=state)


def load(folder, depths, spec, sizes):
    model = build(depths, spec, sizes)
    for parameter in model.parameters():
        parameter.data.fill_(-7)
    megatron_cpu.load_legacy(model, folder)
    assert megatron_cpu.assert_holds(model, truth_of(model)), "this rank holds nothing"
