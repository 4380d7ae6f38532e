# SPDX-License-Identifier: Apache-2.0
import torch
from .base import resolve_device


class _Norm(torch.nn.Module):
    """te.pytorch.{LayerNorm,RMSNorm} are BasicOperation in TE >= 1.13: they own an (empty) _extra_state."""
    _has_bias = False

    def __init__(self, normalized_shape=None, eps=1e-5, sequence_parallel=None, params_dtype=None,
                 zero_centered_gamma=False, hidden_size=None, device=None, dtype=None, sm_margin=0):
        super().__init__()
        shape = normalized_shape if normalized_shape is not None else hidden_size
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        dtype = params_dtype or dtype or torch.get_default_dtype()
        device = resolve_device(device)
        self.eps, self.zero_centered_gamma, self.sequence_parallel = eps, zero_centered_gamma, sequence_parallel
        self.weight = torch.nn.Parameter(torch.empty(shape, dtype=dtype, device=device))
        if self._has_bias:
            self.bias = torch.nn.Parameter(torch.empty(shape, dtype=dtype, device=device))
        if device.type != "meta":
            self.reset_parameters()

    def reset_parameters(self, defer_init=None):
        with torch.no_grad():
            (torch.nn.init.zeros_ if self.zero_centered_gamma else torch.nn.init.ones_)(self.weight)
            if self._has_bias:
                torch.nn.init.zeros_(self.bias)
        if self.sequence_parallel is not None:
            self.weight.sequence_parallel = self.sequence_parallel
            if self._has_bias:
                self.bias.sequence_parallel = self.sequence_parallel

    def get_extra_state(self):
        return torch.empty(0, dtype=torch.uint8)

    def set_extra_state(self, state):
        return

    def forward(self, x):
        xf = x.float()
        w = self.weight.float() + (1 if self.zero_centered_gamma else 0)
        if self._has_bias:
            return torch.nn.functional.layer_norm(xf, self.weight.shape, w, self.bias.float(), self.eps).to(x.dtype)
        return (xf * torch.rsqrt(xf.pow(2).mean(-1, keepdim=True) + self.eps) * w).to(x.dtype)


class LayerNorm(_Norm):
    _has_bias = True
