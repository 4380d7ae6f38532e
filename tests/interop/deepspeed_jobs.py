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
from deepspeed.moe.layer import MoE
from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer
from deepspeed.pipe import LayerSpec, PipelineModule, TiedLayerSpec
from deepspeed.utils import safe_get_full_optimizer_state
from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

# Its shared-memory collectives are compiled when they are first used; gloo is enough.
sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
# It refuses fp16 where the processor has no instructions for it; torch computes with it all the same.
get_accelerator().is_fp16_supported = lambda: True


class AdamKernel:
    """What FusedAdam would compile when it is first used, which takes minutes on a slow machine."""

    @staticmethod
    def load():
        return AdamKernel

    @staticmethod
    def multi_tensor_adam(_chunk, _overflow, lists, lr, beta1, beta2, eps, step, _decoupled, _correction, decay):
        for gradient, parameter, average, square in zip(*lists):
            average.lerp_(gradient, 1 - beta1)
            square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            width = (square / (1 - beta2**step)).sqrt() + eps
            parameter.mul_(1 - lr * decay).addcdiv_(average, width, value=-lr / (1 - beta1**step))


deepspeed.ops.adam.fused_adam.FusedAdamBuilder = lambda: AdamKernel

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
    take_steps(engine)
    return engine


def take_steps(engine):
    for step in range(2):
        generator = torch.Generator().manual_seed(step * 10 + dist.get_rank())
        ids = torch.randint(0, VOCABULARY, (1, 8), generator=generator)
        engine.backward(engine(input_ids=ids, labels=ids).loss)
        engine.step()


def save_with_muon(folder):
    """DeepSpeed's own Muon for the matrices of layers, and its Adam for all else."""
    os.environ["LOCAL_RANK"] = str(dist.get_rank())
    deepspeed.init_distributed("gloo")
    folder = pathlib.Path(folder)
    model, config = build(tied=False, frozen=False)
    settings = {
        "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}, "bf16": {"enabled": True},
        "optimizer": {"type": "Muon", "params": {"lr": 1e-3}},
    }  # fmt: skip
    engine, *_ = deepspeed.initialize(
        model=model, model_parameters=list(model.parameters()), config=settings
    )
    take_steps(engine)
    engine.save_checkpoint(folder / "run")
    if dist.get_rank() == 0:
        config.save_pretrained(folder / "run")
        torch.save(get_fp32_state_dict_from_zero_checkpoint(folder / "run"), folder / "expected.pt")
    dist.barrier()


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


def save_tensor_parallel(folder, stage, frozen):
    """`folder/run` and `folder/universal`, of a model with buffers that two ranks share out by AutoTP."""
    os.environ["LOCAL_RANK"] = str(dist.get_rank())
    deepspeed.init_distributed("gloo")
    folder = pathlib.Path(folder)
    model, config = build(tied=False, frozen=frozen)
    model.register_buffer("real", torch.arange(5) + 0.1)
    model.register_buffer("whole", torch.arange(5))
    settings = {
        "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True},
        "zero_optimization": {"stage": stage}, "tensor_parallel": {"autotp_size": 2},
        "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
    }  # fmt: skip
    trained = [p for p in model.parameters() if p.requires_grad]
    engine, *_ = deepspeed.initialize(model=model, model_parameters=trained, config=settings)
    ids = torch.randint(0, VOCABULARY, (1, 8), generator=torch.Generator().manual_seed(0))
    engine.backward(engine(input_ids=ids, labels=ids).loss)
    engine.step()
    engine.save_checkpoint(folder / "run")
    if dist.get_rank() == 0:
        make_universal(folder / "run", strict=not frozen)
        config.save_pretrained(next((folder / "universal").iterdir()))
    dist.barrier()


class Experts(torch.nn.Module):
    """One of DeepSpeed's own layers of experts between an embedding and a head."""

    def __init__(self, width):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(VOCABULARY, width), torch.nn.Linear(width, VOCABULARY)
        self.layer = MoE(width, torch.nn.Linear(width, width), num_experts=4, ep_size=1)

    def forward(self, ids):
        return self.head(self.layer(self.embedding(ids))[0])


