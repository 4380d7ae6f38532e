# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_modelopt.py do: they save a model whose linears ModelOpt has given quantizers.

ModelOpt has Megatron-Core store halves and experts apart (`singleton_local_shards`), and its values are
buffers of modules beside each weight. (modelopt/torch/quantization/plugins/megatron.py)
"""
import pathlib

import torch
from megatron.core.transformer.utils import make_sharded_tensors_for_checkpoint

import megatron_cpu
import megatron_worker


class Quantizer(torch.nn.Module):
    def __init__(self, **values):
        super().__init__()
        for name, value in values.items():
            self.register_buffer(name, value)


def linears(model):
    """Each linear that is quantised, with its name and its local weight."""
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        if "linear_" in name.rsplit(".", 1)[-1] and weight is not None:
            yield name, module, weight


def add_quantizers(model, is_smoothed):
    """A scale for each row of a weight, which differs from rank to rank, and one for all inputs."""
    for _, module, weight in list(linears(model)):
        rows = weight.detach().abs().amax(1, keepdim=True)
        scales = dict(_pre_quant_scale=torch.full((weight.shape[1],), 0.5)) if is_smoothed else {}
        module.weight_quantizer = Quantizer(_amax=rows)
        module.input_quantizer = Quantizer(_amax=torch.tensor(2.5), **scales)


def sharded(model):
    state = megatron_cpu.sharded(model, singleton_local_shards=True)
    for name, module, _ in linears(model):
        values = {key: value for key, value in module.state_dict().items() if "_quantizer." in key}
        is_cut = name.endswith(("linear_qkv", "linear_fc1"))
        axes = {"weight_quantizer._amax": 0} if is_cut else {"input_quantizer._pre_quant_scale": 0}
        axes = {key: axis for key, axis in axes.items() if key in values}
        state.update(make_sharded_tensors_for_checkpoint(values, f"{name}.", axes, ()))
    return state


def save(family, folder, sizes, is_smoothed=False, is_quantised=True):
    """As torch_dist, and with a file for each rank."""
    model, hf, truth = megatron_worker.build(family, "te", sizes)
    megatron_cpu.fill(model, truth)
    if is_quantised:
        add_quantizers(model, is_smoothed)
    folder = pathlib.Path(folder)
    megatron_cpu.save(model, folder / "torch_dist", hf, model_state=sharded(model))
    megatron_cpu.save_legacy(model, folder / "legacy", hf)
