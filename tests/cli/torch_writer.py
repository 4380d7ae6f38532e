# SPDX-License-Identifier: Apache-2.0
"""Writes files as torch.save does, with nothing but Python: torch's classes stand in the pickles by
name only."""
import collections
import io
import pickle
import sys
import types
import zipfile


def stand_in(module, name, base=object):
    """A class that pickles as `module.name`."""
    made = type(name, (base,), {"__module__": module})
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
    setattr(sys.modules[module], name, made)
    return made


Size = stand_in("torch", "Size", tuple)
Size.__reduce__ = lambda size: (Size, (tuple(size),))
FloatStorage = stand_in("torch", "FloatStorage")
Rebuild = stand_in("torch._utils", "_rebuild_tensor_v2")


class Tensor:
    """float32 elements, little-endian, in a storage of their own."""

    def __init__(self, data, shape):
        self.data, self.shape = data, tuple(shape)

    def __reduce__(self):
        strides, step = [], 1
        for extent in reversed(self.shape):
            strides.insert(0, step)
            step *= extent
        storage = Storage(self.data)
        return Rebuild, (storage, 0, self.shape, tuple(strides), False, collections.OrderedDict())


class Storage:
    def __init__(self, data):
        self.data = data


class TorchPickler(pickle.Pickler):
    def __init__(self, file):
        super().__init__(file, protocol=2)
        self.storages = []

    def persistent_id(self, obj):
        if not isinstance(obj, Storage):
            return None
        self.storages.append(obj.data)
        return "storage", FloatStorage, str(len(self.storages) - 1), "cpu", len(obj.data) // 4


def save(value, path):
    """As torch.save does since 1.6."""
    body = io.BytesIO()
    pickler = TorchPickler(body)
    pickler.dump(value)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", body.getvalue())
        archive.writestr("archive/byteorder", "little")
        for number, data in enumerate(pickler.storages):
            archive.writestr(f"archive/data/{number}", data)
        archive.writestr("archive/version", "3\n")