def save_experts(folder, stage):
    """`folder/run`, whose experts are in files of their own."""
    os.environ["LOCAL_RANK"] = str(dist.get_rank())
    deepspeed.init_distributed("gloo")
    torch.manual_seed(0)
    model = Experts(8)
    groups = split_params_into_different_moe_groups_for_optimizer(
        {"params": list(model.parameters()), "name": "all"}
    )
    settings = {
        "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True},
        "zero_optimization": {"stage": stage}, "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
    }  # fmt: skip
    engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(groups), config=settings)
    engine.backward(engine(torch.arange(8)[None]).float().pow(2).mean())
    engine.step()
    engine.save_checkpoint(pathlib.Path(folder) / "run")


class Block(torch.nn.Module):
    """A layer that keeps its width."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.linear = torch.nn.LayerNorm(width), torch.nn.Linear(width, width)
        self.register_buffer("seen", torch.arange(3.0))

    def forward(self, hidden):
        return hidden + self.linear(self.norm(hidden))


def to_vocabulary(embedding, hidden):
    return torch.nn.functional.linear(hidden, embedding.weight)


def save_pipeline(folder, stages, zero, tied):
    """`folder/run`, of a PipelineModule without tensor parallelism whose second layer is frozen;
    `folder/own{rank}.pt` has what a rank holds. With ZeRO also a universal checkpoint."""
    os.environ["LOCAL_RANK"] = str(dist.get_rank())
    deepspeed.init_distributed("gloo")
    torch.manual_seed(0)
    folder, width = pathlib.Path(folder), 8
    embedding = (torch.nn.Embedding, VOCABULARY, width)
    if tied:
        ends = [TiedLayerSpec("embed", *embedding),
                TiedLayerSpec("embed", *embedding, forward_fn=to_vocabulary)]  # fmt: skip
    else:
        ends = [LayerSpec(*embedding), LayerSpec(torch.nn.Linear, width, VOCABULARY)]
    layers = [ends[0], *(LayerSpec(Block, width) for _ in range(4)), ends[1]]
    model = PipelineModule(layers, num_stages=stages, loss_fn=pipeline_loss, partition_method="uniform")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith("1."))
    settings = {
        "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2,
        "bf16": {"enabled": True}, "zero_optimization": {"stage": zero},
        "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False,
    }  # fmt: skip
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer_of(model), config=settings)
    for _ in range(2):
        engine.train_batch(batches(8))
    engine.save_checkpoint(folder / "run")
    own = dict(engine.module.named_parameters()) | dict(engine.module.named_buffers())
    own = {name: tensor.detach().clone() for name, tensor in own.items()}
    torch.save(own, folder / f"own{dist.get_rank()}.pt")
    if dist.get_rank() == 0 and zero:
        make_universal(folder / "run")
    dist.barrier()


def pipeline_loss(found, expected):
    return torch.nn.functional.cross_entropy(found.float().view(-1, VOCABULARY), expected.view(-1))


def batches(length):
    generator = torch.Generator().manual_seed(1)
    while True:
        ids = torch.randint(0, VOCABULARY, (1, length), generator=generator)
        yield ids, ids


def make_universal(run, strict=True):
    tag = (run / "latest").read_text()
    ds_to_universal.main(
        argparse.Namespace(
            input_folder=str(run / tag), output_folder=str(run.parent / "universal" / tag),
            num_extract_workers=1, num_merge_workers=1, keep_temp_folder=False, strict=strict,
            inject_missing_state=True,
        )
    )  # fmt: skip


def save_lora(folder, stage):
    """`folder/run` has the adapter alone, `folder/peft` is what PEFT saves of it, `folder/base` the base."""
    import peft

    os.environ["LOCAL_RANK"] = str(dist.get_rank())
    deepspeed.init_distributed("gloo")
    folder = pathlib.Path(folder)
    model, config = build(False, False)
    if dist.get_rank() == 0:
        model.bfloat16().save_pretrained(folder / "base")
    dist.barrier()
    settings = peft.LoraConfig(r=4, lora_alpha=6, target_modules=["q_proj", "down_proj"], init_lora_weights=False)
    model = peft.get_peft_model(model, settings)
    engine = train(model, stage, "bf16", {})
    engine.save_checkpoint(folder / "run", exclude_frozen_parameters=True)
    parameters = [p for n, p in model.named_parameters() if "lora_" in n]
    with deepspeed.zero.GatheredParameters(parameters, enabled=stage == 3):
        if dist.get_rank() == 0:
            model.save_pretrained(folder / "peft")
    dist.barrier()
