# SPDX-License-Identifier: Apache-2.0
"""The common state (`common.pt`): Megatron-Core writes it before it asks a strategy to save.

Over that of a checkpoint which lies in the same folder: were the save to fail then, the arguments
and the iteration of one would be left beside the tensors of another. A SaveStrategy holds it until
all appears. Later versions have it among the objects and no such step.
"""
import functools
import io
import os
import sys

import torch
import torch.distributed as dist
from megatron.core.dist_checkpointing import serialization
from megatron.core.dist_checkpointing.strategies import common
from megatron.core.dist_checkpointing.strategies.fully_parallel import (
    FullyParallelSaveStrategyWrapper,
)
from megatron.core.dist_checkpointing.strategies.torch import TorchDistSaveShardedStrategy

_MARK = "_shardwright_holds"
COMMON = common.COMMON_STATE_FNAME
OBJECT = "common_state"  # what later versions call it


def hold_common_once():
    """Lets Megatron-Core's save give the common state to a SaveStrategy that it will ask next, the
    caller's or one that stands in for Megatron's; for all others it writes it as ever."""
    owner = getattr(common, "TorchCommonSaveStrategy", serialization)
    stock = getattr(owner, "save_common", None)
    if stock is None or hasattr(stock, _MARK):
        return

    @functools.wraps(stock)
    def save_common(*arguments):
        state, folder = arguments[-2:]
        ours = _asked_next(sys._getframe(1), folder)
        if ours is None:
            return stock(*arguments)
        if dist.get_rank() == 0:
            contents = io.BytesIO()
            torch.save(state, contents)
            ours.hold_common(folder, contents.getvalue())

    setattr(save_common, _MARK, True)
    setattr(owner, "save_common", save_common)


def _asked_next(caller, folder):
    """The SaveStrategy that will save, None where it is not known to be one. The step is not told
    which strategy it is: only the function that calls it knows."""
    from ._enable import stand_in
    from ._save import SaveStrategy

    is_save = caller.f_globals is vars(serialization) and caller.f_code.co_name == "save"
    strategy = caller.f_locals.get("sharded_strategy") if is_save else None
    is_wrapped = type(strategy) is FullyParallelSaveStrategyWrapper
    asked = strategy.base_strategy if is_wrapped else strategy
    if type(asked) is SaveStrategy:
        return asked
    # Of somebody's own class nobody knows whether it comes to ours.
    is_stock = type(asked) is TorchDistSaveShardedStrategy
    return stand_in(strategy, os.fspath(folder)) if is_stock else None
