# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_newer_megatron.py do: Megatron-LM's own save_checkpoint and load_checkpoint
of a later Megatron-Core, on a CPU."""
import argparse
import contextlib
import dataclasses
import logging
import multiprocessing
import os
import pathlib
import re
import sys
import typing
import warnings
from unittest import mock

import torch
import torch.distributed as dist
import torch.multiprocessing

import cpu_shims  # noqa: F401  patches torch.cuda before Megatron looks at it
import gpu_modules
from newer_cases import CASES, COMMON, LOADS
from newer_truth import STATES, weight_of

_fork = multiprocessing.get_context("fork")
multiprocessing.get_context = torch.multiprocessing.get_context = lambda *_: _fork
if not hasattr(typing, "override"):
    typing.override = lambda function: function
gpu_modules.install()
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from megatron.core import parallel_state, rerun_state_machine  # noqa: E402
from megatron.core.dist_checkpointing.dict_utils import nested_values  # noqa: E402
from megatron.core.dist_checkpointing.mapping import (  # noqa: E402
    ShardedTensor,
    apply_factories,
)
from megatron.core.distributed import DistributedDataParallelConfig  # noqa: E402
from megatron.core.models.common.language_module.language_module import LanguageModule  # noqa: E402
from megatron.core.num_microbatches_calculator import (  # noqa: E402
    destroy_num_microbatches_calculator,
    init_num_microbatches_calculator,
)
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer  # noqa: E402
from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer  # noqa: E402
from megatron.core.process_groups_config import ProcessGroupCollection  # noqa: E402
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed  # noqa: E402
from megatron.core.utils import unwrap_model  # noqa: E402
from megatron.training import arguments, checkpointing, global_vars  # noqa: E402
from megatron.training.models.gpt import GPTModelBuilder, GPTModelConfig  # noqa: E402
from megatron.training.models.hybrid import HybridModelBuilder, HybridModelConfig  # noqa: E402
from training_steps import leaves, states_of  # noqa: E402

ITERATION = 10
IDLE_HEAD = "output_layer.weight"
# What optimizers take for a tensor on a GPU.
GPU_TYPES = {
    torch.bfloat16: "torch.cuda.BFloat16Tensor",
    torch.float32: "torch.cuda.FloatTensor",
}


class Schedule:
    """A learning rate schedule that has nothing to say."""

    def state_dict(self):
        return {"num_steps": ITERATION}

    def load_state_dict(self, state):
        assert state["num_steps"] == ITERATION


@contextlib.contextmanager
def own_output_layer(model):
    """That of a tied model's last stage which nothing uses has a name; Megatron has none for it."""
    name = "tie_embeddings_and_output_weights_state_dict"
    is_idle = getattr(model, "mtp_process", False) and not model.pre_process
    with mock.patch.object(LanguageModule, name) if is_idle else contextlib.nullcontext():
        yield


