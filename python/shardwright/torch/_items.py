# SPDX-License-Identifier: Apache-2.0
"""One `.distcp` file, written out of memory by the library's threads."""
import os

import torch
import torch.distributed as dist

from .. import _core
from .._torch_memory import bytes_of
from ._values import Value, nothing

_ALIGNMENT = 64  # of what is staged; every dtype's element divides it
_MOST_THREADS = 16
_COPIED_BYTES = 256 << 20  # that are copied from a GPU before they are written


class ItemFile:
    """A new file `name` in `folder` of the items `(name, value)`; a value is a tensor or a
    `BytesIO`, which is stored as it is.

    The file is laid out at once, so `places`, offset and length of each item, are known before a
    byte is written. Tensors become archives as `torch.save` makes them, with CRC-32s, by `threads`
    threads (0: this rank's share of the processors) that hold no GIL. Raises StorageError where the
    file exists (SW0107) or cannot be written. Not safe for concurrent use.
    """

    def __init__(self, folder, name, items, threads=0):
        self.path = os.path.join(os.fspath(folder), name)
        self._threads = threads or share_of_processors()
        self._values = [Value.of(item, value) for item, value in items]
        described = [(one.name, one.dtype, list(one.tensor.shape)) for one in self._values]
        self._pending = range(len(self._values))
        self._writer = _core.ItemWriter(os.fsencode(folder), name, described)
        self.places = self._writer.places()

    @property
    def bytes(self):
        """Of the whole file."""
        return sum(length for _, length in self.places)

    def stage(self, staging):
        """Copies the first values into a `Staging`, as many as fit, and writes the others:
        afterwards the values' own memory may change. Returns the bytes that were copied."""
        count = staging.take(self._values)
        self._write(range(count, len(self._values)))
        self._values[count:] = []
        self._pending = range(count)
        return sum(value.nbytes for value in self._values)

    def write(self):
        """Writes what is not written yet, and makes the file durable."""
        self._write(self._pending)
        self._writer.finish()
        self._values = []

    def _write(self, which):
        start = which.start
        while start < which.stop:
            end, copied = start, 0
            while end < which.stop and copied < _COPIED_BYTES:
                on_host = self._values[end].tensor.device.type == "cpu"
                copied += 0 if on_host else self._values[end].nbytes
                end += 1
            payloads = [bytes_of(value.dense().cpu()) for value in self._values[start:end]]
            self._writer.write(start, payloads, self._threads)
            start = end


class Staging:
    """Host memory for copies of what is saved, of at most `max_bytes`; kept for the next save."""

    def __init__(self, max_bytes):
        self._max_bytes = max_bytes
        self._memory = nothing()

    def take(self, values):
        """Replaces the first of a list of `Value` by copies, as many as fit; returns how many."""
        places, end = [], 0
        for value in values:
            start = -(-end // _ALIGNMENT) * _ALIGNMENT
            if start + value.nbytes > self._max_bytes:
                break
            places.append(start)
            end = start + value.nbytes
        if self._memory.nbytes < end:
            self._memory = nothing()  # freed before there is a larger one
            pinned = torch.cuda.is_available()
            self._memory = torch.empty(end, dtype=torch.uint8, pin_memory=pinned)
        on_gpu = False
        for index, start in enumerate(places):
            source = values[index].dense()
            copy = self._memory[start : start + source.nbytes].view(source.dtype)
            copy = copy.view(source.shape)
            copy.copy_(source, non_blocking=True)
            on_gpu |= source.device.type != "cpu"
            values[index] = values[index]._replace(tensor=copy)
        if on_gpu:
            torch.cuda.synchronize()
        return len(places)


def share_of_processors():
    """How many threads a rank gets of its machine, whose ranks all write at a time. More than there
    are processors would wait for one another, and for the file."""
    ranks = dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
    told = os.environ.get("LOCAL_WORLD_SIZE", "")  # torchrun says so
    if told.isdecimal():
        ranks = int(told)
    elif torch.cuda.is_available():
        ranks = min(ranks, torch.cuda.device_count())
    share = max(1, (os.cpu_count() or 1) // max(ranks, 1))
    return min(share, len(os.sched_getaffinity(0)), _MOST_THREADS)
