# SPDX-License-Identifier: Apache-2.0
"""Reading tensors of a checkpoint, whatever its format."""
import operator
import os
import warnings

from . import _core
from ._errors import UsageError


class _Numpy:
    """Makes numpy arrays."""

    @staticmethod
    def empty(shape, dtype):
        import numpy

        from ._dtypes import to_numpy

        return numpy.empty(shape, to_numpy(dtype))

    @staticmethod
    def bytes_of(array):
        import numpy

        return array.reshape(-1).view(numpy.uint8)


class _Torch:
    """Makes torch tensors; torch is imported with the first one."""

    @staticmethod
    def empty(shape, dtype):
        import torch

        return torch.empty(shape, dtype=getattr(torch, dtype))

    @staticmethod
    def bytes_of(tensor):
        import torch

        # numpy's view of the same memory: not every torch speaks DLPack with every numpy.
        return tensor.detach().reshape(-1).view(torch.uint8).numpy()


_FRAMEWORKS = {"np": _Numpy, "numpy": _Numpy, "pt": _Torch, "torch": _Torch, "pytorch": _Torch}


class Entry:
    """What is known of a stored tensor without reading it."""

    __slots__ = ("index", "name", "dtype", "safetensors_dtype", "itemsize", "shape")

    def __init__(self, index, name, dtype, safetensors_dtype, itemsize, shape):
        self.index = index
        self.name = name
        self.dtype = dtype
        self.safetensors_dtype = safetensors_dtype
        self.itemsize = itemsize
        self.shape = shape


class Checkpoint:
    """An open checkpoint; made by `shardwright.open`. May be used by several threads."""

    def __init__(self, path, framework="np"):
        if framework not in _FRAMEWORKS:
            names = ", ".join(sorted(_FRAMEWORKS))
            raise UsageError("SW0900", f"framework: found {framework!r}, expected one of {names}")
        self._framework = _FRAMEWORKS[framework]
        self._reader = _core.Reader(os.fspath(path))
        self._entries = {}
        for index, row in enumerate(self._reader.tensors()):
            self._entries[row[0]] = Entry(index, *row)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._reader = None

    def __len__(self):
        return len(self._entries)

    def __contains__(self, name):
        return name in self._entries

    def keys(self):
        return sorted(self._entries)

    def metadata(self):
        reader = self._open()
        facts = {"format": reader.container, "path": reader.path}
        if reader.iteration is not None:
            facts["iteration"] = str(reader.iteration)
        return facts

    def get_tensor(self, name):
        entry = self._entry(name)
        return self.read_box(name, (0,) * len(entry.shape), entry.shape)

    def get_slice(self, name):
        return Slice(self, self._entry(name))

    def read_box(self, name, origin, shape):
        entry = self._entry(name)
        target = self._framework.empty(tuple(shape), entry.dtype)
        self.read_into(name, origin, shape, self._framework.bytes_of(target))
        return target

    def read_into(self, name, origin, shape, buffer):
        notes = self._open().read(self._entry(name).index, list(origin), list(shape), buffer)
        for note in notes:
            warnings.warn(note, stacklevel=3)

    def shape_of(self, name):
        return self._entry(name).shape

    def dtype_of(self, name):
        return self._entry(name).dtype

    def _entry(self, name):
        try:
            return self._entries[name]
        except KeyError:
            raise UsageError("SW0900", f"tensor {name}: found no such name; see keys()") from None

    def _open(self):
        if self._reader is None:
            raise ValueError("the checkpoint is closed")
        return self._reader


class Slice:
    """A tensor that is read when it is indexed, and only what is asked for."""

    def __init__(self, checkpoint, entry):
        self._checkpoint = checkpoint
        self._entry = entry

    def get_shape(self):
        return list(self._entry.shape)

    def get_dtype(self):
        return self._entry.safetensors_dtype or self._entry.dtype

    def __getitem__(self, index):
        origin, extent, rest = _box_of(index, self._entry.shape)
        return self._checkpoint.read_box(self._entry.name, origin, extent)[rest]


def _box_of(index, shape):
    """The smallest box with what `index` asks for, and the index of that within the box."""
    parts = list(index) if isinstance(index, tuple) else [index]
    dots = [at for at, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index may hold one '...'")
    missing = len(shape) - (len(parts) - len(dots))
    if missing < 0:
        raise IndexError(f"{len(parts) - len(dots)} indices for {len(shape)} axes")
    at = dots[0] if dots else len(parts)
    parts[at : at + len(dots)] = [slice(None)] * missing
    origin, extent, rest = [], [], []
    for axis, (part, size) in enumerate(zip(parts, shape)):
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            if step < 0:
                raise IndexError(f"axis {axis}: found the step {step}, expected a positive one")
            count = len(range(start, stop, step))
            origin.append(start if count else 0)
            extent.append((count - 1) * step + 1 if count else 0)
            rest.append(slice(None, None, step))
            continue
        position = operator.index(part)
        if not -size <= position < size:
            raise IndexError(f"axis {axis}: {position} is outside its {size} elements")
        origin.append(position % size)
        extent.append(1)
        rest.append(0)
    return origin, extent, tuple(rest)
