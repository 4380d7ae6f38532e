# SPDX-License-Identifier: Apache-2.0
"""What some models compute and no argument of Megatron-LM says, added to the modules that it builds:
under the names that our checkpoints give it. Each function takes the model and its arguments."""
import functools

import torch.nn.functional as F

from transformer_engine.pytorch import RMSNorm
from transformer_engine.pytorch.module.linear import Linear

from megatron.core.models.common.embeddings.rotary_pos_embedding import RotaryEmbedding


def gelu_by_tanh(model, args):
    """What openai_gelu asks for, which Megatron-LM does not hand on."""
    activation = functools.partial(F.gelu, approximate="tanh")
    for layer in model.decoder.layers:
        layer.mlp.config.activation_func = layer.mlp.activation_func = activation


def attentions(model):
    return [layer.self_attention for layer in model.decoder.layers]


def scaled_embeddings(model, args):
    """By the square root of their width."""
    words = model.embedding.word_embeddings
    words.register_forward_hook(lambda module, inputs, output: output * args.hidden_size**0.5)


def _norm(args, width, kind=RMSNorm):
    centred = args.layernorm_zero_centered_gamma
    return kind(width, eps=args.layernorm_epsilon, zero_centered_gamma=centred, sequence_parallel=False)


def _add_norm_behind(linear, args):
    linear.post_layernorm = _norm(args, args.hidden_size)
    linear.register_forward_hook(
        lambda module, inputs, output: (module.post_layernorm(output[0]), output[1])
    )


def norms_behind(model, args):
    """Of what attention and MLP put out."""
    for layer in model.decoder.layers:
        _add_norm_behind(layer.self_attention.linear_proj, args)
        _add_norm_behind(layer.mlp.linear_fc2, args)


def no_norms_before(model, args):
    """Attention and MLP read the residual as it is."""
    for layer in model.decoder.layers:
        for linear in (layer.self_attention.linear_qkv, layer.mlp.linear_fc1):
            del linear.layer_norm_weight
            linear.forward = lambda x, own=linear: (Linear.forward(own, x), None)


class NormOfAllHeads(RMSNorm):
    def forward(self, x):
        return super().forward(x.flatten(-2)).view_as(x)


def norms_of_all_heads(model, args):
    """Of queries, and of keys."""
    for attention in attentions(model):
        width = args.kv_channels
        groups = attention.config.num_query_groups
        attention.q_layernorm = _norm(args, args.num_attention_heads * width, NormOfAllHeads)
        attention.k_layernorm = _norm(args, groups * width, NormOfAllHeads)


def rotation_of_windows(model, args):
    """Frequencies of their own for layers with a window."""
    local = RotaryEmbedding(
        args.kv_channels, rotary_percent=1.0, rotary_base=args.rope_local_base_freq,
        use_cpu_initialization=True,
    )  # fmt: skip

    def turn(module, inputs, named):
        named["rotary_pos_emb"] = (local(len(inputs[0])),) * 2
        return inputs, named

    for attention in attentions(model):
        if attention.core_attention.window_size not in (None, (-1, -1), (-1, 0)):
            attention.register_forward_pre_hook(turn, with_kwargs=True)
