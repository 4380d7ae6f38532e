# SPDX-License-Identifier: Apache-2.0
"""Writing for torch.distributed.checkpoint."""
import dataclasses
import os
import shutil

from torch.distributed.checkpoint import DefaultSavePlanner, FileSystemWriter
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.planner import WriteItemType
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from .. import _core
from .._arguments import whole_number
from .._errors import Error, make
from .._local_path import local_path
from ._claim import Claim
from ._durable import make_durable
from ._items import ItemFile
from ._published import publish
from ._replicas import Copies, Group, are_told, tell
from ._saves import Saves


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

    `dcp.save(state_dict, storage_writer=StorageWriter(path))`. One file per rank is written, by
    `thread_count` threads (0: a share of the processors), into a hidden folder beside `path`, which
    the coordinator renames at the end; all ranks must see the same file system. Where `path` exists
    the save is refused (SW0107) unless `overwrite`, which replaces a checkpoint and nothing that is
    not known to be of one: see `--overwrite` of `shardwright convert`. Refused is also a save to a
    path to which another is under way (SW0107), and one where a piece has another shape than its
    metadata says (SW0405) or is a tensor that nobody could load (SW0409). One writer may save to
    several paths at a time, each `dcp.save` or `dcp.async_save` with its own `checkpoint_id`.

    Of tensors whose class has a `dequantize` of its own (FP8 weights of Transformer Engine) the
    values are stored.

    `replicas` names the ranks that this rank is a replica of, by a process group or a mesh of one
    dimension (`mesh["tp"]`, HSDP's `mesh["replicate"]`): what all of them hold alike is saved by
    each, as `NAME.__tp_replica_PLACE` with its place in the group, so that each finds it in its own
    file; see `StorageReader`. Tensors that they share out, and values that are no tensors, keep
    their names. torch's own reader finds such tensors by these names only;
    `shardwright convert` gives them their own again. None: every tensor once, as torch stores it.
    """

    def __init__(self, path, *, replicas=None, overwrite=False, thread_count=0):
        thread_count = whole_number("thread_count", thread_count)
        self._replicas = None if replicas is None else Group.of(replicas)
        self._replace = overwrite
        self._saves = Saves(_resolved(path))
        # What is left in the hidden folder by a save that failed is no checkpoint.
        super().__init__(
            self.path,
            single_file_per_rank=True,
            sync_files=True,
            thread_count=thread_count,
            overwrite=True,
        )

    def reset(self, checkpoint_id=None):
        self._saves.begin(_resolved(checkpoint_id) if checkpoint_id else None)
        super().reset()

    @property
    def checkpoint_id(self):
        return self._target

    @property
    def path(self):
        return self._saves.now.path

    @path.setter
    def path(self, hidden):
        pass  # torch's own, told what it was given

    @property
    def _target(self):
        return self._saves.now.target

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        super().set_up_storage_writer(is_coordinator, *args, **kwargs)
        if kwargs.get("use_collectives", True) is False:
            raise make("SW0900", f"{self._target}: use_collectives=False is not supported")
        if is_coordinator:
            self._refuse_existing()

    def prepare_local_plan(self, plan):
        return plan if self._replicas is None else tell(plan, self._replicas)

    def prepare_global_plan(self, plans):
        save = self._saves.now
        save.copies = Copies(plans) if are_told(plans) else None
        # The folder is the coordinator's to make, before anyone writes: of two ranks one would find
        # what the other removes. And once nothing is left to be planned: of a plan that fails the
        # writer is not told, and would be in the way of the next.
        save.claim = Claim(save.path, save.target)
        if save.copies is None:
            return super().prepare_global_plan(plans)
        plain = [dataclasses.replace(plan, storage_data=None) for plan in plans]
        plain = super().prepare_global_plan(plain)
        return save.copies.plans([plan.storage_data.prefix for plan in plain])

    def write_data(self, plan, planner):
        self._follow()
        try:
            self._refuse_caching(planner)
            _check_pieces(plan, planner)
            return self._write_file(plan, planner)
        except BaseException as error:
            # Who fails removes the folder, and first what is in it.
            written = self._saves.now.file or self.path
            if isinstance(error, (OSError, Error)) and not os.path.exists(written):
                text = f"{self._target}: found its hidden folder removed by a rank that failed"
                raise make("SW0109", text + ", expected it while writing") from None
            self._clear_away()
            raise

    def _write_file(self, plan, planner):
        name = f"{plan.storage_data.prefix}0.distcp"
        items = sorted(plan.items, key=lambda item: item.type != WriteItemType.BYTE_IO)
        indices = [self._stored_index(item, plan) for item in items]
        values = [(index.fqn, planner.resolve_data(item)) for index, item in zip(indices, items)]
        file = ItemFile(self.path, name, values, self.thread_count)
        self._saves.now.file = file.path
        file.write()
        written = Future()
        written.set_result(
            [
                WriteResult(index, length, _StorageInfo(name, offset, length))
                for index, (offset, length) in zip(indices, file.places)
            ]
        )
        return written

    def _stored_index(self, item, plan):
        if self._replicas is None or item.index.fqn not in plan.storage_data.names:
            return item.index
        name = _core.replica_name(item.index.fqn, self._replicas.place)
        return dataclasses.replace(item.index, fqn=name)

    def _refuse_caching(self, planner):
        # Of a plan that is cached other ranks are told nothing.
        if self._replicas is not None and getattr(planner, "_enable_plan_caching", False):
            text = "found a planner with enable_plan_caching, expected one without"
            raise make("SW0900", f"{self._target}: replicas: {text}")

    def finish(self, metadata, results):
        self._follow()
        try:
            if self._saves.now.copies is not None:
                self._saves.now.copies.describe(metadata)
            super().finish(metadata, results)
            self._refuse_existing()
            make_durable(self.path)
            publish(self.path, self._target)
        except BaseException:
            self._clear_away()
            raise
        self._end_claim()

    def _follow(self):
        if self._saves.now.claim is not None:
            self._saves.now.claim.follow()

    def _clear_away(self):
        shutil.rmtree(self.path, ignore_errors=True)
        self._end_claim()

    def _end_claim(self):
        save = self._saves.now
        if save.claim is not None:
            save.claim.end()
        save.claim = None

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
        # torch may describe one without elements otherwise: as another rank's shape, or none.
        has_elements = found.numel() or told.numel()
        if found != told and has_elements:
            raise make(
                "SW0405",
                f"tensor {item.index.fqn}: found a piece of {tuple(found)} that the metadata calls "
                f"{tuple(told)}; torch describes uneven strided shards wrongly, see "
                "checkpoint_dtensor",
            )


def _resolved(path):
    """Where a save to `path` puts its folder: behind a link, which stays."""
    path = local_path(path)
    return path.resolve() if path.is_symlink() else path
