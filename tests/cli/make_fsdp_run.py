#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what verl's ranks save of a Hugging Face model, with nothing but Python.

make_fsdp_run.py MODEL OUT [RANKS] cuts the tensors of MODEL/*.safetensors along their first axis,
as FSDP2 does, and pickles each rank's pieces as torch pickles DTensors. The recipes run on it where
there is no torch; tests/interop/test_fsdp_models.py has the real files.
"""
import collections
import io
import json
import pathlib
import pickle
import shutil
import sys
import types
import zipfile

STORAGES = {"BF16": ("BFloat16Storage", 2), "F32": ("FloatStorage", 4), "F16": ("HalfStorage", 2)}
DTYPES = {"BF16": "bfloat16", "F32": "float32", "F16": "float16"}


def stand_in(module, name, base=object):
    """A class that pickles as MODULE.NAME."""
    made = sys.modules.setdefault(module, types.ModuleType(module))
    if not hasattr(made, name):
        setattr(made, name, type(name, (base,), {"__module__": module, "__qualname__": name}))
    return getattr(made, name)


class Call:
    """Pickles as a call of a global."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


class Storage(collections.namedtuple("Storage", "kind key data count")):
    """The bytes of a tensor, a record of its own."""


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        return ("storage", stand_in("torch", value.kind), value.key, "cpu", value.count)


def made(kind, **attributes):
    value = kind.__new__(kind)
    value.__dict__.update(attributes)
    return value


def strides(shape):
    steps, step = [], 1
    for extent in reversed(shape):
        steps.insert(0, step)
        step *= extent
    return tuple(steps)


def dtensor(dtype, shape, local, mesh):
    dtensor_type = stand_in("torch.distributed.tensor", "DTensor")
    shard = made(stand_in("torch.distributed.tensor.placement_types", "Shard"), dim=0)
    spec = made(stand_in("torch.distributed.tensor._dtensor_spec", "DTensorSpec"),
                mesh=mesh, placements=(shard,))  # fmt: skip
    kind = stand_in("torch", DTYPES[dtype])
    wrapper = (dtensor_type, kind, tuple(shape), strides(shape), 0)
    return Call(stand_in("torch._tensor", "_rebuild_from_type_v2"),
                stand_in("torch._utils", "_rebuild_wrapper_subclass"), dtensor_type, wrapper,
                (None, {"_local_tensor": local, "_spec": spec}))  # fmt: skip


def tensors_of(model):
    for file in sorted(model.glob("*.safetensors")):
        data = file.read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8:begin]).items():
            if name != "__metadata__":
                at, end = entry["data_offsets"]
                yield name, entry["dtype"], entry["shape"], data[begin + at : begin + end]


def save_rank(model, out, rank, ranks):
    layout = made(stand_in("torch.distributed._mesh_layout", "_MeshLayout"),
                  shape=(ranks,), stride=(1,))  # fmt: skip
    mesh = made(stand_in("torch.distributed.device_mesh", "DeviceMesh"),
                _layout=layout, _coordinate_on_dim=(rank,))  # fmt: skip
    state, records = {}, []
    for name, dtype, shape, data in tensors_of(model):
        kind, size = STORAGES[dtype]
        rows = -(-shape[0] // ranks)
        first = min(rank * rows, shape[0])
        rows = min(rows, shape[0] - first)
        row = len(data) // shape[0]
        piece = data[first * row : (first + rows) * row]
        storage = Storage(kind, str(len(records)), piece, len(piece) // size)
        records.append(storage)
        local = (rows, *shape[1:])
        rebuilt = Call(stand_in("torch._utils", "_rebuild_tensor_v2"), storage, 0, local,
                       strides(local), False, collections.OrderedDict())  # fmt: skip
        state[name] = dtensor(dtype, shape, rebuilt, mesh)
    pickled = io.BytesIO()
    Pickler(pickled, protocol=2).dump(state)
    with zipfile.ZipFile(out / f"model_world_size_{ranks}_rank_{rank}.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickled.getvalue())
        archive.writestr("archive/byteorder", "little")
        for record in records:
            archive.writestr(f"archive/data/{record.key}", record.data)
        archive.writestr("archive/version", "3\n")


def main():
    model, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    ranks = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    (out / "huggingface").mkdir(parents=True)
    for rank in range(ranks):
        save_rank(model, out, rank, ranks)
    (out / "fsdp_config.json").write_text(json.dumps({"FSDP_version": 2, "world_size": ranks}))
    for file in model.glob("*.json"):
        if "index" not in file.name:
            shutil.copyfile(file, out / "huggingface" / file.name)


if __name__ == "__main__":
    main()