class Run:
    """A model and its optimizer, as a training script makes them of its arguments."""

    idle_head = IDLE_HEAD  # whose values it has

    def __init__(self, words, folder):
        self.args = parse(words, folder)
        sizes = self.args
        parallel_state.destroy_model_parallel()
        parallel_state.initialize_model_parallel(
            sizes.tensor_model_parallel_size,
            sizes.pipeline_model_parallel_size,
            sizes.virtual_pipeline_model_parallel_size,
            expert_model_parallel_size=sizes.expert_model_parallel_size,
            expert_tensor_parallel_size=sizes.expert_tensor_parallel_size,
        )
        model_parallel_cuda_manual_seed(1)
        self.wrapped = self.build()
        self.models = unwrap_model(self.wrapped)
        names = [field.name for field in dataclasses.fields(OptimizerConfig)]
        known = {name: getattr(self.args, name) for name in names if hasattr(self.args, name)}
        self.optimizer = None
        if not self.args.no_save_optim:
            self.optimizer = get_megatron_optimizer(OptimizerConfig(**known), self.wrapped)

    def build(self):
        return build(self.args)

    def pieces(self, models=None):
        """(this rank's piece of a tensor, what it must hold)"""
        group = parallel_state.get_data_parallel_group(with_context_parallel=True)
        for model in self.models if models is None else models:
            with own_output_layer(model):
                state = model.sharded_state_dict(metadata={"dp_cp_group": group})
            apply_factories(state)
            for piece in nested_values(state):
                if not isinstance(piece, ShardedTensor) or piece.data is None:
                    continue
                extent = (1,) * piece.prepend_axis_num + tuple(piece.local_shape)
                place = tuple(slice(o, o + n) for o, n in zip(piece.global_offset, extent))
                is_idle = piece.key == IDLE_HEAD and not self.args.untie_embeddings_and_output_weights
                whole = weight_of(self.idle_head if is_idle else piece.key, piece.global_shape)
                yield piece, whole[place].reshape(piece.data.shape).to(piece.data.dtype)

    def states(self):
        """(a flat piece of a weight, its master weight or None, its other states)"""
        return states_of(self.optimizer)

    def fill(self):
        with torch.no_grad():
            for piece, expected in self.pieces():
                piece.data.copy_(expected)
        if self.optimizer is None:
            return
        for weight, master, states in self.states():
            if master is not None:
                master.data.copy_(STATES["param"](weight))
            for name in ("exp_avg", "exp_avg_sq"):
                states[name] = STATES[name](weight).clone()
        for optimizer in leaves(self.optimizer):
            for group in optimizer.optimizer.param_groups:
                group["step"] = ITERATION
            if not isinstance(optimizer, DistributedOptimizer):
                for states in optimizer.optimizer.state.values():
                    states["step"] = torch.tensor(float(ITERATION))

    def spoil(self):
        """Nothing of it is what a checkpoint has."""
        with torch.no_grad():
            for piece, _ in self.pieces():
                piece.data.fill_(-7.0)
        for weight, master, states in self.states():
            if master is not None:
                master.data.fill_(-5.0)
            for name in ("exp_avg", "exp_avg_sq"):
                states[name] = torch.full(weight.shape, -5.0)

    def check(self):
        """It holds what it was filled with; returns how many tensors and states that are."""
        wrong, pieces, states = [], 0, 0
        for piece, expected in self.pieces():
            pieces += 1
            if not torch.equal(piece.data, expected):
                wrong.append(piece.key)
        for weight, master, found in self.states() if self.optimizer else ():
            states += 1
            all_states = {**found, "param": STATES["param"](weight) if master is None else master}
            for name, function in STATES.items():
                if not torch.equal(all_states[name], function(weight)):
                    wrong.append(f"{name} of a weight of {tuple(weight.shape)}")
        assert not wrong, "differs: " + ", ".join(wrong)
        return pieces, states


def add_own_arguments(parser):
    parser.add_argument("--frozen")
    # What takes --disable-bias-linear back.
    parser.add_argument(
        "--biases", action="store_true", dest="add_bias_linear", default=argparse.SUPPRESS
    )
    # What takes --untie-embeddings-and-output-weights back.
    tying = dict(dest="untie_embeddings_and_output_weights", default=argparse.SUPPRESS)
    parser.add_argument("--tied", action="store_false", **tying)
    return parser


def parse(words, folder):
    """Megatron-LM's arguments of a command line."""
    sys.argv = ["train", *COMMON.split(), *words.split(), "--save", str(folder)]
    args = arguments.parse_args(add_own_arguments)
    args.rank, args.world_size = dist.get_rank(), dist.get_world_size()
    destroy_num_microbatches_calculator()
    arguments.validate_args(args)
    global_vars.set_args(args)
    init_num_microbatches_calculator(
        args.rank, None, args.global_batch_size, args.micro_batch_size, args.data_parallel_size
    )
    return args


def freeze(models, names):
    for model in models if names else ():
        for name, parameter in model.named_parameters():
            if re.search(names, name):
                parameter.requires_grad = False
    return models


