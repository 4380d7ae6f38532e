# SPDX-License-Identifier: Apache-2.0
"""Megatron-Core's own Float16Optimizer over torch's AdamW, on a CPU."""
import contextlib

import torch
from megatron.core import optimizer as core

CUDA_TYPES = {
    torch.bfloat16: "torch.cuda.BFloat16Tensor",
    torch.float32: "torch.cuda.FloatTensor",
}


@contextlib.contextmanager
def cuda_types():
    """Lets tensors say that they are on a GPU: the optimizer takes no others."""
    own_type, own_tensor = torch.Tensor.type, torch.tensor

    def type_of(tensor, *arguments, **options):
        if arguments or options:
            return own_type(tensor, *arguments, **options)
        return CUDA_TYPES[tensor.dtype]

    def tensor_on_cpu(*arguments, device=None, **options):
        return own_tensor(*arguments, **options)

    torch.Tensor.type, torch.tensor = type_of, tensor_on_cpu
    try:
        yield
    finally:
        torch.Tensor.type, torch.tensor = own_type, own_tensor


def build(model):
    """What get_megatron_optimizer makes for a bf16 model without a distributed optimizer."""
    config = core.OptimizerConfig(
        optimizer="adam", lr=1e-3, min_lr=1e-4, weight_decay=0.1, bf16=True
    )
    with cuda_types():
        groups = core._get_param_groups([model], config, None)
        return core._get_megatron_optimizer_based_on_param_groups(config, [model], groups)


def step(optimizer, seed):
    """One step with gradients that hang on the seed; the model gets the new weights."""
    generator = torch.Generator().manual_seed(seed)
    for group in optimizer.fp32_from_float16_groups:
        for master in group:
            master.grad = torch.randn(master.shape, generator=generator)
    for group in optimizer.optimizer.param_groups:
        group["lr"] = 1e-3
    optimizer.optimizer.step()
    optimizer._copy_main_params_to_model_params()


def tensors(optimizer):
    """Master weights and states by their place."""
    found = {}
    for g, group in enumerate(optimizer.fp32_from_float16_groups):
        for i, master in enumerate(group):
            found[f"{g}.{i}.master"] = master.detach().clone()
            for name, value in optimizer.optimizer.state[master].items():
                found[f"{g}.{i}.{name}"] = value.detach().clone()
    return found
