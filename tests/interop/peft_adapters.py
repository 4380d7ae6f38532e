# SPDX-License-Identifier: Apache-2.0
"""Adapters of the real PEFT, for tests of what becomes of them."""
import warnings

import peft
import torch
import transformers

import hf_models

warnings.simplefilter("ignore")

SEED = 7
# What three tensor ranks share out evenly.
LLAMA = dict(tie_word_embeddings=False, vocab_size=510, intermediate_size=120)
LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def train(model):
    """Values that all matter: B is zero in a new adapter."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if not tensor.requires_grad:
                continue
            noise = torch.randn(tensor.shape, generator=generator)
            if "magnitude" in name:
                tensor.mul_((1 + 0.2 * noise).to(tensor.dtype).abs())
            elif "lora" in name:
                tensor.copy_(0.3 * noise)
            else:
                tensor.add_((0.1 * noise).to(tensor.dtype))
    return model


def adapt(model, folder, **settings):
    config = peft.LoraConfig(**{"r": 4, "lora_alpha": 6, "target_modules": LINEARS, **settings})
    adapted = train(peft.get_peft_model(model, config))
    adapted.save_pretrained(folder)
    return adapted


def load(folder, dtype=torch.float32):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **hf_models.EAGER)


def by_peft(base, adapter, dtype=torch.float32, **settings):
    model = peft.PeftModel.from_pretrained(load(base, dtype), adapter, **settings)
    return model.merge_and_unload().state_dict()


def one_by_one(tensors):
    """Experts as the files have them, of parameters that hold all."""
    made = {}
    for name, tensor in tensors.items():
        module, _, last = name.rpartition(".")
        if last not in ("gate_up_proj", "down_proj"):
            made[name] = tensor
            continue
        for expert, matrix in enumerate(tensor):
            parts = {"down_proj": matrix} if last == "down_proj" else dict(zip(("gate_proj", "up_proj"), matrix.chunk(2)))
            made |= {f"{module}.{expert}.{part}.weight": rows for part, rows in parts.items()}
    return made


def steps_apart(got, expected):
    """The greatest number of float32 values between two tensors' elements."""

    def ordered(tensor):
        bits = tensor.contiguous().view(torch.int32).long()
        return torch.where(bits < 0, -(bits & 0x7FFFFFFF), bits)

    return (ordered(got) - ordered(expected)).abs().max().item()


def difference(got, expected):
    assert set(got) == set(expected), set(got) ^ set(expected)
    for name in expected:
        assert got[name].dtype == expected[name].dtype, name
    return max((got[name].double() - expected[name].double()).abs().max().item() for name in got)