def build(args, hooks=(), **wrapping):
    """The model's parts on this rank, each wrapped as for training; `hooks` get them before that."""
    config = arguments.core_transformer_config_from_args(args)
    shared = dict(
        transformer=config,
        vocab_size=512,
        seq_length=args.seq_length,
        share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
        position_embedding_type=args.position_embedding_type,
        pre_wrap_hooks=[lambda models: freeze(models, args.frozen), *hooks],
    )
    if args.hybrid_layer_pattern:
        builder = HybridModelBuilder(
            HybridModelConfig(hybrid_layer_pattern=args.hybrid_layer_pattern, **shared)
        )
    else:
        builder = GPTModelBuilder(GPTModelConfig(**shared))
    buckets = DistributedDataParallelConfig(
        grad_reduce_in_fp32=True,
        use_distributed_optimizer=args.use_distributed_optimizer,
        **wrapping,
    )
    groups = ProcessGroupCollection.use_mpu_process_groups()
    return builder.build_distributed_models(
        groups,
        ddp_config=buckets,
        data_parallel_random_init=False,
        use_megatron_fsdp=buckets.use_megatron_fsdp,
        use_torch_fsdp2=args.use_torch_fsdp2,
    )


@contextlib.contextmanager
def quiet_on_gpu():
    """Tensors say that they are on a GPU, Megatron-LM says nothing."""
    own_type, own_tensor = torch.Tensor.type, torch.tensor

    def type_of(tensor, *words, **options):
        if words or options:
            return own_type(tensor, *words, **options)
        return GPU_TYPES.get(tensor.dtype, own_type(tensor))

    torch.Tensor.type = type_of
    try:
        with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
            yield
    finally:
        torch.Tensor.type, torch.tensor = own_type, own_tensor


@contextlib.contextmanager
def job():
    """Ready for Megatron-LM; afterwards none of the saver's processes is left, whatever happened."""
    os.environ.update(
        RANK=str(dist.get_rank()),
        LOCAL_RANK=str(dist.get_rank()),
        WORLD_SIZE=str(dist.get_world_size()),
        CUDA_DEVICE_MAX_CONNECTIONS="1",
    )
    torch.set_num_threads(1)
    rerun_state_machine.initialize_rerun_state_machine(mode=rerun_state_machine.RerunMode.DISABLED)
    try:
        with quiet_on_gpu():
            yield
    finally:
        for child in multiprocessing.active_children():
            child.kill()


def save(root, cases=CASES):
    """Each case into a folder of its name."""
    with job():
        for name, words in cases.items():
            if dist.get_rank() == 0:
                os.makedirs(f"{root}/{name}")
            dist.barrier()
            run = Run(words, f"{root}/{name}")
            run.fill()
            checkpointing.save_checkpoint(ITERATION, run.wrapped, run.optimizer, Schedule(), 0)


def load(root, loads=LOADS):
    """Each converted checkpoint into a model of its target's layout, strictly."""
    # The distributed optimizer takes states as those of fused Adams are, without a step for each.
    torch.optim.Adam.__setstate__ = torch.optim.Optimizer.__setstate__
    with job():
        for name, (_, words) in loads.items():
            run = Run(words, root)
            run.idle_head = "embedding.word_embeddings.weight"  # as the files say
            run.spoil()
            run.args.load = f"{root}/{name}"
            # A torch_dist checkpoint says itself whether it has RNG states.
            run.args.no_load_rng = not any(pathlib.Path(run.args.load).glob("iter_*/.metadata"))
            # What 0.16 asks for of MTP layers is one key too many here; Megatron's default lets it be.
            has_mtp = getattr(run.args, "mtp_num_layers", None)
            run.args.dist_ckpt_strictness = "assume_ok_unexpected" if has_mtp else "raise_all"
            try:
                iteration, _ = checkpointing.load_checkpoint(run.wrapped, run.optimizer, Schedule())
                assert iteration == ITERATION, f"iteration {iteration}"
                pieces, states = run.check()
                assert pieces and states, "nothing was loaded"
            except Exception as problem:
                raise AssertionError(f"{name}: {problem}") from problem
