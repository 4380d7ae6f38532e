# SPDX-License-Identifier: Apache-2.0
"""For torch: plug-ins of torch.distributed.checkpoint, placements of DTensors."""
import io
import os
import pathlib
import shutil
import warnings

import torch
from torch.distributed.checkpoint import DefaultSavePlanner, FileSystemWriter
from torch.distributed.checkpoint import StorageReader as _StorageReader
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadItemType
from torch.futures import Future

from . import _core
from ._errors import Error, make
from ._pickles import check_intact, check_plain
from ._placing import (
    Placing,
    checkpoint_dtensor,
    checkpoint_meshes,
    checkpoint_tensors,
    local_from_checkpoint,
    placements_for,
)
from ._reading import Checkpoint

__all__ = [
    "Placing",
    "SavePlanner",
    "StorageReader",
    "StorageWriter",
    "checkpoint_dtensor",
    "checkpoint_meshes",
    "checkpoint_tensors",
    "local_from_checkpoint",
    "placements_for",
]


class StorageReader(_StorageReader):
    """Lets `dcp.load` read a checkpoint of any format.

    `dcp.load(state_dict, storage_reader=StorageReader(path))`. Exactly the boxes that a rank needs
    are read. Names are those that the checkpoint stores; of a model that Megatron knows also
    Megatron's own, of each layer or of the stack of all layers, see `shardwright.open`.

    Values that are no tensors (learning rates, steps, RNG states) are pickles, and a pickle runs
    what it names. With `weights_only`, the default, those are unpickled that hold plain data of
    Python, numpy and torch, and classes of `torch.serialization.add_safe_globals`; others are
    refused (SW0224). `weights_only=False` unpickles everything, as torch's own reader does.
    """

    def __init__(self, path, *, weights_only=True, as_=None):
        self._weights_only = weights_only
        self._as = as_
        self.reset(path)

    def reset(self, checkpoint_id=None):
        if checkpoint_id is not None:
            self._path = os.fsdecode(checkpoint_id)
            self._checkpoint = None

    @property
    def checkpoint_id(self):
        return self._path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        try:
            Checkpoint(checkpoint_id, "pt")
        except Error:
            return False
        return True

    def read_metadata(self, *args, **kwargs):
        return Metadata(state_dict_metadata=_Described(self._open()))

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        self._open()

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        return plans

    def read_data(self, plan, planner):
        checkpoint = self._open()
        for item in plan.items:
            name = item.storage_index.fqn
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, self._pickle(checkpoint, name))
                continue
            box = checkpoint.read_box(name, item.storage_offsets, item.lengths)
            target = planner.resolve_tensor(item).detach()
            if target.size() != box.size():
                raise make(
                    "SW0405",
                    f"{name}: found {tuple(target.size())}, expected {tuple(box.size())}; "
                    "the planner and the checkpoint disagree",
                )
            target.copy_(box)
            planner.commit_tensor(item, target)
        checkpoint.check_unchanged()  # what was read is of one state of it
        future = Future()
        future.set_result(None)
        return future

    def _pickle(self, checkpoint, name):
        pickle = checkpoint.get_object(name)
        where = f"{self._path}: object {name}"
        check_intact(pickle, where)
        if self._weights_only:
            check_plain(pickle, where)
        return io.BytesIO(pickle)

    def _open(self):
        if self._checkpoint is None:
            self._checkpoint = Checkpoint(self._path, "pt", self._as)
        return self._checkpoint


class _Described(dict):
    """What torch's planners know of a checkpoint, by name: lists what is stored, and has an entry
    for every other name that finds a tensor."""

    def __init__(self, checkpoint):
        super().__init__({name: BytesStorageMetadata() for name in checkpoint.object_keys()})
        self._checkpoint = checkpoint
        for name in checkpoint.keys():
            # A type that this torch lacks hinders nobody who doesn't ask for that tensor.
            if hasattr(torch, checkpoint.dtype_of(name)):
                self[name] = _described(checkpoint, name)

    def __contains__(self, name):
        return super().__contains__(name) or name in self._checkpoint

    def __missing__(self, name):
        if name not in self._checkpoint:
            raise KeyError(name)
        return _described(self._checkpoint, name)

    def get(self, name, default=None):
        return self[name] if name in self else default

    def __reduce__(self):
        return dict, (dict(self),)


def _described(checkpoint, name):
    # One chunk, whatever lies in how many files: any box of it can be read.
    shape, dtype = torch.Size(checkpoint.shape_of(name)), checkpoint.dtype_of(name)
    if not hasattr(torch, dtype):
        raise make("SW0409", f"tensor {name}: torch {torch.__version__} has no type {dtype}")
    return TensorStorageMetadata(
        properties=TensorProperties(dtype=getattr(torch, dtype)),
        size=shape,
        chunks=[ChunkStorageMetadata(offsets=torch.Size([0] * len(shape)), sizes=shape)],
    )


