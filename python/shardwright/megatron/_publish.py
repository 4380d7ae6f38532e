# SPDX-License-Identifier: Apache-2.0
"""The one step that makes files a checkpoint: `.metadata` appears. Rank 0's work."""
import contextlib
import os
import pathlib

from torch.distributed.checkpoint.filesystem import _StorageInfo

from .._errors import make
from ..torch._durable import make_durable
from ._common import COMMON, OBJECT
from ._exchange import pickled
from ._file_set import FileSet, unfinished
from ._in_flight import generation_of

_METADATA = ".metadata"
# What is said of a checkpoint's very files (`convert --digests`, `--sha256`, `--sign`).
_GUARDS = ("shardwright-digests.jsonl", "integrity.json", "model.sig")


class Publication:
    """A checkpoint whose files all ranks have written, until `appear`.

    `in_flight` says which of its folder's files are of other saves. `planner` is torch's; it checks
    that the pieces cover each tensor. `written`: what each rank tells of its file. `common`: what
    is to be in common.pt, None where Megatron-Core has written it itself, or stores it among the
    objects.
    """

    def __init__(self, folder, in_flight, planner, written, common=None):
        self._folder, self._files = folder, FileSet(folder)
        self._in_flight = in_flight
        plans, metadata = planner.create_global_plan([one.plan for one in written])
        metadata.storage_data = {}
        for one, plan in zip(written, plans):
            places = {_key(item): place for item, place in zip(one.plan.items, one.places)}
            for item in plan.items:
                info = _StorageInfo(one.file, *places[_key(item)])
                metadata.storage_data[item.index] = info
        self._used = {}  # by file: its bytes
        for info in metadata.storage_data.values():
            end = max(info.offset + info.length, self._used.get(info.relative_path, 0))
            self._used[info.relative_path] = end
        _sync_others(folder)
        self._files.add(_METADATA, pickled(metadata))
        if common is not None:
            self._files.add(COMMON, common)
        elif any(name.partition("/")[0] == OBJECT for name in metadata.state_dict_metadata):
            self._files.drop(COMMON)  # of an earlier version, which would be loaded instead

    @property
    def is_visible(self):
        return self._files.is_visible

    def appear(self):
        """The one step. Data files of what was there before go afterwards, their digests before:
        beside other files they would be wrong, and without them those are as whole as they were.
        Raises, with nothing removed, where a save that began later is there already (SW0107) or a
        file is not there whole (SW0101, SW0104)."""
        if self._in_flight.is_outdone:
            raise make(
                "SW0107",
                f"{self._folder}: found a checkpoint of a save that began later, expected the one "
                "before this save; it stays and this save is not published; publish a save before "
                "another to its folder begins, or give each a folder of its own",
            )
        for name, length in self._used.items():
            _check_file(os.path.join(self._folder, name), length)
        _forget_guards(self._folder)
        self._files.appear()
        self._in_flight.published()
        old = [name for name in os.listdir(self._folder) if self._in_flight.may_remove(name)]
        _remove(self._folder, [name for name in old if name not in self._used])


def clear_failed(folder, own, rank, generation):
    """Removes this rank's file of a save that failed; rank 0 removes those of all, for some rank
    may be dead. What can't be removed is in nobody's way."""
    names = [own, *unfinished((_METADATA, COMMON))] if rank == 0 else [own]
    if rank == 0:
        names += [name for name in os.listdir(folder) if generation_of(name) == generation]
    _remove(folder, names)


def _remove(folder, names):
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, name))


def _key(item):
    return item.index.fqn, item.index.offset


def _check_file(path, length):
    way_out = "another save or program changed it, nothing is published; save again"
    try:
        with open(path, "rb") as file:  # who only asks may be told of what was there before, by NFS
            found = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        text = f"{path}: found no such file, expected one of {length} bytes; {way_out}"
        raise make("SW0101", text) from None
    if found < length:
        raise make("SW0104", f"{path}: found {found} bytes, expected {length}; {way_out}")


def _forget_guards(folder):
    guards = [name for name in os.listdir(folder) if name in _GUARDS]
    for name in guards:
        os.unlink(os.path.join(folder, name))
    if guards:
        make_durable(folder)


def _sync_others(folder):
    """What Megatron itself wrote (common.pt) must be durable as well."""
    for path in pathlib.Path(folder).iterdir():
        if path.is_file() and generation_of(path.name) is None:
            make_durable(path)
