# SPDX-License-Identifier: Apache-2.0
"""Reading of what ranks that load together asked torch's planner for."""
import dataclasses
import os

import torch.distributed as dist
from torch.distributed.checkpoint.planner import LoadItemType

from .._errors import make
from .._loading import Job, Loading, Wanted


class _Mark:
    """In a plan: all ranks of the group have one."""


def mark_together(plans, group):
    """The plans of all ranks of a group, so that each rank knows that there are others. Raises
    SW0900 where they are of another group."""
    found = dist.get_world_size(group)
    if found != len(plans):
        raise make(
            "SW0900",
            f"StorageReader: found a process group of {found} ranks, expected the {len(plans)} "
            "that load; give it the process_group of dcp.load",
        )
    return [dataclasses.replace(plan, storage_data=_Mark()) for plan in plans]


def is_together(plan):
    """Whether every rank of the group has such a plan."""
    return isinstance(plan.storage_data, _Mark)


class Together:
    """One load by all ranks of `group`. `unpickled(bytes, name)` makes what a planner takes for an
    object, `own_name(name)` is what this rank's copy of a tensor may be stored as."""

    def __init__(self, path, group, unpickled, own_name):
        self._path = path
        self._job = Job(group)
        self._group = group
        self._unpickled, self._own_name = unpickled, own_name

    def read(self, plan, planner):
        """Reads what `.metadata` has of the plan; gives the items that are left, whose names
        follow from others, and a LoadReport."""
        metadata = os.path.join(self._path, ".metadata")
        if not self._job.tell_first(lambda: os.path.isfile(metadata)):
            return plan.items, None
        self._tensors, self._objects, self._left = [], [], []
        loading = Loading(self._path, self._group, job=self._job)
        done, report = loading.run(lambda catalog: self._wanted(catalog, plan, planner))
        self._job.attempt(lambda: self._commit(done, planner))
        return self._left, report

    def _wanted(self, catalog, plan, planner):
        wanted = []
        for item in plan.items:
            name = item.storage_index.fqn
            if item.type == LoadItemType.BYTE_IO:
                row = catalog.find_object(name)
                if row is not None:
                    self._objects.append(item)
                    wanted.append(Wanted(row))
                    continue
            elif (row := catalog.find(self._own_name(name))) is not None:
                target = planner.resolve_tensor(item).detach()
                check_size(name, target.size(), item.lengths)
                self._tensors.append((item, target))
                if target.numel():
                    wanted.append(Wanted(row, tuple(item.storage_offsets), target))
                continue
            self._left.append(item)
        return wanted

    def _commit(self, done, planner):
        for item, target in self._tensors:
            planner.commit_tensor(item, target)
        for item, one in zip(self._objects, done):
            planner.load_bytes(item, self._unpickled(one.target.numpy().tobytes(), one.row[1]))


def check_size(name, found, expected):
    """Raises SW0405 where a planner gives memory of another shape than it asked for."""
    if tuple(found) != tuple(expected):
        raise make(
            "SW0405",
            f"{name}: found {tuple(found)}, expected {tuple(expected)}; the planner and the "
            "checkpoint disagree",
        )
