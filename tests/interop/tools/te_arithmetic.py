# SPDX-License-Identifier: Apache-2.0
"""Lets what stands in for Transformer Engine, and for kernels of layers without attention, compute on
a CPU what the real ones do on a GPU. `install` comes before Megatron is imported, and behind
`gpu_modules.install`."""
import sys

import torch
import torch.nn.functional as F

import gpu_modules

from transformer_engine.pytorch.attention import DotProductAttention
from transformer_engine.pytorch.module.grouped_linear import GroupedLinear
from transformer_engine.pytorch.module.layernorm_linear import LayerNormLinear
from transformer_engine.pytorch.module.linear import Linear


def _with_bias(module, output, bias):
    """The bias added, or beside the output where whoever calls adds it."""
    if not module.use_bias:
        return (output, None) if module.return_bias else output
    return (output, bias) if module.return_bias else output + bias


def pair(output):
    """As Megatron's own linears put out."""
    return output if isinstance(output, tuple) else (output, None)


def linear(self, x, is_first_microbatch=None):
    return _with_bias(self, F.linear(x, self.weight), self.bias)


def normed(module, x):
    """What the linear of a module with a norm reads."""
    weight = module.layer_norm_weight + (1 if module.zero_centered_gamma else 0)
    if module.normalization == "RMSNorm":
        return F.rms_norm(x, weight.shape, weight, module.eps)
    return F.layer_norm(x, weight.shape, weight, module.layer_norm_bias, module.eps)


def layer_norm_linear(self, x, is_first_microbatch=None):
    return _with_bias(self, F.linear(normed(self, x), self.weight), self.bias)


def grouped_linear(self, x, m_splits, is_first_microbatch=None):
    parts = torch.split(x, m_splits if isinstance(m_splits, list) else m_splits.tolist())
    weights = [getattr(self, f"weight{number}") for number in range(self.num_gemms)]
    biases = [getattr(self, f"bias{number}") for number in range(self.num_gemms)]
    if not self.apply_bias:
        biases = [None] * self.num_gemms
    output = torch.cat([F.linear(*each) for each in zip(parts, weights, biases)])
    if not self.return_bias:
        return output
    return output, [getattr(self, f"bias{n}") for n in range(self.num_gemms)] if self.use_bias else None


def attention(
    self, query, key, value, *_, attn_mask_type=None, window_size=None, core_attention_bias=None, **__
):
    """Of tensors (token, batch, head, channel), each token seeing those before it."""
    kind = getattr(attn_mask_type, "name", attn_mask_type)
    assert kind in ("causal", None), kind
    repeat = query.shape[2] // key.shape[2]
    q, k, v = (t.permute(1, 2, 0, 3).float() for t in (query, key, value))
    k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    scale = self.softmax_scale or q.shape[-1] ** -0.5
    scores = q @ k.transpose(2, 3) * scale
    if core_attention_bias is not None:
        scores = scores + core_attention_bias
    away = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])
    hidden = away < 0
    window = self.window_size if window_size is None else window_size
    if window is not None and window[0] >= 0:
        hidden |= away > window[0]
    scores = scores.masked_fill(hidden, float("-inf"))
    if self.softmax_offset is not None:
        sinks = self.softmax_offset.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, sinks], -1)
    weights = scores.softmax(-1)[..., : k.shape[2]]
    return (weights @ v).permute(2, 0, 1, 3).flatten(2).to(query.dtype)


def gated_norm(self, x, z=None):
    """Of each group of channels on its own, behind the gate."""
    if z is not None:
        x = x * F.silu(z)
    groups = x.unflatten(-1, (-1, self.group_size))
    return F.rms_norm(groups, (self.group_size,), None, self.eps).flatten(-2) * self.weight


def selective_scan(zxbcdt, conv_weight, conv_bias, dt_bias, a, D, headdim, ngroups, **_):
    """Mamba 2's mixer between its two projections, token by token."""
    batch, length, width = zxbcdt.shape
    heads, inner = len(a), len(a) * headdim
    z, xbc, dt = zxbcdt.split([inner, width - inner - heads, heads], -1)
    padded = F.pad(xbc.transpose(1, 2), (conv_weight.shape[1] - 1, 0))
    xbc = F.conv1d(padded, conv_weight[:, None], conv_bias, groups=len(conv_weight))
    x, b, c = F.silu(xbc).transpose(1, 2).tensor_split([inner, (xbc.shape[1] + inner) // 2], -1)
    x = x.unflatten(-1, (heads, headdim))
    b, c = (
        part.unflatten(-1, (ngroups, -1)).repeat_interleave(heads // ngroups, 2) for part in (b, c)
    )
    dt = F.softplus(dt + dt_bias)
    state, outputs = torch.zeros(batch, heads, headdim, b.shape[-1]), []
    for t in range(length):
        step = dt[:, t, :, None]
        state = state * torch.exp(step * a[:, None])[..., None] + torch.einsum(
            "bhp,bhn->bhpn", x[:, t] * step, b[:, t]
        )
        outputs.append(torch.einsum("bhpn,bhn->bhp", state, c[:, t]) + x[:, t] * D[:, None])
    return torch.stack(outputs, 1).flatten(2) * F.silu(z)


def l2norm(x, dim=-1, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).sum(dim, keepdim=True) + eps)


def install():
    Linear.forward = linear
    LayerNormLinear.forward = layer_norm_linear
    GroupedLinear.forward = grouped_linear
    DotProductAttention.forward = attention
    gpu_modules.GatedNorm.forward = gated_norm
    scans = sys.modules["mamba_ssm.ops.triton.ssd_combined"]
    scans.mamba_split_conv1d_scan_combined = selective_scan
    sys.modules["fla.modules.l2norm"].l2norm = l2norm
