# SPDX-License-Identifier: Apache-2.0
"""Methods of Megatron-Core's classes that are replaced, and put back."""
from megatron.core.dist_checkpointing.strategies import fully_parallel


class Hooks:
    """Methods that were replaced, until `restore`."""

    def __init__(self):
        self._replaced = []

    def replace(self, owner, name, make):
        """Puts `make(method)` in the place of a method, its own or inherited."""
        self._replaced.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, make(getattr(owner, name)))

    def restore(self):
        while self._replaced:
            owner, name, method = self._replaced.pop()
            if method is None:
                delattr(owner, name)
            else:
                setattr(owner, name, method)


def balance_once():
    """Keeps Megatron's wrapper for fully parallel saves from sharing out what a SaveStrategy in it
    shares out itself, by the wrapper's group: afterwards nobody knows whose replica was whose."""
    owner = fully_parallel.FullyParallelSaveStrategyWrapper
    stock = owner.apply_saving_parallelization
    if getattr(stock, "knows_ours", False):
        return

    def apply_saving_parallelization(self, sharded_state_dict):
        from ._save import SaveStrategy

        if not isinstance(self.base_strategy, SaveStrategy):
            return stock(self, sharded_state_dict)
        if self.base_strategy.dp_group is None:
            self.base_strategy.dp_group = self.parallelization_group

    apply_saving_parallelization.knows_ours = True
    owner.apply_saving_parallelization = apply_saving_parallelization
