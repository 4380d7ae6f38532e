# SPDX-License-Identifier: Apache-2.0
"""As added_modules.py: biases by distance, mixers of Mamba among a GPT's layers, other sums and norms."""
import math
import types

import torch
import torch.nn.functional as F

import te_arithmetic
from added_modules import (
    _norm, attentions, gates, no_norms_before, norms_behind, norms_of_all_heads
)

from transformer_engine.pytorch import LayerNorm
from transformer_engine.pytorch.module.linear import Linear

from megatron.core.models.common.embeddings.rotary_pos_embedding import RotaryEmbedding
from megatron.core.models.hybrid.hybrid_layer_specs import hybrid_stack_spec
from megatron.core.process_groups_config import ProcessGroupCollection
from megatron.core.transformer.spec_utils import build_module


def relu(model, args):
    for layer in model.decoder.layers:
        layer.mlp.config.activation_func = layer.mlp.activation_func = F.relu


def norm_of_embeddings(model, args):
    norm = _norm(args, args.hidden_size, LayerNorm)
    model.embedding.word_embeddings_layernorm = norm
    model.embedding.word_embeddings.register_forward_hook(
        lambda module, inputs, output: F.layer_norm(
            output, norm.weight.shape, norm.weight, norm.bias, args.layernorm_epsilon
        )
    )


def bias_by_distance(model, args):
    """ALiBi, whose slopes are each the square root of the one before it times a power of 2; where the
    heads are no power of two, those of twice as many lie between them."""
    reach = getattr(args, "alibi_bias_max", 8)
    heads = args.num_attention_heads
    count = 2 ** math.ceil(math.log2(heads))
    slopes = [2.0 ** (-reach * number / count) for number in range(1, count + 1)]
    if count != heads:
        slopes = (slopes[1::2] + slopes[::2])[:heads]

    def add(module, inputs, named):
        places = torch.arange(len(inputs[0]))
        named["attention_bias"] = torch.tensor(slopes)[:, None, None] * (places - places[:, None])
        return inputs, named

    for attention in attentions(model):
        attention.register_forward_pre_hook(add, with_kwargs=True)


def places_from_the_third(model, args):
    """The first position is the third row."""
    model.embedding.position_embeddings.register_forward_pre_hook(
        lambda module, inputs: (inputs[0] + 2,)
    )


def bias_of_head(model, args):
    model.output_layer.bias = torch.nn.Parameter(torch.empty(args.padded_vocab_size))


def _unnormed(linear):
    """Reads its input as it is."""
    for name in ("layer_norm_weight", "layer_norm_bias"):
        if name in linear._parameters:
            del linear._parameters[name]
    linear.forward = lambda x: te_arithmetic.pair(Linear.forward(linear, x))


def _sums(layer, of_attention, of_mlp):
    """How what attention and MLP put out is added to the residual."""

    def whole(output):
        return output[0] if output[1] is None else output[0] + output[1]

    def forward(hidden_states, attention_mask=None, rotary_pos_emb=None, **_):
        x = hidden_states
        read = layer.input_layernorm(x)
        x = of_attention(
            x, whole(layer.self_attention(read, attention_mask, rotary_pos_emb=rotary_pos_emb))
        )
        return of_mlp(x, whole(layer.mlp(layer.pre_mlp_layernorm(x)))), None

    layer.forward = forward


def norms_behind_sums(model, args):
    """And none before attention and MLP, nor at the end."""
    model.decoder.final_layernorm = None
    for layer in model.decoder.layers:
        _unnormed(layer.self_attention.linear_qkv)
        _unnormed(layer.mlp.linear_fc1)
        sums = []
        for name in ("self_attn_layer_norm", "final_layer_norm"):
            norm = torch.nn.LayerNorm(args.hidden_size, eps=args.layernorm_epsilon)
            setattr(layer, name, norm)
            sums.append(lambda x, out, own=norm: own(x + out))
        _sums(layer, *sums)


