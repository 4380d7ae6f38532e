# SPDX-License-Identifier: Apache-2.0
"""Copies of a tensor that ranks hold alike, each under a name of its own in its rank's file."""
import dataclasses
from collections import Counter
from typing import NamedTuple, Tuple

import torch.distributed as dist
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import WriteItemType
from torch.distributed.device_mesh import DeviceMesh

from .. import _core
from .._errors import make


class Group(NamedTuple):
    """Ranks of the job, and this rank's place among them."""

    ranks: Tuple[int, ...]
    place: int

    @classmethod
    def of(cls, group):
        """Of a process group or a mesh of one dimension, or of this rank alone for None. Raises
        SW0900 for a mesh of several and for a group without this rank."""
        if isinstance(group, DeviceMesh):
            if group.ndim != 1:
                text = f"found a mesh of {group.ndim} dimensions, expected one of them: mesh['tp']"
                raise make("SW0900", f"replicas: {text}")
            group = group.get_group()
        if group == dist.GroupMember.NON_GROUP_MEMBER:
            text = "found a group that this rank is no member of, expected one with this rank"
            raise make("SW0900", f"replicas: {text}")
        if group is not None and not isinstance(group, dist.ProcessGroup):
            text = "expected a process group or a mesh of one dimension"
            raise TypeError(f"replicas: found {group!r}, {text}")
        own = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
        ranks = (own,) if group is None else tuple(dist.get_process_group_ranks(group))
        return cls(ranks, ranks.index(own))


class Copying(NamedTuple):
    """In a plan that torch's planner has made global: the rank's file, and of which tensors it
    saves its own copies."""

    prefix: str
    names: frozenset


class _Told(NamedTuple):
    """In a rank's own plan: all that it could save, and whom it is a replica of."""

    items: list
    group: Group


def tell(plan, group):
    """A rank's plan, from which `Copies` learns what the rank holds."""
    return dataclasses.replace(plan, storage_data=_Told(plan.items, group))


def are_told(plans):
    """Whether these are plans for `Copies`. Raises SW0900 where only some are."""
    told = [number for number, plan in enumerate(plans) if isinstance(plan.storage_data, _Told)]
    if told and len(told) < len(plans):
        other = next(number for number in range(len(plans)) if number not in told)
        text = f"rank {told[0]} of this save is given some, and rank {other} none"
        raise make("SW0900", f"replicas: {text}; give all ranks theirs")
    return bool(told)


class Copies:
    """Which tensors of a save are stored once by each rank of a replica group: those of which all
    ranks of every group hold the same pieces. `plans` are those of all ranks, as the planner left
    them, each from `tell`. Of ranks that stand at one place of several groups and hold the same
    piece, the one that has the least to write does. Raises SW0900 where the groups are not the
    same for all of their ranks."""

    def __init__(self, plans):
        told = [plan.storage_data for plan in plans]
        _check_groups([one.group for one in told])
        self._counts = _copied(told)  # by tensor: how many ranks have a copy
        check_names({item.index.fqn for one in told for item in one.items}, self._counts)
        self._plans = [self._without_copied(plan) for plan in plans]
        self._share(told)

    def plans(self, prefixes):
        """The plans of all ranks, with the copies. `prefixes`: of their files' names."""
        return [
            dataclasses.replace(
                plan,
                storage_data=Copying(
                    prefix,
                    frozenset(
                        item.index.fqn for item in plan.items if item.index.fqn in self._counts
                    ),
                ),
            )
            for plan, prefix in zip(self._plans, prefixes)
        ]

    def describe(self, metadata: Metadata):
        """Names every copy in the metadata that torch's planner has made."""
        described = {}
        for name, entry in metadata.state_dict_metadata.items():
            count = self._counts.get(name, 0)
            names = [_core.replica_name(name, place) for place in range(count)] or [name]
            described.update((one, entry) for one in names)
        metadata.state_dict_metadata = described

    def _without_copied(self, plan):
        left = [item for item in plan.items if item.index.fqn not in self._counts]
        return dataclasses.replace(plan, items=left)

    def _share(self, told):
        holders = {}  # by copy: who has it, as what
        for number, one in enumerate(told):
            for item in one.items:
                if item.index.fqn in self._counts:
                    key = item.index.fqn, tuple(item.index.offset), one.group.place
                    holders.setdefault(key, {}).setdefault(number, item)
        written = [sum(map(_bytes_of, plan.items)) for plan in self._plans]
        for key in sorted(holders):
            writer = min(holders[key], key=lambda number: (written[number], number))
            item = holders[key][writer]
            written[writer] += _bytes_of(item)
            self._plans[writer].items.append(item)


def _check_groups(groups):
    named = {}  # by group: the ranks that name it
    for one in groups:
        named.setdefault(one.ranks, set()).add(one.ranks[one.place])
    for ranks, own in named.items():
        silent = sorted(set(ranks) - own)
        if silent:
            raise make(
                "SW0900",
                f"replicas: rank {min(own)} is told the group {list(ranks)}, of which rank "
                f"{silent[0]} takes no part in this save or is told another; give all ranks of a "
                "group the same",
            )


def check_names(names, counts):
    """Raises SW0415 where one of the names in the state is that of a copy. `counts`: by tensor that
    has copies, how many."""
    for name, count in counts.items():
        for place in range(count):
            copy = _core.replica_name(name, place)
            if copy in names:
                text = f"tensor {copy}: the state has that name, which a copy of {name} gets"
                raise make("SW0415", f"{text}; rename it, or save without replicas")


def _copied(told):
    """By tensor, how many copies: of those that every group which holds them holds alike."""
    held = {}  # by group: how many of its ranks have a piece
    for one in told:
        pieces = {_piece(item) for item in one.items if _is_tensor(item)}
        held.setdefault(one.group.ranks, Counter()).update(pieces)
    counts, others = {}, set()
    for ranks, pieces in held.items():
        for piece, holders in pieces.items():
            name, count = piece[0], len(ranks)
            is_alike = holders == count and counts.setdefault(name, count) == count
            if not is_alike or count == 1 or _core.has_replica_mark(name):
                others.add(name)
    return {name: count for name, count in counts.items() if name not in others}


def _is_tensor(item):
    return item.type != WriteItemType.BYTE_IO


def _piece(item):
    data = item.tensor_data
    kind = tuple(data.chunk.sizes), tuple(data.size), data.properties.dtype
    return item.index.fqn, tuple(item.index.offset), kind


def _bytes_of(item):
    return item.tensor_storage_size() or 1
