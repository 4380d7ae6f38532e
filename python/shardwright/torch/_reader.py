# SPDX-License-Identifier: Apache-2.0
"""Reading for torch.distributed.checkpoint."""
import io
import os

import torch
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

from .. import _core
from .._arguments import text_or_none
from .._errors import Error, make
from .._naming import reader_options
from .._pickles import check_intact, check_plain
from .._reading import Checkpoint
from ._replicas import Group
from ._together import Together, check_size, is_together, mark_together


class StorageReader(_StorageReader):
    """Lets `dcp.load` read a checkpoint of any format.

    `dcp.load(state_dict, storage_reader=StorageReader(path))`. Exactly the boxes that a rank needs
    are read. Each load opens what lies at `path` then. Names are those that the checkpoint stores; of a model that Megatron knows also
    Megatron's own, of each layer or of the stack of all layers, see `shardwright.open`.

    With `names="hf"` or `names="megatron"` it is the model under those names, whatever the format:
    an FSDP2 job of transformers' modules loads a Megatron checkpoint, a Megatron job a Hugging Face
    model, each rank straight into its shards. `options` are those of `shardwright.open`.

    Values that are no tensors (learning rates, steps, RNG states) are pickles, and a pickle runs
    what it names. With `weights_only`, the default, those are unpickled that hold plain data of
    Python, numpy and torch, and classes of `torch.serialization.add_safe_globals`; others are
    refused (SW0224). `weights_only=False` unpickles everything, as torch's own reader does.

    With `locality` ranks read together what `.metadata` describes: of what several of them hold
    alike (replicas of HSDP and DDP) one reads it and the others receive it, if possible one in
    whose own file it lies, and a rank that fails makes all raise. `process_group` is then the one
    that `dcp.load` is given; with `no_dist=True`, and for other formats, each rank reads for
    itself.

    `replicas` is what `StorageWriter` has: where each of these ranks stored its own copy of a
    tensor, a rank takes the one of its place; else any, or the one that is stored for all.
    """

    def __init__(
        self,
        path,
        *,
        weights_only=True,
        as_=None,
        locality=False,
        process_group=None,
        replicas=None,
        names="stored",
        **options,
    ):
        text_or_none("as_", as_)
        reader_options(**options)  # what is misspelt is told here, not when something is loaded
        if locality and names != "stored":
            text = f"names={names!r}: ranks share out what is stored; pass locality=False"
            raise make("SW0900", text)
        if replicas is not None and names != "stored":
            text = f"names={names!r}: replicas are copies of what is stored; leave replicas out"
            raise make("SW0900", text)
        self._place = None if replicas is None else Group.of(replicas).place
        self._weights_only = weights_only
        self._as = as_
        self._locality = locality
        self._process_group = process_group
        self._report = None
        self._names = names
        self._options = options
        self.reset(os.fsdecode(path))

    def reset(self, checkpoint_id=None):
        if checkpoint_id is not None:
            self._path = os.fsdecode(checkpoint_id)
        self._checkpoint = None

    @property
    def last_load(self):
        """This rank's LoadReport of the last load with locality, or None."""
        return self._report

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
        self.reset()  # each load begins here, and there may be another checkpoint by now
        return _Metadata(self._open(), self._names == "stored")

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        self._open()

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        # Several plans come to the coordinator alone, and only where ranks load together.
        if self._locality and len(plans) > 1:
            return mark_together(plans, self._process_group)
        return plans

    def read_data(self, plan, planner):
        checkpoint = self._open()
        items = plan.items
        if is_together(plan):
            path = checkpoint.metadata()["path"]
            together = Together(path, self._process_group, self._pickled, self._own_name)
            items, self._report = together.read(plan, planner)
        for item in items:
            name = item.storage_index.fqn
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, self._pickle(checkpoint, name))
                continue
            own = self._own_name(name)
            name = own if own in checkpoint else name
            box = checkpoint.read_box(name, item.storage_offsets, item.lengths)
            target = planner.resolve_tensor(item).detach()
            check_size(name, target.size(), box.size())
            target.copy_(box)
            planner.commit_tensor(item, target)
        checkpoint.check_unchanged()  # what was read is of one state of it
        future = Future()
        future.set_result(None)
        return future

    def _own_name(self, name):
        return name if self._place is None else _core.replica_name(name, self._place)

    def _pickle(self, checkpoint, name):
        pickle = checkpoint.get_object(name)
        check_intact(pickle, f"{self._path}: object {name}")
        return self._pickled(pickle, name)

    def _pickled(self, pickle, name):
        if self._weights_only:
            check_plain(pickle, f"{self._path}: object {name}")
        return io.BytesIO(pickle)

    def _open(self):
        if self._checkpoint is None:
            self._checkpoint = Checkpoint(
                self._path, "pt", self._as, names=self._names, **self._options
            )
        return self._checkpoint


class _Metadata(Metadata):
    """What torch's loading knows of a checkpoint. Where names were in a nested state dict is read
    when it is asked for: `dcp.load` never does, and it is of the size of `.metadata`."""

    def __init__(self, checkpoint, is_stored):
        self._path = checkpoint.metadata()["path"]
        self._paths = None
        super().__init__(state_dict_metadata=_Described(checkpoint))
        self._may_be_nested = is_stored

    @property
    def planner_data(self):
        if self._may_be_nested:
            self._may_be_nested = False
            paths = _core.planner_paths(os.fsencode(self._path))
            self._paths = {name: tuple(path) for name, path in paths} or None
        return self._paths

    @planner_data.setter
    def planner_data(self, paths):
        self._paths = paths


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
