# SPDX-License-Identifier: Apache-2.0
"""What some models compute and no argument of Megatron-LM says, added to the modules that it builds:
under the names that our checkpoints give it. Each function takes the model and its arguments."""
import functools

import torch
import torch.nn.functional as F

import te_arithmetic

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


def _add_norm_behind(module, args, holder=None):
    """`holder` has the norm where not the module itself does."""
    norm = _norm(args, args.hidden_size)
    (holder or module).post_layernorm = norm
    module.register_forward_hook(lambda _, inputs, output: (norm(output[0]), output[1]))


def norms_behind(model, args):
    """Of what attention and MLP put out."""
    for layer in model.decoder.layers:
        _add_norm_behind(layer.self_attention.linear_proj, args)
        if not hasattr(layer.mlp, "experts"):
            _add_norm_behind(layer.mlp.linear_fc2, args)


def no_norms_before(model, args):
    """Attention and MLP read the residual as it is."""
    for layer in model.decoder.layers:
        for linear in (layer.self_attention.linear_qkv, layer.mlp.linear_fc1):
            del linear.layer_norm_weight
            linear.forward = lambda x, own=linear: te_arithmetic.pair(Linear.forward(own, x))


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


def norms_behind_experts(model, args):
    """Of what the MLPs of layers with experts put out."""
    for layer in model.decoder.layers:
        if hasattr(layer.mlp, "experts"):
            layer.mlp.linear_fc2 = torch.nn.Module()
            _add_norm_behind(layer.mlp, args, layer.mlp.linear_fc2)


def norms_behind_rotation(model, args):
    """Of queries and keys."""
    for attention in attentions(model):
        norms = attention.q_layernorm, attention.k_layernorm

        def normalise(module, inputs, norms=norms):
            turned = [RMSNorm.forward(norm, x) for norm, x in zip(norms, inputs)]
            return (*turned, *inputs[2:])

        for norm in norms:
            norm.forward = lambda x: x
        attention.core_attention.register_forward_pre_hook(normalise)


def no_norms_without_rotation(model, args):
    """Queries and keys are normalised in layers with a rotary embedding only."""
    for attention, is_plain in zip(attentions(model), args.no_rope_freq, strict=True):
        if is_plain:
            attention.q_layernorm = attention.k_layernorm = torch.nn.Identity()


def gates(model, args):
    """Of each channel that attention puts out, from what it reads."""
    for attention in attentions(model):
        attention.gate_proj = Linear(
            args.hidden_size, args.num_attention_heads * args.kv_channels, bias=False
        )
        read = {}
        attention.linear_qkv.register_forward_pre_hook(
            lambda module, inputs, read=read: read.update(x=te_arithmetic.normed(module, inputs[0]))
        )
        attention.linear_proj.register_forward_pre_hook(
            lambda module, inputs, own=attention, read=read: (
                inputs[0] * torch.sigmoid(own.gate_proj(read["x"])),
            )
        )


def softmax_of_experts(model, args):
    """In place of sigmoids, before the bias is added."""
    for layer in model.decoder.layers:
        if hasattr(layer.mlp, "router"):
            gating = layer.mlp.router.gating
            layer.mlp.router.gating = lambda x, own=gating: torch.logit(F.softmax(own(x), -1))


def _side_by_side(layer, own_norm):
    attention, mlp = layer.self_attention, layer.mlp
    if not own_norm and hasattr(mlp, "experts"):
        layer.pre_mlp_layernorm = torch.nn.Identity()
    elif not own_norm:
        fc1 = mlp.linear_fc1
        for name in ("layer_norm_weight", "layer_norm_bias"):
            if name in fc1._parameters:
                del fc1._parameters[name]
        fc1.forward = lambda x: te_arithmetic.pair(Linear.forward(fc1, x))

    def forward(hidden_states, attention_mask=None, rotary_pos_emb=None, **_):
        x = hidden_states
        outputs = [
            attention(x, attention_mask, rotary_pos_emb=rotary_pos_emb),
            mlp(x if own_norm else te_arithmetic.normed(attention.linear_qkv, x)),
        ]
        return x + sum(out if bias is None else out + bias for out, bias in outputs), None

    layer.forward = forward


def one_residual(model, args):
    """Attention and MLP read the same, behind one norm."""
    for layer in model.decoder.layers:
        _side_by_side(layer, own_norm=False)


def one_residual_two_norms(model, args):
    for layer in model.decoder.layers:
        _side_by_side(layer, own_norm=True)


def scaled_logits(model, args):
    model.output_layer.register_forward_hook(
        lambda module, inputs, output: (output[0] * args.logit_scale, output[1])
    )
