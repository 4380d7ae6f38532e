# SPDX-License-Identifier: Apache-2.0
"""What a rank has of a live Megatron model, by what the model itself says of it."""
import torch
from megatron.core import parallel_state
from megatron.core.dist_checkpointing.mapping import (
    ShardedTensor,
    ShardedTensorFactory,
    apply_factories,
    apply_factory_merges,
)

_EXTRA_STATE = "_extra_state"


def chunks_of(model):
    """The modules with `sharded_state_dict`, one for each virtual pipeline stage, out of what wraps
    them."""
    chunks = model if isinstance(model, (list, tuple)) else [model]
    return [_unwrapped(chunk) for chunk in chunks]


def local_tensors(chunk):
    """This rank's ShardedTensors, and what becomes some, by the names of the module's state dict.
    Extra states and other objects are left out: they are no weights."""
    group = parallel_state.get_data_parallel_group(with_context_parallel=True)
    state = chunk.sharded_state_dict(metadata={"dp_cp_group": group})
    kinds = (ShardedTensor, ShardedTensorFactory)
    return {
        name: value
        for name, value in state.items()
        if isinstance(value, kinds) and not name.endswith(_EXTRA_STATE)
    }


def is_weight(name, value):
    """Whether an entry of a module's state dict is a parameter or buffer."""
    return isinstance(value, torch.Tensor) and not name.endswith(_EXTRA_STATE)


def filled(chunk, read):
    """Name and new value of each tensor of the module's state dict; `read` gives those of a
    ShardedTensor. One at a time, so that no rank holds its weights twice."""
    for name, value in local_tensors(chunk).items():
        factories = {name: value} if isinstance(value, ShardedTensorFactory) else {}
        state = {name: value}
        apply_factories(state)
        loaded = {name: _each(state[name], read)}
        if factories:
            loaded = apply_factory_merges(loaded, factories)
        yield name, loaded[name]


def _each(value, read):
    if isinstance(value, ShardedTensor):
        return read(value)
    if isinstance(value, dict):
        return {key: _each(one, read) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each(one, read) for one in value]
    return value


def _unwrapped(module):
    while hasattr(module, "module"):
        module = module.module
    return module
