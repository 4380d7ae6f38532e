# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_deepspeed.py do: train a tiny model with DeepSpeed and save it."""
import argparse
import os
import pathlib
import sys

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import deepspeed.comm.torch
import torch
import torch.distributed as dist
import transformers
from deepspeed.accelerator import get_accelerator
from deepspeed.checkpoint import ds_to_universal
from deepspeed.utils import safe_get_full_optimizer_state
from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

# Its shared-memory collectives are compiled when they are first used; gloo is enough.
sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
# It refuses fp16 where the processor has no instructions for it; torch computes with it all the same.
get_accelerator().is_fp16_supported = lambda: True

VOCABULARY = 94


def build(tied, frozen):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=4, tie_word_embeddings=tied,
        architectures=["LlamaForCausalLM"],
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not (frozen and "layers.0." in name))
    return model, config


def optimizer_of(model):
    """AdamW of two groups, as every trainer has: with weight decay and without."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.dim() > 1], "weight_decay": 0.1},
        {"params": [p for p in trained if p.dim() == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=1e-3)


def train(model, stage, precision, zero):
    settings = {
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": stage, "sub_group_size": 3000, **zero},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        precision: {"enabled": True, **({"initial_scale_power": 4} if precision == "fp16" else {})},
    }
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=optimizer_of(model), config=settings
    )
    for step in range(2):
        generator = torch.Generator().manual_seed(step * 10 + dist.get_rank())
        ids = torch.randint(0, VOCABULARY, (1, 8), generator=generator)
        engine.backward(engine(input_ids=ids, labels=ids).loss)
        engine.step()
    return engine


def save(folder, stage, precision="bf16", tied=False, frozen=False, buffer=False, universal=False,
         zero=None, **options):  # fmt: skip
    """`folder/run` is the checkpoint, `folder/expected.pt` what DeepSpeed itself reads from it:
    the weights of zero_to_fp32 and Adam's states of each trained parameter."""
    os.environ["LOCAL_RANK"] = str(dist.get_rank())
    deepspeed.init_distributed("gloo")
    folder = pathlib.Path(folder)
    model, config = build(tied, frozen)
    if buffer:
        model.register_buffer("steps_seen", torch.arange(5, dtype=torch.float32))
    engine = train(model, stage, precision, zero or {})
    engine.save_checkpoint(folder / "run", **options)
    if stage < 3:  # it looked for torch's states before there were any
        engine.optimizer._hp_optimizer_states_linked = False
        engine.optimizer._lazy_init_hp_params_optimizer_state()
    expected = {
        f"optimizer.state.{kind}.{name}": safe_get_full_optimizer_state(parameter, kind)
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
        for kind in ("exp_avg", "exp_avg_sq")
    }
    if dist.get_rank() == 0:
        config.save_pretrained(folder / "run")
        weights = get_fp32_state_dict_from_zero_checkpoint(folder / "run")
        torch.save({"weights": weights, "states": expected}, folder / "expected.pt")
        if universal:
            make_universal(folder / "run")
    dist.barrier()


def save_without_zero(folder):
    """`folder/run`: what DeepSpeed keeps of a run whose optimizer is torch's own."""
    os.environ["LOCAL_RANK"] = str(dist.get_rank())
    deepspeed.init_distributed("gloo")
    model, config = build(tied=False, frozen=False)
    engine = train(model, 0, "fp16", {})
    engine.save_checkpoint(pathlib.Path(folder) / "run")
    config.save_pretrained(pathlib.Path(folder) / "run")


def make_universal(run):
    tag = (run / "latest").read_text()
    ds_to_universal.main(
        argparse.Namespace(
            input_folder=str(run / tag), output_folder=str(run.parent / "universal" / tag),
            num_extract_workers=1, num_merge_workers=1, keep_temp_folder=False, strict=True,
            inject_missing_state=True,
        )
    )  # fmt: skip
