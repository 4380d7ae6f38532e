# SPDX-License-Identifier: Apache-2.0
"""Writes a `.metadata` file as torch.distributed.checkpoint and CPython's C pickler would.

No torch is needed: classes of the same modules and names with the same reductions give the same
opcodes. As in a real file, objects that came from different ranks are never the same object: the
name of a tensor is repeated for each rank, and so is the name of each rank's file.

    make_dcp_metadata.py OUT --tensors 1000 --chunks 1000 [--local-plans]
"""

import argparse
import enum
import pickle
import sys
import types

PLANNER = "torch.distributed.checkpoint.planner"
METADATA = "torch.distributed.checkpoint.metadata"
FILESYSTEM = "torch.distributed.checkpoint.filesystem"


def module(name):
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        path = ".".join(parts[:depth])
        sys.modules.setdefault(path, types.ModuleType(path))
        if depth > 1:
            setattr(sys.modules[".".join(parts[: depth - 1])], parts[depth - 1], sys.modules[path])
    return sys.modules[name]


def publish(value, name, module_name):
    value.__module__ = module_name
    value.__qualname__ = value.__name__ = name
    setattr(module(module_name), name, value)
    return value


def plain(name, module_name):
    def init(self, **attributes):
        self.__dict__.update(attributes)

    return publish(type(name, (), {"__init__": init}), name, module_name)


class Size(tuple):
    def __reduce__(self):
        return Size, (tuple(self),)


class DType:
    def __init__(self, name):
        self.name = name
        self.__module__ = "torch"
        setattr(module("torch"), name, self)

    def __reduce__(self):
        return self.name


def _get_layout(name):
    return name


class Layout:
    def __reduce__(self):
        return _get_layout, ("torch.strided",)


STRIDED = Layout()


class MemoryFormat(enum.Enum):
    TORCH_CONTIGUOUS_FORMAT = 0

    def __reduce_ex__(self, protocol):
        return MemoryFormat, (self.value,)


class ItemType(enum.Enum):
    SHARD = 2

    def __reduce_ex__(self, protocol):
        return ItemType, (self.value,)


publish(Size, "Size", "torch")
publish(_get_layout, "_get_layout", "torch.serialization")
publish(MemoryFormat, "_MEM_FORMAT_ENCODING", METADATA)
publish(ItemType, "WriteItemType", PLANNER)
Metadata = plain("Metadata", METADATA)
TensorStorageMetadata = plain("TensorStorageMetadata", METADATA)
ChunkStorageMetadata = plain("ChunkStorageMetadata", METADATA)
MetadataIndex = plain("MetadataIndex", METADATA)
StorageMeta = plain("StorageMeta", METADATA)
StorageInfo = plain("_StorageInfo", FILESYSTEM)
SavePlan = plain("SavePlan", PLANNER)
WriteItem = plain("WriteItem", PLANNER)
TensorWriteData = plain("TensorWriteData", PLANNER)


class TensorProperties:
    def __init__(self, dtype):
        self.dtype = dtype

    def __getstate__(self):
        return (self.dtype, STRIDED, False, MemoryFormat.TORCH_CONTIGUOUS_FORMAT, False)


publish(TensorProperties, "TensorProperties", METADATA)


def fresh(text):
    """An equal string that is another object, as unpickling another rank's plan gives it."""
    return "".join(list(text))


def tensor_name(number):
    return f"optimizer.state.exp_avg.decoder.layers.{number:07d}.weight"


def build(arguments):
    dtype = DType("bfloat16")
    rows, columns = 512, 4096
    tensors, storage, plans = {}, {}, []
    files = [f"__{rank}_0.distcp" for rank in range(arguments.chunks)]
    ends = [0] * arguments.chunks
    length = rows * columns * 2 + 1577
    rank_names = [fresh(tensor_name(0)) for _ in range(arguments.chunks)]
    items = [[] for _ in range(arguments.chunks)]
    for number in range(arguments.tensors):
        name = tensor_name(number)
        properties = TensorProperties(dtype)
        size = Size((rows * arguments.chunks, columns))
        chunks = []
        for rank in range(arguments.chunks):
            rank_names[rank] = fresh(name)
            chunks.append(
                ChunkStorageMetadata(
                    offsets=Size((rank * rows, 0)), sizes=Size((rows, columns))
                )
            )
            index = MetadataIndex(
                fqn=rank_names[rank], index=rank, offset=Size((rank * rows, 0))
            )
            storage[index] = StorageInfo(
                relative_path=files[rank], offset=ends[rank], length=length
            )
            ends[rank] += length
            if arguments.local_plans:
                data = TensorWriteData(chunk=chunks[-1], properties=properties, size=size)
                items[rank].append(
                    WriteItem(
                        index=MetadataIndex(
                            fqn=rank_names[rank], index=None, offset=Size((rank * rows, 0))
                        ),
                        type=ItemType.SHARD,
                        bytes_io_data=None,
                        tensor_data=data,
                    )
                )
        tensors[name] = TensorStorageMetadata(properties=properties, size=size, chunks=chunks)
    state = {"state_dict_metadata": tensors, "planner_data": None, "storage_data": storage}
    state["storage_meta"] = StorageMeta(
        checkpoint_id="/data/run", save_id="0" * 36, load_id=None, modules=[]
    )
    state["version"] = "1.0.0"
    if arguments.local_plans:
        plans = [SavePlan(items=item, storage_data=None, planner_data=None) for item in items]
        state["all_local_plans"] = plans
    return Metadata(**state)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--tensors", type=int, default=1000)
    parser.add_argument("--chunks", type=int, default=1000, help="of each tensor")
    parser.add_argument("--local-plans", action="store_true", help="as Megatron-Core adds them")
    arguments = parser.parse_args()
    metadata = build(arguments)
    with open(arguments.out, "wb") as file:
        pickle.dump(metadata, file, protocol=4)


if __name__ == "__main__":
    main()
