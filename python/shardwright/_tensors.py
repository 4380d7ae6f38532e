# SPDX-License-Identifier: Apache-2.0
"""The tensors of a checkpoint by their names: a layer's own, or the stack of all layers.

Megatron's torch_dist stacks layers along the first axis (`decoder.layers.mlp.linear_fc1.weight`),
everything else numbers them (`decoder.layers.7.mlp.linear_fc1.weight`). Either name finds either.
"""
from . import _core


class Stored:
    """A tensor as its reader has it."""

    __slots__ = ("_reader", "_index", "name", "dtype", "safetensors_dtype", "itemsize", "shape")

    def __init__(self, reader, index, name, dtype, safetensors_dtype, itemsize, shape):
        self._reader = reader
        self._index = index
        self.name = name
        self.dtype = dtype
        self.safetensors_dtype = safetensors_dtype
        self.itemsize = itemsize
        self.shape = shape

    def read(self, origin, shape, buffer):
        """Fills `buffer` with a box; gives what reading it had to say."""
        return self._reader.read(self._index, origin, shape, buffer)


class _Derived:
    """A tensor that is made of others of the same dtype."""

    __slots__ = ("name", "dtype", "safetensors_dtype", "itemsize", "shape")

    def __init__(self, name, of, shape):
        self.name = name
        self.dtype = of.dtype
        self.safetensors_dtype = of.safetensors_dtype
        self.itemsize = of.itemsize
        self.shape = shape


class Layer(_Derived):
    """One layer of a stored stack."""

    __slots__ = ("_stack", "_number")

    def __init__(self, name, stack, number):
        super().__init__(name, stack, stack.shape[1:])
        self._stack = stack
        self._number = number

    def read(self, origin, shape, buffer):
        return self._stack.read([self._number, *origin], [1, *shape], buffer)


class Stack(_Derived):
    """Layers that are stored one by one."""

    __slots__ = ("_layers",)

    def __init__(self, name, layers):
        super().__init__(name, layers[0], (len(layers), *layers[0].shape))
        self._layers = layers

    def read(self, origin, shape, buffer):
        if not (0 <= origin[0] and origin[0] + shape[0] <= len(self._layers)):
            raise IndexError(f"{self.name}: it has {len(self._layers)} layers")
        notes, each = [], len(buffer) // max(shape[0], 1)
        for at in range(shape[0]):
            part = buffer[at * each : (at + 1) * each]
            notes += self._layers[origin[0] + at].read(origin[1:], shape[1:], part)
        return notes


class Tensors:
    """All that a reader has, found by either name. `stacks`: whether its layers are a Megatron
    model's."""

    def __init__(self, reader, *, stacks):
        rows = reader.tensors() if reader is not None else []
        self._reader = reader
        self._stored = {row[0]: Stored(reader, at, *row) for at, row in enumerate(rows)}
        self._stacks = stacks
        self._by_place = None  # made when it is asked for
        self._numbered = None  # made when a stack is asked for

    def __len__(self):
        return len(self._stored)

    def names(self):
        return sorted(self._stored)

    def names_by_place(self):
        if self._by_place is None:
            names = list(self._stored)
            self._by_place = [names[at] for at in self._reader.order()]
        return list(self._by_place)

    def find(self, name):
        found = self._stored.get(name) or self._copy(name)
        if found is not None or not self._stacks:
            return found
        parts = _core.split_layer_name(name)
        if parts is None:
            return None
        stack, number, rest = parts
        if number is None:
            return self._stack_of(name, stack, rest)
        of = self._stored.get(f"{stack}.{rest}")
        if of is None or not of.shape or number >= of.shape[0]:
            return None
        return Layer(name, of, number)

    def _copy(self, name):
        """What one rank stored of a tensor, by the name that it is stored under."""
        found = self._reader.find(name) if self._reader is not None else None
        return Stored(self._reader, found[0], *found[1]) if found is not None else None

    def _stack_of(self, name, stack, rest):
        numbered = self._numbers()
        layers = numbered.get((stack, rest), {})
        # As torch_dist does: what some layers lack or have in other sizes is not stacked.
        if sorted(layers) != list(range(numbered.get(stack, 0))) or not layers:
            return None
        tensors = [layers[number] for number in sorted(layers)]
        if len({(tensor.dtype, tensor.shape) for tensor in tensors}) != 1:
            return None
        return Stack(name, tensors)

    def _numbers(self):
        """By stack and name within a layer: the tensors of each layer; by stack: how many."""
        if self._numbered is None:
            numbered = {}
            for name, tensor in self._stored.items():
                stack, number, rest = _core.split_layer_name(name) or (None, None, None)
                if number is not None:
                    numbered.setdefault((stack, rest), {})[number] = tensor
                    numbered[stack] = max(numbered.get(stack, 0), number + 1)
            self._numbered = numbered
        return self._numbered
