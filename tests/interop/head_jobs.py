# SPDX-License-Identifier: Apache-2.0
"""What one rank of a critic's job does: a GPTModel whose output layer is a head of one row."""
import torch
from megatron.core import parallel_state

import checkpoints
import megatron_cpu


class Head(torch.nn.Linear):
    """As trainers of rewards and values have it: a plain linear, whole on every tensor rank."""

    def forward(self, input_, weight=None, runtime_gather_output=None):
        return super().forward(input_).float(), None


def build(config, bias, sizes):
    megatron_cpu.join(**sizes)
    hf = {**megatron_cpu.read_config(config), "tie_word_embeddings": False}
    model = megatron_cpu.build(hf, "te")
    if parallel_state.is_pipeline_last_stage():
        model.output_layer = Head(hf["hidden_size"], 1, bias=bias).bfloat16()
        model.output_layer.weight.data.fill_(-7.0)
    return model, hf


def value_of(key, shape):
    generator = torch.Generator().manual_seed(sum(key.encode()))
    return torch.randn(shape, generator=generator).bfloat16()


def truth_of(model):
    return {key: value_of(key, shape) for key, _, _, shape in megatron_cpu._pieces(model)}


def save(folder, config, layout, bias, sizes):
    model, hf = build(config, bias, sizes)
    megatron_cpu.fill(model, truth_of(model))
    write = megatron_cpu.save if layout == "torch_dist" else megatron_cpu.save_legacy
    write(model, folder, hf)


def load(folder, config, layout, bias, sizes):
    model, _ = build(config, bias, sizes)
    iteration = checkpoints.iteration_folder(folder) if layout == "torch_dist" else folder + "/iter_0000000"
    if layout == "torch_dist":
        megatron_cpu.load(model, iteration, "raise_all")
    else:
        megatron_cpu.load_legacy(model, iteration)
    assert megatron_cpu.assert_holds(model, truth_of(model)), "this rank holds nothing"
