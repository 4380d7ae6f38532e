# SPDX-License-Identifier: Apache-2.0
"""The one step that makes files a checkpoint: `.metadata` appears. Rank 0's work."""
import contextlib
import os
import pathlib
import re

from torch.distributed.checkpoint.filesystem import _StorageInfo

from .._errors import make
from ..torch._durable import make_durable
from ._common import COMMON, OBJECT
from ._exchange import pickled
from ._file_set import FileSet, unfinished

_METADATA = ".metadata"
_DATA = re.compile(r"__\d+_(\d+)\.distcp")
# What is said of a checkpoint's very files (`convert --digests`, `--sha256`, `--sign`).
_GUARDS = ("shardwright-digests.jsonl", "integrity.json", "model.sig")


def next_generation(folder):
    """A number that no data file of the folder has: a save never writes over one, be it of a
    checkpoint that is replaced or left by a save that failed."""
    if not os.path.isdir(folder):
        raise make("SW0101", f"{folder}: found no folder, expected the one to save to")
    return max(_generations(folder), default=-1) + 1


class Publication:
    """A checkpoint whose files all ranks have written, until `appear`.

    `planner` is torch's; it checks that the pieces cover each tensor. `written`: what each rank
    tells of its file. `common`: what is to be in common.pt, None where Megatron-Core has written it
    itself, or stores it among the objects.
    """

    def __init__(self, folder, planner, written, common=None):
        self._folder, self._files = folder, FileSet(folder)
        plans, metadata = planner.create_global_plan([one.plan for one in written])
        metadata.storage_data = {}
        for one, plan in zip(written, plans):
            places = {_key(item): place for item, place in zip(one.plan.items, one.places)}
            for item in plan.items:
                info = _StorageInfo(one.file, *places[_key(item)])
                metadata.storage_data[item.index] = info
        self._used = {info.relative_path for info in metadata.storage_data.values()}
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
        beside other files they would be wrong, and without them those are as whole as they were."""
        _forget_guards(self._folder)
        self._files.appear()
        old = [name for name in os.listdir(self._folder) if _DATA.fullmatch(name)]
        _remove(self._folder, [name for name in old if name not in self._used])


def clear_failed(folder, own, rank, generation):
    """Removes this rank's file of a save that failed; rank 0 removes those of all, for some rank
    may be dead. What can't be removed is in nobody's way."""
    names = [own, *unfinished((_METADATA, COMMON))] if rank == 0 else [own]
    if rank == 0:
        names += [name for name in os.listdir(folder) if _generation(name) == generation]
    _remove(folder, names)


def _remove(folder, names):
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, name))


def _key(item):
    return item.index.fqn, item.index.offset


def _generation(name):
    found = _DATA.fullmatch(name)
    return int(found.group(1)) if found else None


def _generations(folder):
    return [_generation(name) for name in os.listdir(folder) if _DATA.fullmatch(name)]


def _forget_guards(folder):
    guards = [name for name in os.listdir(folder) if name in _GUARDS]
    for name in guards:
        os.unlink(os.path.join(folder, name))
    if guards:
        make_durable(folder)


def _sync_others(folder):
    """What Megatron itself wrote (common.pt) must be durable as well."""
    for path in pathlib.Path(folder).iterdir():
        if path.is_file() and not _DATA.fullmatch(path.name):
            make_durable(path)
