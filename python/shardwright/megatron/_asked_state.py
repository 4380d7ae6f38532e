# SPDX-License-Identifier: Apache-2.0
"""A sharded state dict as a list of what is wanted, and back."""
from collections import Counter

from megatron.core.dist_checkpointing.mapping import ShardedObject, ShardedTensor

from .. import _core
from .._errors import make
from .._loading import Wanted


class AskedState:
    """What a sharded state dict asks for; one load's. `where`: the checkpoint, for messages."""

    def __init__(self, where):
        self._where = where
        self._objects = []

    def wanted(self, catalog, state):
        """A list of Wanted. Tensors without memory get some on the CPU, as Megatron-Core gives
        them. Raises SW0404 for a name that is not stored, SW0405 for another global shape, SW0415
        for a tensor whose name is that of a copy of another."""
        self._check_names(catalog, state)
        wanted = []
        for leaf in _leaves(state):
            if isinstance(leaf, ShardedTensor):
                wanted.extend(self._tensor(catalog, leaf))
            elif isinstance(leaf, ShardedObject):
                wanted.append(self._object(catalog, leaf))
            else:
                found = type(leaf).__name__
                raise make(
                    "SW0900",
                    f"{self._where}: found a {found}, expected sharded tensors and objects",
                )
        return wanted

    def filled(self, state, done, unpickle):
        """The state dict with tensors and objects in place of what asked for them. `done`: the
        wanted objects, with their bytes; `unpickle(bytes, where)` makes the objects."""
        pickles = {one.row[1]: one.target.numpy().tobytes() for one in done}
        objects = {}
        for name, count in Counter(self._objects).items():
            where = f"{self._where}: object {name}"
            objects[name] = unpickle(pickles[name], where)
            if not isinstance(objects[name], list) or len(objects[name]) != count:
                raise make(
                    "SW0312",
                    f"{where}: expected a list of {count}, as Megatron-Core stores them",
                )
            objects[name] = iter(objects[name])

        def value_of(leaf):
            return leaf.data if isinstance(leaf, ShardedTensor) else next(objects[leaf.unique_key])

        return _replaced(state, value_of)

    def _check_names(self, catalog, state):
        # Where the model has tensors of both names, they are no copies of one another. But stored
        # under such names, one would be read for the other.
        asked = {leaf.key for leaf in _leaves(state) if isinstance(leaf, ShardedTensor)}
        for name in sorted(filter(_core.has_replica_mark, asked)):
            tensor = catalog.tensor_name(name)
            if tensor != name and tensor in asked and catalog.find(tensor) != catalog.find(name):
                raise make(
                    "SW0415",
                    f"{self._where}: tensor {name}: the model asks for it and for {tensor}, of "
                    "which a copy has that name; load with Megatron-Core's own strategy, and "
                    "rename it",
                )

    def _object(self, catalog, leaf):
        row = catalog.find_object(leaf.unique_key)
        if row is None:
            raise make(
                "SW0404",
                f"{self._where}: object {leaf.unique_key}: the model asks for it, and it is not "
                "stored",
            )
        self._objects.append(leaf.unique_key)
        return Wanted(row)

    def _tensor(self, catalog, leaf):
        row = catalog.find(leaf.key)
        if row is None:
            raise make(
                "SW0404",
                f"{self._where}: tensor {leaf.key}: the model asks for it, and it is not stored "
                "under that name or as a copy of it",
            )
        stored, asked = tuple(row[3]), tuple(leaf.global_shape)
        if len(stored) != len(asked) or (stored != asked and not leaf.allow_shape_mismatch):
            raise make(
                "SW0405",
                f"{self._where}: tensor {leaf.key}: found {stored}, expected {asked} of the model",
            )
        if leaf.data is None:
            leaf.init_data("cpu")
        leaf.data = leaf.data.detach()
        target = leaf.data[(None,) * leaf.prepend_axis_num]
        origin = tuple(leaf.global_offset)
        if stored != asked:
            leaf.data.zero_()  # what is not stored is padding
            extents = [max(0, min(s - o, n)) for s, o, n in zip(stored, origin, target.shape)]
            target = target[tuple(slice(0, extent) for extent in extents)]
        if target.numel():
            yield Wanted(row, origin, target)


def _leaves(state):
    if isinstance(state, dict):
        for value in state.values():
            yield from _leaves(value)
    elif isinstance(state, (list, tuple)):
        for value in state:
            yield from _leaves(value)
    else:
        yield state


def _replaced(state, value_of):
    if isinstance(state, dict):
        return {key: _replaced(value, value_of) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(_replaced(value, value_of) for value in state)
    return value_of(state)
