# SPDX-License-Identifier: Apache-2.0
"""A Megatron model built from nothing but the arguments that a checkpoint carries.

This follows Megatron-LM 0.16.1 (core_transformer_config_from_args and gpt_builder), so an argument
that the converter got wrong becomes a model that computes something else. What is set here beyond
the arguments is said to be so.
"""
import dataclasses
import functools

import torch
import torch.nn.functional as F

import megatron_cpu  # makes torch ready for Megatron on a CPU, so it comes before Megatron

from megatron.core import dist_checkpointing
from megatron.core.activations import quick_gelu, squared_relu
from megatron.core.models.gpt import gpt_layer_specs
from megatron.core.models.gpt.heterogeneous import heterogeneous_layer_specs
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.transformer.dot_product_attention import DotProductAttention
from megatron.core.transformer.heterogeneous.heterogeneous_config import (
    HeterogeneousTransformerConfig,
)
from megatron.core.transformer.moe import moe_utils
from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig

# The stand-in for Transformer Engine has no arithmetic; without it the router takes torch's.
moe_utils.te_general_gemm = None

# How the checkpoint was cut does not matter, because Megatron puts it together when it loads; the
# model under test is whole, and computes in float32 so that no difference hides in rounding.
WHOLE_ON_CPU = dict(
    tensor_model_parallel_size=1,
    pipeline_model_parallel_size=1,
    virtual_pipeline_model_parallel_size=None,
    expert_model_parallel_size=1,
    expert_tensor_parallel_size=1,
    use_cpu_initialization=True,
    moe_grouped_gemm=False,
    moe_token_dispatcher_type="alltoall",
    bf16=False,
    fp16=False,
    params_dtype=torch.float32,
    pipeline_dtype=torch.float32,
)

# GPTModel reads these from its configuration, although no class of Megatron-Core declares them.
# Where a checkpoint does not say, YaRN's own values count.
YARN_DEFAULTS = dict(
    yarn_beta_fast=32.0,
    yarn_beta_slow=1.0,
    yarn_mscale=None,
    yarn_mscale_all_dim=None,
    yarn_correction_range_round_to_int=True,
)


class LatentDotProductAttention(DotProductAttention):
    """Megatron's own attention, deaf to two sizes that MLA mentions and only TE's wants to know."""

    def __init__(self, *args, k_channels=None, v_channels=None, **kwargs):
        super().__init__(*args, **kwargs)


def read_arguments(folder):
    """The argparse.Namespace in the common.pt of an iteration folder."""
    return dist_checkpointing.load_common_state_dict(str(folder))["args"]


def transformer_config(args):
    """Every field that has an argument of its name, then those that Megatron-LM derives."""
    config_class = MLATransformerConfig if args.multi_latent_attention else TransformerConfig
    if getattr(args, "heterogeneous_block_specs", False):
        config_class = HeterogeneousTransformerConfig
    names = {field.name for field in dataclasses.fields(config_class)}
    values = {name: value for name, value in vars(args).items() if name in names}
    values["num_moe_experts"] = args.num_experts
    values["num_query_groups"] = args.num_query_groups if args.group_query_attention else None
    if args.swiglu:
        values.update(activation_func=F.silu, gated_linear_unit=True)
    elif getattr(args, "squared_relu", False):
        values.update(activation_func=squared_relu)
    elif getattr(args, "quick_geglu", False):
        values.update(activation_func=quick_gelu, gated_linear_unit=True)
    elif getattr(args, "openai_gelu", False):
        # Megatron-LM has the argument and does not hand it on.
        values.update(activation_func=functools.partial(F.gelu, approximate="tanh"))
    # The local norms know no zero-centered weights: see zero_centered.
    values["layernorm_zero_centered_gamma"] = False
    config = config_class(**{**values, **WHOLE_ON_CPU})
    if args.position_embedding_type == "yarn":
        for name, value in {**YARN_DEFAULTS, **vars(args)}.items():
            if name.startswith("yarn_"):
                setattr(config, name, value)
    return config


def layer_specs(config, args):
    """The local modules that Megatron-LM takes for these arguments."""
    if isinstance(config, HeterogeneousTransformerConfig):
        return heterogeneous_layer_specs.get_gpt_heterogeneous_layer_spec(config, use_te=False)
    block = gpt_layer_specs.get_gpt_decoder_block_spec(
        config, use_transformer_engine=False, normalization=args.normalization
    )
    if not args.multi_latent_attention:
        return block
    for layer in block.layer_specs:
        layer.submodules.self_attention.submodules.core_attention = LatentDotProductAttention
    return block


def build(args):
    """The model that the arguments describe, its values garbage."""
    config = transformer_config(args)
    model = GPTModel(
        config,
        layer_specs(config, args),
        vocab_size=args.padded_vocab_size,
        max_sequence_length=args.max_position_embeddings,
        share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
        position_embedding_type=args.position_embedding_type,
        rotary_percent=getattr(args, "rotary_percent", 1.0),
        rotary_base=getattr(args, "rotary_base", 10000),
        rope_scaling=getattr(args, "use_rope_scaling", False),
        # Megatron-LM has these two arguments as well, but its gpt_builder does not hand them on.
        rope_scaling_factor=getattr(args, "rope_scaling_factor", 8.0),
        seq_len_interpolation_factor=getattr(args, "rotary_seq_len_interpolation_factor", None),
    )
    if getattr(args, "apply_layernorm_1p", False):
        zero_centered(model)
    for tensor in tensors(model).values():
        tensor.fill_(float("nan"))
    return model.eval()


def scale_embeddings(model):
    """Gemma's, which no argument says."""
    factor = model.config.hidden_size**0.5
    words = model.embedding.word_embeddings
    words.register_forward_hook(lambda module, inputs, output: output * factor)


def zero_centered(model):
    """Lets every norm multiply by one more than its weight, as Transformer Engine's can."""
    for norm in model.modules():
        if isinstance(norm, torch.nn.RMSNorm):
            shape, eps = norm.normalized_shape, norm.eps
            norm.forward = lambda x, n=norm, s=shape, e=eps: F.rms_norm(x, s, 1 + n.weight, e)
        elif isinstance(norm, torch.nn.LayerNorm):
            shape, eps = norm.normalized_shape, norm.eps
            norm.forward = lambda x, n=norm, s=shape, e=eps: F.layer_norm(
                x, s, 1 + n.weight, n.bias, e
            )


def tensors(model):
    """Its parameters and buffers by name, without the states that only Transformer Engine fills."""
    return {
        name: value
        for name, value in model.state_dict().items()
        if not name.endswith("_extra_state")
    }


def load(model, folder):
    """Every tensor of an iteration folder finds its place, and every place its tensor."""
    state, extra, lacking = dist_checkpointing.load(
        {"model": megatron_cpu.sharded(model)}, str(folder), strict="return_all"
    )
    # Megatron gives the last norm a state where Transformer Engine is installed, not otherwise.
    # What only Hugging Face stores is kept, and Megatron reads over it.
    extra = {name for name in extra if not name.startswith("hf_extra.")}
    assert not lacking and extra <= {"decoder.final_layernorm._extra_state"}, (lacking, extra)
    model.load_state_dict(state["model"])
