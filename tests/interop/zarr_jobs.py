# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_zarr.py do: an older Megatron-Core saves with its zarr backend."""
import dataclasses

import numpy
import torch
from megatron.core import parallel_state
from megatron.core.dist_checkpointing.mapping import ShardedTensor, apply_factories
from megatron.core.dist_checkpointing.dict_utils import nested_values

import megatron_cpu
import megatron_worker
from newer_truth import STATES

numpy.product = numpy.prod  # that Megatron-Core is older than NumPy 2

# Its distributed optimizer calls the main weights otherwise.
OLDER_STATES = {"fp32_param" if name == "param" else name: state_of for name, state_of in STATES.items()}


def flattened_states(model):
    """This rank's share of each parameter's states, as a distributed optimizer with full sharding
    has them: its slice of the flattened tensor, of a length that the ranks need not have in common."""
    ranks = parallel_state.get_data_parallel_world_size()
    rank = parallel_state.get_data_parallel_rank()
    model_state = megatron_cpu.sharded(model)
    apply_factories(model_state)
    shares = []
    for piece in nested_values(model_state):
        if not isinstance(piece, ShardedTensor) or piece.key.endswith("_extra_state"):
            continue
        flat = piece.data.detach().flatten()
        first = flat.numel() // ranks + 1
        own = slice(0, first) if rank == 0 else slice(first, flat.numel())
        for name, state_of in OLDER_STATES.items():
            # Its data parallel ranks are no replicas of each other.
            share = dataclasses.replace(
                piece,
                key=f"optimizer.state.{name}.{piece.key}",
                data=state_of(flat[own]),
                dtype=torch.float32,
                flattened_range=own,
                replica_id=(*piece.replica_id[:-1], 0),
            )
            shares.append(share)
    return {"state": shares, "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.95), "step": 10}]}


def save(family, folder, sizes, with_states=False):
    model, hf, truth = megatron_worker.build(family, "te", sizes)
    megatron_cpu.fill(model, truth)
    others = {"optimizer": flattened_states(model)} if with_states else {}
    megatron_cpu.save(model, folder, hf, strategy=("zarr", 1), **others)