class SavePlanner(DefaultSavePlanner):
    """Tells which ranks disagree about a tensor's global shape, where torch's own planner would
    keep what it saw first or say that the plan is invalid (SW0405).

    `dcp.save(state_dict, storage_writer=StorageWriter(path), planner=SavePlanner())`.
    """

    def create_global_plan(self, all_plans):
        shapes = {}  # by tensor: a rank for each shape that is told
        for rank, plan in enumerate(all_plans):
            for item in plan.items:
                if item.tensor_data is not None:
                    told = shapes.setdefault(item.index.fqn, {})
                    told.setdefault(tuple(item.tensor_data.size), rank)
        for name, told in shapes.items():
            _core.check_agreed(name, [(rank, list(shape)) for shape, rank in told.items()])
        return super().create_global_plan(all_plans)


class StorageWriter(FileSystemWriter):
    """Lets `dcp.save` write a checkpoint that appears whole, synced to disk, or not at all.

    `dcp.save(state_dict, storage_writer=StorageWriter(path))`. One file per rank is written into a
    hidden folder beside `path`, which the coordinator renames at the end; all ranks must see the
    same file system. Where `path` exists the save is refused (SW0107) unless `overwrite`, which
    replaces a checkpoint and nothing that is not known to be of one: see `--overwrite` of
    `shardwright convert`. Refused is also a save where a piece has another shape than its metadata
    says (SW0405).
    """

    def __init__(self, path, *, overwrite=False, thread_count=1):
        self._replace = overwrite
        # What is left in the hidden folder by a save that failed is no checkpoint.
        super().__init__(
            _hidden(path),
            single_file_per_rank=True,
            sync_files=True,
            thread_count=thread_count,
            overwrite=True,
        )
        self._target = pathlib.Path(os.fsdecode(path))

    def reset(self, checkpoint_id=None):
        if checkpoint_id:
            self._target = pathlib.Path(os.fsdecode(checkpoint_id))
        super().reset(_hidden(self._target))

    @property
    def checkpoint_id(self):
        return self._target

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        super().set_up_storage_writer(is_coordinator, *args, **kwargs)
        if kwargs.get("use_collectives", True) is False:
            raise make("SW0900", f"{self._target}: use_collectives=False is not supported")
        if is_coordinator:
            self._refuse_existing()
            shutil.rmtree(self.path, ignore_errors=True)

    def write_data(self, plan, planner):
        try:
            _check_pieces(plan, planner)
            return super().write_data(plan, planner)
        except BaseException as error:
            if isinstance(error, FileNotFoundError) and not self.path.exists():
                text = f"{self._target}: found its hidden folder removed by a rank that failed"
                raise make("SW0109", text + ", expected it while writing") from None
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def finish(self, metadata, results):
        try:
            super().finish(metadata, results)
            self._refuse_existing()
            _sync_folder(self.path)
            _publish(self.path, self._target)
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def storage_meta(self):
        # It would hold a path and a random number: the same state gives the same files.
        return None

    def _refuse_existing(self):
        if not os.path.lexists(self._target):
            return
        if not self._replace:
            raise make(
                "SW0107",
                f"{self._target}: found something there, expected nothing; pass overwrite=True or "
                "choose another path",
            )
        _core.check_replaceable(os.fsencode(self._target))


def _check_pieces(plan, planner):
    for item in plan.items:
        if item.tensor_data is None:
            continue
        found, told = planner.resolve_data(item).shape, item.tensor_data.chunk.sizes
        if found != told:
            raise make(
                "SW0405",
                f"tensor {item.index.fqn}: found a piece of {tuple(found)} that the metadata calls "
                f"{tuple(told)}; torch describes uneven strided shards wrongly, see "
                "checkpoint_dtensor",
            )


def _hidden(path):
    path = pathlib.Path(os.fsdecode(path))
    return path.parent / f".{path.name}.partial"


def _sync_folder(path):
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _publish(made, target):
    old = _free_name(target)
    if target.exists():
        target.rename(old)
    try:
        made.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    _sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)
    if old.exists():
        warnings.warn(f"what was replaced could not be removed: {old}; remove it", stacklevel=2)


def _free_name(target):
    """Where a replaced checkpoint is kept until the new one is in place; what a killed save left
    there goes."""
    for number in range(1000):
        old = target.parent / f".{target.name}.old{number or ''}"
        try:
            if old.exists():
                _core.check_replaceable(os.fsencode(old))
                shutil.rmtree(old, ignore_errors=True)
        except Error:
            continue
        if not os.path.lexists(old):
            return old
    raise make("SW0107", f"{target}: too many old copies lie beside it; remove .{target.name}.old*")
