# SPDX-License-Identifier: Apache-2.0
"""Tensors of other classes than torch's own, as libraries of quantised training make them."""
import torch
from torch.utils._pytree import tree_map


class Float8Tensor(torch.Tensor):
    """As Transformer Engine's: FP8 numbers and a scale, that passes for a tensor of `dtype`."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, data, scale, dtype=torch.bfloat16):
        wrapper = torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=dtype)
        wrapper._data, wrapper._scale = data, scale
        return wrapper

    def __init__(self, *_):
        pass

    @classmethod
    def random(cls, *shape):
        return cls(torch.randn(shape).to(torch.float8_e4m3fn), torch.tensor(0.5))

    def dequantize(self, *, dtype=None):
        return (self._data.float() * self._scale).to(dtype or self.dtype)

    def detach(self):
        return type(self)(self._data, self._scale, self.dtype)

    def cpu(self):
        """It is on the CPU already: whoever calls this there gets it as it is."""
        return self

    def __reduce_ex__(self, protocol):
        return type(self), (self._data, self._scale, self.dtype)

    @classmethod
    def __torch_dispatch__(cls, function, types, args, kwargs=None):
        def plain(value):
            return value.dequantize(dtype=value.dtype) if isinstance(value, cls) else value

        return function(*tree_map(plain, args), **tree_map(plain, kwargs or {}))


class InheritedFloat8(Float8Tensor):
    """One whose class has no `dequantize` of its own, as those of later versions."""


class Wide(Float8Tensor):
    """One that gives values of another type than it passes for."""

    def dequantize(self, *, dtype=None):
        return super().dequantize(dtype=torch.float32)


class Elsewhere(torch.Tensor):
    """One that is dense once it is on the CPU."""

    def cpu(self):
        return self.as_subclass(torch.Tensor)


class Tagged(torch.Tensor):
    """A class that torch.load does not know; its numbers are plain."""


class OnlyHere(torch.Tensor):
    """One that can't be pickled at all."""

    def __reduce_ex__(self, protocol):
        raise RuntimeError("cannot be pickled")
