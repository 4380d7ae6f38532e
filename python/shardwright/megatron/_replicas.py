# SPDX-License-Identifier: Apache-2.0
"""Who writes which tensor: names of tensor ranks' copies, and bytes balanced over data ranks."""
from dataclasses import replace
from typing import NamedTuple, Tuple

from .. import _core
from ..torch._replicas import check_names


class Held(NamedTuple):
    """A tensor's piece that a rank holds."""

    key: str
    offset: Tuple[int, ...]
    replica_id: Tuple[int, ...]
    bytes: int

    @property
    def shard(self):
        return self.key, self.offset


def held_by(tensor):
    """What other ranks need to know of a ShardedTensor of Megatron-Core."""
    replica = tensor.replica_id
    count = tensor.dtype.itemsize
    for extent in tensor.local_shape:
        count *= extent
    return Held(
        tensor.key,
        tuple(tensor.global_offset),
        tuple(replica) if isinstance(replica, (tuple, list)) else (replica,),
        count,
    )


def find_replicated(held, place):
    """The shards that every tensor rank holds alike: those that the r-th holds with replica id
    (0, r, ...), where Megatron saves only that of (0, 0, ...). Names that say already whose copy it
    is stay. Raises SW0415 where the state has a name that a copy would get.

    `held` is what each rank of the tensor group holds, `place` which of them this rank is. One rank
    alone can't tell: its shard of a tensor that is cut has (0, 0, ...) as well.
    """
    if len(held) < 2:
        return set()
    by_rank = [{(one.shard, one.replica_id) for one in ranks} for ranks in held]
    replicated = {
        one.shard
        for one in held[place]
        if len(one.replica_id) > 2
        and not _core.has_replica_mark(one.key)
        and all(
            (one.shard, (0, rank, *one.replica_id[2:])) in known
            for rank, known in enumerate(by_rank)
        )
    }
    names = {one.key for ranks in held for one in ranks}
    check_names(names, {name: len(held) for name, _ in replicated})
    return replicated


def is_saved(one, replicated):
    """Whether a rank's copy is the one that is saved: of all copies, or of its tensor rank's."""
    counted = one.replica_id[2:] if one.shard in replicated else one.replica_id
    return not any(counted)


def choose_writers(told):
    """By shard, the place in the data group of the rank that writes it; only of shards that this
    group saves. Megatron-Core's own rule for fully parallel saves.

    `told` is what each rank of the group said, in the group's order: (shard, bytes, whether its
    copy is the one that is saved).
    """
    saved, holders, sizes = set(), {}, {}
    for place, shards in enumerate(told):
        for shard, size, is_main in shards:
            holders.setdefault(shard, []).append(place)
            sizes[shard] = size
            if is_main:
                saved.add(shard)
    shards = sorted(saved)
    chosen = _core.distribute_shards(
        [(key, list(offset), sizes[key, offset], holders[key, offset]) for key, offset in shards],
        len(told),
    )
    return dict(zip(shards, chosen))


def own_name(tensor, place):
    """The tensor under the name of a tensor rank, where each data rank counts its copies."""
    return replace(
        tensor,
        key=_core.replica_name(tensor.key, place),
        replica_id=(0, 0, *tuple(tensor.replica_id)[2:]),
    )
