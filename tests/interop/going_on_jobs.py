# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_going_on.py do: training with Megatron-Core's dist_checkpointing alone, saved
and loaded by ours."""
import os
import pathlib

import gpu_modules

gpu_modules.install()

import checkpoints  # noqa: E402
import megatron_cpu  # noqa: E402
import megatron_optimizer  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from megatron.core import dist_checkpointing, parallel_state, tensor_parallel  # noqa: E402
from megatron.core.dist_checkpointing.mapping import ShardedObject  # noqa: E402
from megatron.core.distributed import (  # noqa: E402
    DistributedDataParallel,
    DistributedDataParallelConfig,
)
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer  # noqa: E402
from training_steps import Training, same  # noqa: E402

from shardwright.megatron import LoadStrategy, SaveStrategy, last_load, last_save  # noqa: E402

# family, layer spec, whether the optimizer is a distributed one
MODELS = {
    "gpt": ("llama3_4l", "local", True),
    "gpt_each": ("llama3_4l", "local", False),
    "moe": ("mixtral", "local", False),
    "moe_te": ("qwen3_moe", "te", True),
}


class Run:
    """A golden family's model, as a training script wraps it, at some sizes."""

    def __init__(self, model, sizes):
        family, spec, is_distributed = MODELS[model]
        self.computes = spec == "local"
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
        parallel_state.destroy_model_parallel()
        megatron_cpu.join(**sizes)
        hf = megatron_cpu.read_config(checkpoints.GOLDEN / "hf" / family / "hf")
        self.model = megatron_cpu.build(hf, spec)
        megatron_cpu.fill(self.model, checkpoints.truth(family))
        buckets = DistributedDataParallelConfig(
            grad_reduce_in_fp32=True, use_distributed_optimizer=is_distributed
        )
        wrapped = DistributedDataParallel(self.model.config, buckets, self.model)
        config = OptimizerConfig(
            optimizer="adam", lr=1e-3, bf16=True, params_dtype=torch.bfloat16, clip_grad=0.0,
            use_distributed_optimizer=is_distributed,
        )  # fmt: skip
        with megatron_optimizer.cuda_types():
            self.optimizer = get_megatron_optimizer(config, [wrapped])
        self.training = Training(wrapped, self.optimizer)
        self.training.follow(0)  # there are states

    def step(self, number):
        return (self.training.step if self.computes else self.training.follow)(number)

    def state(self, is_loading=False, rng=True):
        data = parallel_state.get_data_parallel_group(with_context_parallel=True)
        metadata = {"distrib_optim_sharding_type": "fully_reshardable", "dp_cp_group": data}
        model = self.model.sharded_state_dict(metadata=metadata)
        optimizer = self.optimizer.sharded_state_dict(model, is_loading, metadata=metadata)
        state = {"model": model, "optimizer": optimizer}
        if rng:
            own = {"torch": torch.get_rng_state(), "tracked": tracker().get_states()}
            world = dist.get_world_size()
            state["rng"] = ShardedObject("rng_state", own, (world,), (dist.get_rank(),))
        return state

    def load(self, folder, strategy=None, rng=True):
        # The distributed optimizer takes states as those of fused Adams are.
        torch.optim.Adam.__setstate__ = torch.optim.Optimizer.__setstate__
        state = self.state(is_loading=True, rng=rng)
        loaded = dist_checkpointing.load(state, folder, strategy)
        self.model.load_state_dict(loaded["model"], strict=False)
        self.optimizer.load_state_dict(loaded["optimizer"])
        if rng:
            torch.set_rng_state(loaded["rng"]["torch"])
            tracker().set_states(loaded["rng"]["tracked"])


def tracker():
    return tensor_parallel.get_cuda_rng_tracker()


def save(run, folder, strategy=None):
    if dist.get_rank() == 0:
        pathlib.Path(folder).mkdir(parents=True)
    dist.barrier()
    dist_checkpointing.save(run.state(), folder, strategy)
    return folder


@megatron_cpu.without_children
def go_on(root, model, sizes, others):
    """Two steps more, after a save and after a load of it; the same at other sizes, with gradients
    that do not hang on them."""
    run = Run(model, sizes)
    run.step(0)
    saved = save(run, f"{root}/saved", SaveStrategy())
    has_copies = sizes.get("tp", 1) > 1
    assert last_save().path == saved and (last_save().replicas > 0) == has_copies
    gone_on = [(run.step(number), run.training.everything()) for number in (1, 2)]
    run.training.spoil()
    run.load(saved, LoadStrategy())
    assert last_load().own_bytes > 0
    for number, (loss, everything) in zip((1, 2), gone_on):
        found = run.step(number), run.training.everything()
        assert found[0] == loss and same(found[1], everything), (number, found[0], loss)
    run.load(saved, LoadStrategy())
    run.training.follow(1)
    followed = save(run, f"{root}/followed")
    for other in others:
        run = Run(model, other)
        run.load(followed, rng=False)
        expected = run.training.everything()
        run.training.spoil()
        run.load(saved, LoadStrategy(), rng=False)
        assert not same(run.training.everything(), expected)
        run.training.follow(1)
        assert same(run.training.everything(), expected), other
