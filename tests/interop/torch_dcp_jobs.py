# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_torch_dcp.py do: Megatron-LM's own save of a model that torch's FSDP2 shards, on CPUs."""
import os

import megatron_fsdp_jobs
import newer_jobs
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from newer_truth import STATES

from megatron.training import checkpointing


class Run(megatron_fsdp_jobs.Run):
    """The same model and states, sharded by torch."""

    def build(self):
        return newer_jobs.build(self.args, hooks=[self.fill_weights])


def save(words, folder):
    with newer_jobs.job():
        os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS")  # which FSDP2 does not bear
        if dist.get_rank() == 0:
            os.makedirs(folder)
        dist.barrier()
        run = Run(words, folder)
        run.make_states(STATES)
        checkpointing.save_checkpoint(
            newer_jobs.ITERATION, run.wrapped, run.optimizer, newer_jobs.Schedule(), 0
        )


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
