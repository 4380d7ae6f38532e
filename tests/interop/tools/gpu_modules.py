# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for packages that compute on GPUs only, so that Megatron-Core 0.19's models of them can
be built, saved and loaded; none of them computes. `install` comes before Megatron is imported."""
import importlib.machinery
import sys
import types

import torch


class GatedNorm(torch.nn.Module):
    """The parameter of Mamba's gated norm."""

    def __init__(self, width, eps=1e-5, group_size=None, **_):
        super().__init__()
        self.eps, self.group_size = eps, group_size or width
        self.weight = torch.nn.Parameter(torch.ones(width))


def kernel(*_, state_dtype=None, **__):
    raise NotImplementedError("computes on GPUs only")


MODULES = {
    # Kernels in Triton, which Megatron imports whether or not it is there.
    "megatron.core.transformer.moe.ops.paged_stash": {
        "GLOBAL_BLOCK_SIZE": 1024,
        "paged_stash_copy_kernel": kernel,
        "paged_stash_pop_kernel": kernel,
    },
    "mamba_ssm.ops.triton.layernorm_gated": {"RMSNorm": GatedNorm},
    "mamba_ssm.ops.triton.ssd_combined": {
        "mamba_chunk_scan_combined": kernel,
        "mamba_split_conv1d_scan_combined": kernel,
    },
    "causal_conv1d.causal_conv1d_varlen": {"causal_conv1d_varlen_states": kernel},
    "causal_conv1d": {"causal_conv1d_fn": kernel},
    "fla.modules.convolution": {"causal_conv1d": kernel},
    "fla.modules.l2norm": {"l2norm": kernel},
    "fla.ops.gated_delta_rule": {"chunk_gated_delta_rule": kernel},
}


def install():
    for name, contents in MODULES.items():
        parts = name.split(".")
        is_megatron = parts[0] == "megatron"
        for depth in range(len(parts) if is_megatron else 1, len(parts) + 1):
            part = ".".join(parts[:depth])
            if part in sys.modules:
                continue
            module = types.ModuleType(part)
            module.__spec__ = importlib.machinery.ModuleSpec(part, None, is_package=True)
            module.__path__, module.__version__ = [], "9.0"
            sys.modules[part] = module
        vars(sys.modules[name]).update(contents)
