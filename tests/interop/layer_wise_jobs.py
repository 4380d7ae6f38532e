# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_layer_wise.py do: Megatron-Core's own LayerWiseDistributedOptimizer, which
gives each data-parallel rank whole parameters, over torch's Adam and one that keeps what Muon does."""
import pathlib
import zlib

import checkpoints
import megatron_cpu
import torch
import torch.distributed as dist
from megatron.core import optimizer as core
from megatron.core import parallel_state
from megatron.core.optimizer.layer_wise_optimizer import LayerWiseDistributedOptimizer
from megatron.core.process_groups_config import ProcessGroupCollection
from megatron_optimizer import OneMoment, cuda_types

ELSEWHERE = -7.0e30  # what stands for a parameter that is another rank's to train


def build(family, spec, sizes):
    megatron_cpu.join(**sizes)
    hf = megatron_cpu.read_config(checkpoints.GOLDEN / "hf" / family / "hf")
    return megatron_cpu.build(hf, spec), hf


def wrap(model, has_masters):
    """As get_megatron_muon_optimizer does: Muon's groups first, then Adam's."""
    config = core.OptimizerConfig(optimizer="adam", lr=1e-3, min_lr=1e-4, weight_decay=0.1, bf16=False)
    overrides = core.get_standard_config_overrides(config)
    tables = ("word_embeddings.weight", "output_layer.weight")
    matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and not n.endswith(tables)]
    others = [p for p in model.parameters() if not any(p is m for m in matrices)]
    made = []
    with cuda_types():
        for trained in (matrices, others):
            for parameter in model.parameters():
                parameter.requires_grad = any(parameter is each for each in trained)
            groups = core._get_param_groups([model], config, overrides)
            if trained is matrices:
                optimizer = OneMoment(groups, "momentum_buffer", momentum_beta=0.95)
            else:
                optimizer = torch.optim.AdamW(groups, lr=1e-3, weight_decay=0.1)
            # A bf16 run has them wrapped once they are shared out.
            made.append(optimizer if has_masters else core.FP32Optimizer(optimizer, config, lambda *_: None))
        for parameter in model.parameters():
            parameter.requires_grad = True
        config.bf16 = has_masters
        collection = ProcessGroupCollection.use_mpu_process_groups()
        return LayerWiseDistributedOptimizer(
            made, config, collection, init_state_fn_list=[lambda *_: None] * len(made)
        )


def trained_by(leaf):
    """(parameter of the model, what the optimizer trains) of each that is this rank's."""
    if hasattr(leaf, "float16_groups"):
        for models, masters in zip(leaf.float16_groups, leaf.fp32_from_float16_groups):
            yield from zip(models, masters)
        for group in leaf.fp32_from_fp32_groups:
            yield from zip(group, group)
    else:
        for group in leaf.optimizer.param_groups:
            yield from zip(group["params"], group["params"])


def step(model, optimizer):
    """One step with gradients that are the same on all tensor ranks for what they all have."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for leaf in optimizer.chained_optimizers:
        for parameter, master in trained_by(leaf):
            name = names[id(parameter)]
            is_everywhere = "norm" in name or "router" in name
            seed = zlib.crc32(name.encode()) + (0 if is_everywhere else dist.get_rank())
            generator = torch.Generator().manual_seed(seed)
            master.grad = torch.randn(master.shape, generator=generator)
        leaf.optimizer.step()
        if hasattr(leaf, "float16_groups"):
            leaf._copy_main_params_to_model_params()
    optimizer.broadcast_params()


def save(family, folder, spec, sizes, has_masters=True):
    """What save_checkpoint leaves behind with --ckpt-format torch, and what each rank trained."""
    model, hf = build(family, spec, sizes)
    megatron_cpu.fill(model, checkpoints.truth(family))
    if not has_masters:
        model.float()
    optimizer = wrap(model, has_masters)
    for _ in range(2):
        step(model, optimizer)
    folder = pathlib.Path(folder)
    file = megatron_cpu.rank_file(folder / "in" / "iter_0000010")
    file.parent.mkdir(parents=True, exist_ok=True)
    number = parallel_state.get_data_parallel_rank()
    optimizer.save_state_dict_to_file(str(file.parent / f"layer_wise_optimizer_{number}.pt"))
    said = {"optimizer": "dist_muon", "use_layer_wise_distributed_optimizer": True, "bf16": has_masters}
    if model.config.num_moe_experts:
        said["moe_ffn_hidden_size"] = model.config.moe_ffn_hidden_size
    if parallel_state.get_expert_data_parallel_rank() == 0:
        megatron_cpu.save_legacy(
            model, folder / "in", hf, optimizer=optimizer.state_dict(), more_arguments=said
        )
    else:
        dist.barrier()
    torch.save(states_of(model, optimizer), folder / f"truth_{dist.get_rank()}.pt")


def states_of(model, optimizer):
    """kind -> name of the parameter -> value, of those that this rank trains."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found = {}
    for leaf in optimizer.chained_optimizers:
        for parameter, master in trained_by(leaf):
            name = names[id(parameter)]
            values = {"master": master.detach(), **leaf.optimizer.state[master]}
            for kind, value in values.items():
                if kind != "step":
                    found.setdefault(kind, {})[name] = value.clone()
    return found


def check(family, folder, spec, sizes, made="out", has_masters=True):
    """The states of a torch_dist checkpoint are what the ranks trained, bit by bit, each in its place."""
    model, _ = build(family, spec, sizes)
    folder = pathlib.Path(folder)
    truth = torch.load(folder / f"truth_{dist.get_rank()}.pt", weights_only=True)
    stored = checkpoints.load_dcp(folder / made)
    kinds = {name.split(".")[2] for name in stored if name.startswith("optimizer.state.")}
    masters = kinds & {"param", "fp32_param"}
    assert len(masters) == has_masters and kinds - masters == {"momentum_buffer", "exp_avg", "exp_avg_sq"}, kinds
    compared = 0
    for kind, values in truth.items():
        for name, parameter in model.named_parameters():
            parameter.data = values.get(name, torch.full(parameter.shape, ELSEWHERE))
        prefix = "".join(masters) if kind == "master" else kind
        for key, data, place, _ in megatron_cpu._pieces(model):
            if data.numel() == 0 or bool((data == ELSEWHERE).all()):
                continue
            whole = stored[f"optimizer.state.{prefix}.{key}" if prefix else key]
            assert torch.equal(whole[place].reshape(data.shape), data), f"{kind} of {key} {place}"
            compared += 1
    told = [None] * dist.get_world_size()
    dist.all_gather_object(told, compared)
    assert sum(told) > 20, told
