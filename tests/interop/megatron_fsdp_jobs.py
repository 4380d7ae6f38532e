# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_megatron_fsdp.py do: Megatron-FSDP's own saves and loads, on CPUs."""
import os

import newer_jobs
import torch
import torch.distributed as dist
from newer_truth import STATES
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer
from megatron.training import checkpointing

MOMENTS = ("exp_avg", "exp_avg_sq")

# Meshes of GPUs are meshes of this job's ranks.
_init, _from_group = DeviceMesh.__init__, DeviceMesh.from_group


def _on_cpus(device):
    return "cpu" if device == "cuda" else device


DeviceMesh.__init__ = lambda mesh, device_type, *words, **options: _init(
    mesh, _on_cpus(device_type), *words, **options
)
DeviceMesh.from_group = staticmethod(
    lambda group, device_type, *words, **options: _from_group(group, _on_cpus(device_type), *words, **options)
)
torch.cuda.current_device = lambda: 0


def local_of(tensor):
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


class Run(newer_jobs.Run):
    """A model that Megatron-FSDP shards, whose weights are those of their names in torch_dist."""

    def build(self):
        return newer_jobs.build(
            self.args,
            hooks=[self.fill_weights],
            use_megatron_fsdp=True,
            data_parallel_sharding_strategy=self.args.data_parallel_sharding_strategy,
            megatron_fsdp_main_params_dtype=self.args.megatron_fsdp_main_params_dtype,
        )

    def fill_weights(self, models):
        with torch.no_grad():
            for piece, expected in self.pieces(models):
                piece.data.copy_(expected)
        return models

    def parameters(self):
        for optimizer in newer_jobs.leaves(self.optimizer):
            for group in optimizer.optimizer.param_groups:
                for parameter in group["params"]:
                    yield optimizer, parameter

    def make_states(self, functions):
        """Main weights and moments of what the weights are now; returns the weights."""
        weights = []
        with torch.no_grad():
            for optimizer, parameter in self.parameters():
                weight = local_of(parameter).float().bfloat16()
                weights.append(weight)
                local_of(parameter).copy_(functions["param"](weight))
                states = optimizer.optimizer.state[parameter]
                for name in MOMENTS:
                    states[name] = torch.zeros_like(parameter, dtype=torch.float32)
                    local_of(states[name]).copy_(functions[name](weight))
                states["step"] = torch.tensor(float(newer_jobs.ITERATION))
        return weights

    def check_states(self, weights):
        wrong = []
        for (optimizer, parameter), weight in zip(self.parameters(), weights):
            found = {"param": parameter, **optimizer.optimizer.state[parameter]}
            for name, function in STATES.items():
                if not torch.equal(local_of(found[name]), function(weight)):
                    wrong.append(f"{name} of {tuple(parameter.shape)}")
            if found["step"] != newer_jobs.ITERATION:
                wrong.append(f"step of {tuple(parameter.shape)}")
        assert not wrong and weights, f"{len(weights)} weights, of which differ: {wrong}"


def _zero_states(optimizer):
    for group in optimizer.optimizer.param_groups:
        for parameter in group["params"]:
            states = optimizer.optimizer.state[parameter]
            for name in MOMENTS:
                states[name] = torch.zeros_like(parameter, dtype=torch.float32)
            states["step"] = torch.tensor(0.0)


# Its own asks a fused Adam for a step.
DistributedOptimizer._init_optimizer_states_with_dummy_values = _zero_states


def save(words, folder):
    with newer_jobs.job():
        os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS")  # which Megatron-FSDP does not bear
        if dist.get_rank() == 0:
            os.makedirs(folder)
        dist.barrier()
        run = Run(words, folder)
        run.make_states(STATES)
        checkpointing.save_checkpoint(
            newer_jobs.ITERATION, run.wrapped, run.optimizer, newer_jobs.Schedule(), 0
        )


def load(words, folder):
    with newer_jobs.job():
        os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS")
        run = Run(words, folder)
        weights = run.make_states(STATES)
        run.make_states({name: lambda weight: weight * 0 - 5 for name in STATES})
        run.args.load, run.args.no_load_rng = folder, True
        run.args.strict_fsdp_dtensor_load = True
        iteration, _ = checkpointing.load_checkpoint(
            run.wrapped, run.optimizer, newer_jobs.Schedule()
        )
        assert iteration == newer_jobs.ITERATION
        run.check_states(weights)