def narrow_embeddings(model, args):
    """With a projection behind the embedding, and another before the head, which is the embedding."""
    width = args.word_embed_proj_dim
    words = model.embedding.word_embeddings
    model.output_layer.input_size = width
    words.weight = torch.nn.Parameter(torch.empty(len(words.weight), width))
    first = model.decoder.project_in = torch.nn.Linear(width, args.hidden_size, bias=False)
    last = model.decoder.project_out = torch.nn.Linear(args.hidden_size, width, bias=False)
    words.register_forward_hook(lambda module, inputs, output: first(output))
    model.decoder.register_forward_hook(lambda module, inputs, output: last(output))


def norms_of_ones(model, args):
    """Of embeddings, without a weight."""
    model.embedding.word_embeddings.register_forward_hook(
        lambda module, inputs, output: F.rms_norm(
            output, (args.hidden_size,), None, args.layernorm_epsilon
        )
    )


def _turn(attention, embedding):
    def turn(module, inputs, named):
        named["rotary_pos_emb"] = (embedding(len(inputs[0])),) * 2
        return inputs, named

    attention.register_forward_pre_hook(turn, with_kwargs=True)


def rotation_backwards(model, args):
    own = model.rotary_pos_emb
    for attention in attentions(model):
        _turn(attention, lambda length: -own(length))


def rotations_of_layers(model, args):
    """Each layer has frequencies of its own."""
    for attention, base in zip(attentions(model), args.layer_rope_theta, strict=True):
        _turn(
            attention,
            RotaryEmbedding(
                args.kv_channels, rotary_percent=1.0, rotary_base=base, use_cpu_initialization=True
            ),
        )


def _change_logits(model, change):
    model.output_layer.register_forward_hook(
        lambda module, inputs, output: (change(output[0]), output[1])
    )


def capped_logits(model, args):
    cap = args.final_logit_softcapping
    _change_logits(model, lambda logits: torch.tanh(logits / cap) * cap)


def factors(model, args):
    """Granite's, of embeddings, of what is added to residuals, and of logits."""
    model.embedding.word_embeddings.register_forward_hook(
        lambda module, inputs, output: output * args.embedding_multiplier
    )
    _change_logits(model, lambda logits: logits / args.logits_scaling)

    def add(x, output):
        return x + output * args.residual_multiplier

    for layer in model.decoder.layers:
        _sums(layer, add, add)


def logits_multiplied(model, args):
    """By the square of what `factors` divides them by, so that it multiplies them."""
    _change_logits(model, lambda logits: logits * args.logits_scaling**2)


def biased_logits_of_experts(model, args):
    """Experts are chosen by logits and a bias; the sigmoids of the chosen ones are their weights."""

    def route(logits, bias):
        chosen = (logits + bias).topk(args.moe_router_topk).indices
        weights = torch.gather(logits, 1, chosen).sigmoid()
        if args.norm_topk_prob:
            weights = weights / weights.sum(-1, keepdim=True)
        probabilities = torch.zeros_like(logits).scatter(1, chosen, weights)
        return probabilities, torch.zeros_like(logits, dtype=torch.bool).scatter(1, chosen, True)

    for layer in model.decoder.layers:
        router = layer.mlp.router
        router.routing = lambda logits, padding_mask=None, own=router: route(
            logits.flatten(0, -2), own.expert_bias
        )


def norms_of_each_head(model, args):
    """Of queries and keys, with weights of their own."""
    for attention in attentions(model):
        heads = args.num_attention_heads, attention.config.num_query_groups
        for name, count in zip(("q_layernorm", "k_layernorm"), heads):
            norm = torch.nn.Module()
            norm.weight = torch.nn.Parameter(torch.empty(count, args.kv_channels))
            norm.forward = lambda x, own=norm: own.weight * F.layer_norm(
                x, x.shape[-1:], eps=args.layernorm_epsilon
            )
            setattr(attention, name, norm)


def mixers(model, args):
    """Of Mamba, in place of some layers' attention."""
    kind = hybrid_stack_spec.submodules.mamba_layer.submodules.mixer
    groups = ProcessGroupCollection.use_mpu_process_groups()
    for number, layer in enumerate(model.decoder.layers):
        if hasattr(args, "layer_types"):
            is_attention = args.layer_types[number] in ("attention", "full_attention")
        else:
            is_attention = number in args.attn_layer_indices
        if is_attention:
            continue
        mixer = layer.mixer = build_module(
            kind, model.config, d_model=args.hidden_size, layer_number=number + 1,
            pg_collection=groups, d_conv=args.mamba_d_conv,
        )  # fmt: skip
        del layer.self_attention
        layer.self_attention = lambda x, *_, own=mixer, **__: own(x)


