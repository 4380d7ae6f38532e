# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_torch_dcp.py do: Megatron-LM's own save of a model that torch's FSDP2 shards, on CPUs."""
import os

import megatron_fsdp_jobs
import newer_jobs
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from newer_truth import STATES

from megatron.training import checkpointing


class Run(megatron_fsdp_jobs.Run):
    """The same model and states, sharded by torch."""

    def build(self):
        return newer_jobs.build(self.args, hooks=[self.fill_weights])


def save(words, folder, change=None):
    with newer_jobs.job():
        os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS")  # which FSDP2 does not bear
        if dist.get_rank() == 0:
            os.makedirs(folder)
        dist.barrier()
        run = Run(words, folder)
        run.make_states(STATES)
        if change:
            change(run)
        checkpointing.save_checkpoint(
            newer_jobs.ITERATION, run.wrapped, run.optimizer, newer_jobs.Schedule(), 0
        )


def save_exchanged(words, folder):
    """Two master weights of one shape are in each other's place."""
    save(words, folder, exchange_masters)


def exchange_masters(run):
    (optimizer,) = newer_jobs.leaves(run.optimizer)
    masters = optimizer.fp32_from_float16_groups[0]
    one, other = [master.to_local() for master in masters if tuple(master.shape) == (64, 64)][:2]
    with torch.no_grad():
        kept = one.clone()
        one.copy_(other)
        other.copy_(kept)


def save_one_group(words, folder):
    """Of a run that gives no parameters settings of their own, weight decay of vectors among them."""
    standard = newer_jobs.get_megatron_optimizer
    newer_jobs.get_megatron_optimizer = lambda config, models: standard(config, models, config_overrides={})
    save(words, folder, lambda run: assert_one_group(run.optimizer))


def assert_one_group(optimizer):
    (part,) = newer_jobs.leaves(optimizer)
    assert len(part.optimizer.param_groups) == 1


def save_by_names(words, folder):
    """As save_checkpoint of megatron_fsdp's second version does, whose weights are the main weights."""
    with newer_jobs.job():
        os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS")
        run = Run(words, folder)
        run.make_states(STATES)
        (model,) = run.models
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        weights, states, groups = {}, {}, []
        for optimizer in newer_jobs.leaves(run.optimizer):
            masters = {
                id(master): names[id(weight)]
                for halves, own in zip(optimizer.float16_groups, optimizer.fp32_from_float16_groups)
                for weight, master in zip(halves, own)
            }
            for group in optimizer.optimizer.param_groups:
                members = [masters[id(parameter)] for parameter in group["params"]]
                groups.append({**group, "params": members})
                for parameter, name in zip(group["params"], members):
                    weights[name], states[name] = parameter, optimizer.optimizer.state[parameter]
        optimizer = {"state": states, "param_groups": groups}
        dcp.save({"model": weights, "optimizer": optimizer}, checkpoint_id=folder)
