# SPDX-License-Identifier: Apache-2.0
"""Megatron-Core's own Float16Optimizer over torch's AdamW and others, on a CPU."""
import contextlib

import torch
from megatron.core import optimizer as core
from megatron.core.optimizer.optimizer import (
    ChainedOptimizer,
    Float16OptimizerWithFloat16Params,
    FP32Optimizer,
)

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


class OneMoment(torch.optim.Optimizer):
    """Keeps one state of each parameter, under the name and with the settings of Lion or Muon."""

    def __init__(self, groups, state, **settings):
        self.name = state
        super().__init__(groups, dict(lr=1e-3, weight_decay=0.1, **settings))

    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                known = self.state[parameter].get(self.name, torch.zeros_like(parameter))
                self.state[parameter][self.name] = known * 0.9 + parameter.grad
                with torch.no_grad():
                    parameter -= group["lr"] * self.state[parameter][self.name].sign()


def build(model, kind="adam", bf16=True):
    """What get_megatron_optimizer makes without a distributed optimizer, for a bf16 model or one of float32."""
    name, momentum = ("sgd", float(kind == "sgd") * 0.9) if "sgd" in kind else ("adam", 0.9)
    config = core.OptimizerConfig(
        optimizer=name, lr=1e-3, min_lr=1e-4, weight_decay=0.1, bf16=bf16, sgd_momentum=momentum,
        apply_wd_to_qk_layernorm=kind == "qk_decay",
    )  # fmt: skip
    overrides = core.get_standard_config_overrides(config)
    if kind == "mup":  # as get_mup_config_overrides of Megatron-Core 0.19 makes them
        matrices = core.ParamKey(name="*linear_*.weight")
        overrides[matrices] = dict(max_lr=5e-4, min_lr=5e-5)

    def groups():
        return core._get_param_groups([model], config, overrides)

    def around(optimizer):
        if not bf16:
            return FP32Optimizer(optimizer, config, lambda *_: None)
        return Float16OptimizerWithFloat16Params(optimizer, config, None, lambda *_: None)

    with cuda_types():
        if kind == "lion":
            return around(OneMoment(groups(), "exp_avg", betas=(0.9, 0.99)))
        if kind not in ("muon", "lion_beside"):
            return core._get_megatron_optimizer_based_on_param_groups(config, [model], groups())
        # As Megatron-Core's own does: what the other one trains is frozen meanwhile.
        names = ("word_embeddings.weight", "output_layer.weight")
        matrices = [
            p for n, p in model.named_parameters() if p.dim() == 2 and not n.endswith(names)
        ]
        others = [p for p in model.parameters() if not any(p is m for m in matrices)]
        made = []
        for trained, frozen in ((matrices, others), (others, matrices)):
            for parameter in model.parameters():
                parameter.requires_grad = any(parameter is each for each in trained)
            if trained is others:
                made.append(core._get_megatron_optimizer_based_on_param_groups(config, [model], groups()))
            elif kind == "muon":
                made.append(around(OneMoment(groups(), "momentum_buffer", momentum_beta=0.95)))
            else:
                made.append(around(OneMoment(groups(), "exp_avg", betas=(0.9, 0.99))))
        if kind == "lion_beside":
            # Megatron-Core 0.19 writes into Adam's groups what they are.
            for group in made[1].param_groups:
                group["optimizer"] = "adam"
        for parameter in model.parameters():
            parameter.requires_grad = True
        return ChainedOptimizer(made)


def leaves(optimizer):
    return getattr(optimizer, "chained_optimizers", [optimizer])


def step(optimizer, seed):
    """One step with gradients that hang on the seed; the model gets the new weights."""
    generator = torch.Generator().manual_seed(seed)
    for leaf in leaves(optimizer):
        for group in leaf.fp32_from_float16_groups:
            for master in group:
                master.grad = torch.randn(master.shape, generator=generator)
        for group in leaf.optimizer.param_groups:
            group["lr"] = 1e-3
        leaf.optimizer.step()
        leaf._copy_main_params_to_model_params()


def tensors(optimizer):
    """Master weights and states by their place."""
    found = {}
    for part, leaf in enumerate(leaves(optimizer)):
        for g, group in enumerate(leaf.fp32_from_float16_groups):
            for i, master in enumerate(group):
                found[f"{part}.{g}.{i}.master"] = master.detach().clone()
                for name, value in leaf.optimizer.state[master].items():
                    if value is not None:
                        found[f"{part}.{g}.{i}.{name}"] = value.detach().clone()
    return found
