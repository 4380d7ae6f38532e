# SPDX-License-Identifier: Apache-2.0
"""What tensors are made of: numpy's arrays, torch's tensors, or memory that speaks DLPack."""
from . import _core
from ._errors import UsageError
from ._torch_memory import bytes_of


class _Numpy:
    """Makes numpy arrays."""

    def __init__(self, device):
        if device not in (None, "cpu"):
            raise UsageError("SW0900", f"device: {device!r} needs framework='pt'")

    def empty(self, shape, dtype, itemsize):
        import numpy

        from ._dtypes import to_numpy

        return numpy.empty(shape, to_numpy(dtype))

    def bytes_of(self, array):
        import numpy

        return array.reshape(-1).view(numpy.uint8)

    def finish(self, array):
        return array


class _Torch:
    """Makes torch tensors; torch is imported with the first one. Bytes are read on the CPU, and a
    tensor goes to its device when it is whole."""

    def __init__(self, device):
        self._device = device

    def empty(self, shape, dtype, itemsize):
        import torch

        return torch.empty(shape, dtype=getattr(torch, dtype))

    def bytes_of(self, tensor):
        # numpy's view of the same memory: not every torch speaks DLPack with every numpy.
        return bytes_of(tensor.detach()).numpy()

    def finish(self, tensor):
        return tensor if self._device is None else tensor.to(self._device)


class _DLPack:
    """Makes memory of the CPU with `__dlpack__`, of any dtype that DLPack has: bfloat16 too, which
    numpy can't hand on."""

    def __init__(self, device):
        if device not in (None, "cpu"):
            raise UsageError("SW0900", f"device: {device!r} needs framework='pt'")

    def empty(self, shape, dtype, itemsize):
        import numpy

        if dtype not in _DLPACK:
            raise TypeError(f"DLPack has no type for {dtype}; open the checkpoint with framework='pt'")
        return _Memory(numpy.empty(shape, f"V{itemsize}"), dtype)

    def bytes_of(self, memory):
        import numpy

        return memory.array.reshape(-1).view(numpy.uint8)

    def finish(self, memory):
        return memory.exported()


# Code and bits of torch's dtypes: DLDataTypeCode of dlpack.h.
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_DLPACK = {
    "bfloat16": (_BFLOAT, 16),
    "bool": (_BOOL, 8),
    **{f"int{bits}": (_INT, bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (_UINT, bits) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (_FLOAT, bits) for bits in (16, 32, 64)},
    **{f"complex{bits}": (_COMPLEX, bits) for bits in (64, 128)},
}


class _Memory:
    """Bytes with a shape, that are cut as an array is before they are handed on."""

    def __init__(self, array, dtype):
        self.array = array
        self._dtype = dtype

    def __getitem__(self, index):
        import numpy

        cut = numpy.ascontiguousarray(self.array[index]).reshape(self.array[index].shape)
        return _Memory(cut, self._dtype)

    def exported(self):
        import numpy

        code, bits = _DLPACK[self._dtype]
        flat = self.array.reshape(-1).view(numpy.uint8)
        return _core.dlpack(flat, list(self.array.shape), code, bits)


_FRAMEWORKS = {
    "np": _Numpy,
    "numpy": _Numpy,
    "pt": _Torch,
    "torch": _Torch,
    "pytorch": _Torch,
    "dlpack": _DLPack,
}


def framework_of(name, device):
    """The one of that name. Raises UsageError."""
    if name not in _FRAMEWORKS:
        names = ", ".join(sorted(_FRAMEWORKS))
        raise UsageError("SW0900", f"framework: {name!r} is none of {names}")
    return _FRAMEWORKS[name](device)