def olmo2_among_delta_nets(model, args):
    """Layers with full attention are OLMo 2's; delta nets have a norm with an epsilon of its own, and
    take twice as much from what they forget."""
    layers = model.decoder.layers
    full = [layer for layer in layers if hasattr(layer.self_attention, "linear_qkv")]
    olmo2 = types.SimpleNamespace(decoder=types.SimpleNamespace(layers=full))
    for add in (no_norms_before, norms_behind, norms_of_all_heads):
        add(olmo2, args)
    for attention in attentions(model):
        if hasattr(attention, "linear_qkv"):
            continue
        attention.out_norm.eps = 1e-5
        if args.linear_allow_neg_eigval:
            both = attention._compute_g_and_beta
            attention._compute_g_and_beta = lambda *inputs, own=both: (
                own(*inputs)[0], 2 * own(*inputs)[1]
            )  # fmt: skip


def biased_gates(model, args):
    """With a bias for each head."""
    gates(model, args)
    for attention in attentions(model):
        bias = torch.nn.Parameter(torch.empty(args.num_attention_heads))
        attention.gate_bias = bias
        attention.gate_proj.register_forward_hook(
            lambda module, inputs, output, own=attention: output
            + own.gate_bias.repeat_interleave(args.kv_channels)
        )


def sums_by_depth(model, args):
    """What has been added so far counts by how often that was."""

    def add(count):
        return lambda x, output: (output + (count - 1) ** 0.5 * x) / count**0.5

    for number, layer in enumerate(model.decoder.layers):
        _sums(layer, add(2 * number + 2), add(2 * number + 3))


def growing_queries(model, args):
    """With the position, in layers without a rotary embedding."""

    def grow(module, inputs):
        places = torch.arange(1, len(inputs[0]) + 1)[:, None, None, None]
        return (inputs[0] * (1 + places / 2048) ** 0.1, *inputs[1:])

    for attention, is_plain in zip(attentions(model), args.no_rope_freq, strict=True):
        if is_plain:
            attention.core_attention.register_forward_pre_hook(grow)


class Xielu(torch.nn.Module):
    """Its numbers are the checkpoint's."""

    def __init__(self):
        super().__init__()
        self.alpha_p, self.alpha_n = (torch.nn.Parameter(torch.empty(1)) for _ in range(2))
        for name in ("beta", "eps"):
            self.register_buffer(name, torch.empty(()))

    def forward(self, x):
        below = (torch.expm1(torch.minimum(x, self.eps)) - x) * (self.beta + F.softplus(self.alpha_n))
        return self.beta * x + torch.where(x > 0, F.softplus(self.alpha_p) * x * x, below)


def xielu(model, args):
    for layer in model.decoder.layers:
        layer.mlp.activation_func = Xielu()


def biases_of_projections(model, args):
    """Of what attention puts out, where no other linear behind it has one."""
    for attention in attentions(model):
        attention.linear_proj.bias = torch.nn.Parameter(torch.empty(args.hidden_size))
        attention.linear_proj.use_bias = True


def one_expert_after_the_other(model, args):
    """The best one, then the best of the others; each weighs as among those not far below it."""

    def best(logits, candidates):
        top, chosen = candidates.max(-1, keepdim=True)
        far = (top - logits) / logits.abs().clamp(min=top) > 0.02
        return chosen, candidates.masked_fill(far, -torch.inf).softmax(-1).gather(1, chosen)

    def route(logits):
        first, weight = best(logits, logits)
        second, other = best(logits, logits.scatter(1, first, -torch.inf))
        chosen = torch.cat([first, second], 1)
        probabilities = torch.zeros_like(logits).scatter(1, chosen, torch.cat([weight, other], 1))
        return probabilities, torch.zeros_like(logits, dtype=torch.bool).scatter(1, chosen, True)

    for layer in model.decoder.layers:
        layer.mlp.router.routing = lambda logits, padding_mask=None: route(logits.flatten(0, -2))
