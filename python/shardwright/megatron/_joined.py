# SPDX-License-Identifier: Apache-2.0
"""What Megatron-Core puts together after a load, such as the two halves of a gated layer's weight.

It is asked for in parts that lie side by side in the model's memory, and was loaded there: a view
of them is the whole, where `torch.cat` would take new memory for a copy.
"""
import functools
import itertools

import torch
from torch.overrides import TorchFunctionMode

_MARK = "_shardwright_joins"
_loaded = []  # an entry for each load by ours whose tensors were not put together yet


def note_load():
    """What is put together next was loaded by ours."""
    _loaded[:] = [True]


def join_without_copies(serialization):
    """Lets Megatron-Core's load make views of what ours has loaded; other loads stay as they are.
    Of a Megatron-Core that has no such step nothing is asked."""
    stock = getattr(serialization, "apply_factory_merges", None)
    if stock is None or hasattr(stock, _MARK):
        return

    @functools.wraps(stock)
    def apply_factory_merges(*arguments, **named):
        if not _loaded:
            return stock(*arguments, **named)
        _loaded.clear()
        with _Joining():
            return stock(*arguments, **named)

    setattr(apply_factory_merges, _MARK, True)
    serialization.apply_factory_merges = apply_factory_merges


class _Joining(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        is_plain = function is torch.cat and len(args) == 1 and not kwargs
        whole = whole_of(args[0]) if is_plain else None
        return function(*args, **(kwargs or {})) if whole is None else whole


def whole_of(parts):
    """What `torch.cat(parts)` gives, without memory of its own; None where the parts don't lie one
    behind another in one tensor's memory."""
    if not parts or not all(_is_dense(part) for part in parts):
        return None
    first = parts[0]
    for one, other in itertools.pairwise(parts):
        is_next = (
            other.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()
            and other.storage_offset() == one.storage_offset() + one.numel()
        )
        is_alike = other.dtype == first.dtype and other.shape[1:] == first.shape[1:]
        if not (is_next and is_alike):
            return None
    shape = (sum(len(part) for part in parts), *first.shape[1:])
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return first.as_strided(shape, strides)


def _is_dense(part):
    return (
        type(part) is torch.Tensor
        and part.layout == torch.strided
        and part.dim() > 0
        and part.numel() > 0
        and part.is_contiguous()
        and not (part.requires_grad or part.is_conj() or part.is_neg())
    )
