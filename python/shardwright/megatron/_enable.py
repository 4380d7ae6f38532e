# SPDX-License-Identifier: Apache-2.0
"""The switch: Megatron's own classes save and load through ours."""
import contextlib
import weakref
from typing import NamedTuple

from megatron.core.dist_checkpointing.strategies import fully_parallel
from megatron.core.dist_checkpointing.strategies import torch as torch_dist

from ._background import take_threads
from ._common import hold_common_once
from ._hooks import Hooks
from ._load import LoadStrategy
from ._save import SaveStrategy


class _Switch(NamedTuple):
    """What is switched on."""

    hooks: Hooks
    replicas: bool
    async_save: bool
    ours: weakref.WeakKeyDictionary  # by Megatron's strategy or wrapper, what stands in for it


_on = None


def enable(replicas=True, locality=True, async_save=True):
    """From now on `torch_dist` checkpoints of `dist_checkpointing.save` and `load`, and so those of
    Megatron-LM's `save_checkpoint` and `load_checkpoint`, go through ours. All ranks must call it.

    `replicas` and what else changes on disk: see `SaveStrategy`. `locality`: loads go through
    `LoadStrategy`; without it, what was saved with `replicas` at TP > 1 does not load until
    `shardwright convert --tp-replicas collapse` has given it Megatron's names. `async_save`: saves
    that the job asks to be async are written in the background; False writes them at once.

    Other backends, strategies of one's own and multi-storage paths (msc://) stay as they are.
    Called again, it replaces what was switched on.
    """
    global _on
    disable()
    take_threads()
    hold_common_once()
    hooks = Hooks()
    _on = _Switch(hooks, replicas, async_save, weakref.WeakKeyDictionary())
    single, wrapper = (
        torch_dist.TorchDistSaveShardedStrategy,
        fully_parallel.FullyParallelSaveStrategyWrapper,
    )
    for owner in (single, wrapper):
        hooks.replace(owner, "save", _saving)
        hooks.replace(owner, "async_save", _async_saving)
    if locality:
        single, wrapper = (
            torch_dist.TorchDistLoadShardedStrategy,
            fully_parallel.FullyParallelLoadStrategyWrapper,
        )
        for owner in (single, wrapper):
            hooks.replace(owner, "load", _loading)
        # What `strict` holds against the names that the model asks for.
        described = LoadStrategy()
        for method in ("load_tensors_metadata", "load_sharded_metadata"):
            hooks.replace(single, method, _describing(getattr(described, method)))


def disable():
    """Megatron saves and loads as before `enable`. Async saves that were begun go on."""
    global _on
    if _on is not None:
        _on.hooks.restore()
        _on = None


@contextlib.contextmanager
def enabled(replicas=True, locality=True, async_save=True):
    """`enable` until the block ends; what was switched on before is not switched on again."""
    enable(replicas, locality, async_save)
    try:
        yield
    finally:
        disable()


def _saving(stock):
    def save(self, sharded_state_dict, checkpoint_dir):
        ours = stand_in(self, checkpoint_dir)
        return (ours.save if ours else stock.__get__(self))(sharded_state_dict, checkpoint_dir)

    return save


def _async_saving(stock):
    def async_save(self, sharded_state_dict, checkpoint_dir, *strategy):
        ours = stand_in(self, checkpoint_dir)
        if not ours:
            return stock(self, sharded_state_dict, checkpoint_dir, *strategy)
        request = ours.async_save(sharded_state_dict, checkpoint_dir, *strategy)
        if not _on.async_save:
            ours.wait()
        return request

    return async_save


def _loading(stock):
    def load(self, sharded_state_dict, checkpoint_dir, *rest, **options):
        base = getattr(self, "base_strategy", self)
        if not _is_taken(base, checkpoint_dir):
            return stock(self, sharded_state_dict, checkpoint_dir, *rest, **options)
        ours = LoadStrategy(getattr(self, "parallelization_group", None))
        return ours.load(sharded_state_dict, checkpoint_dir)

    return load


def _describing(ours):
    def replaced(stock):
        def describe(self, checkpoint_dir, *rest, **options):
            is_ours = _is_taken(self, checkpoint_dir)
            method = ours if is_ours else stock.__get__(self)
            return method(checkpoint_dir, *rest, **options)

        return describe

    return replaced


def _is_taken(strategy, checkpoint_dir):
    is_plain = type(strategy) is torch_dist.TorchDistLoadShardedStrategy
    return is_plain and not _is_remote(checkpoint_dir)


def stand_in(strategy, checkpoint_dir):
    """Ours for a strategy or wrapper of Megatron's; None where it must do its work itself, or
    nothing is switched on."""
    if _on is None:
        return None
    base = getattr(strategy, "base_strategy", strategy)
    if type(base) is not torch_dist.TorchDistSaveShardedStrategy:
        return None
    if base.separation_hint is not None or _is_remote(checkpoint_dir):
        return None
    if strategy not in _on.ours:
        group = getattr(strategy, "parallelization_group", None)
        _on.ours[strategy] = SaveStrategy(
            base.backend, base.version, replicas=_on.replicas, dp_group=group
        )
    return _on.ours[strategy]


def _is_remote(path):
    return str(path).startswith("msc://")
