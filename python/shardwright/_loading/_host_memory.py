# SPDX-License-Identifier: Apache-2.0
"""Memory of one rank that the others on its machine read."""
import contextlib
import mmap
import os
import pathlib

import torch

from .. import _core
from .._errors import Error
from .._torch_memory import bytes_of

_TOKEN_BYTES = 16
_BOOT = pathlib.Path("/proc/sys/kernel/random/boot_id")


class HostMemory:
    """This rank's memory, a file without a name, and that of the others of its group, once `meet`
    has found all of them. Where ranks see neither one machine nor one another's processes, nothing
    is shared; where the system lets them, they read whatever the others have in memory. One
    thread's."""

    def __init__(self):
        self._file, self._others, self._views = None, None, []
        self._token = os.urandom(_TOKEN_BYTES)
        self._seen = torch.frombuffer(bytearray(self._token), dtype=torch.uint8)
        self._processes = None
        with contextlib.suppress(OSError, AttributeError):  # not every system has such files
            self._file = os.memfd_create("shardwright-exchange")
            os.write(self._file, self._token)

    @property
    def is_shared(self):
        return self._others is not None

    @property
    def is_open(self):
        """Whether every rank reads the memory of every other one, see `read`."""
        return self._processes is not None

    def told(self):
        """What the others need to find it; None where they can't."""
        if self._file is None:
            return None
        with contextlib.suppress(OSError):
            address = self._seen.data_ptr()
            return _BOOT.read_text(), os.getpid(), self._file, self._token, address
        return None

    def meet(self, told, agree):
        """Opens what all members told, if all of them can. `agree(flags)`: of each flag, whether
        all members have it set."""
        # Of what all were told all think the same.
        if None in told or len({boot for boot, *_ in told}) > 1:
            return
        opened = []
        with contextlib.suppress(OSError):
            for _, process, file, token, _ in told:
                opened.append(os.open(f"/proc/{process}/fd/{file}", os.O_RDWR))
                # In a container of its own a process may have another's number.
                if os.pread(opened[-1], _TOKEN_BYTES, 0) != token:
                    break
            else:
                self._others = opened
        is_shared, is_open = agree([self._others is not None, _sees(told)])
        if is_shared and is_open:
            self._processes = [process for _, process, *_ in told]
        if not is_shared:
            self._others = None
            _close(opened)

    def read(self, member, address, memory):
        """Fills a dense tensor with what a member has at that address. It must leave it there until
        all are done."""
        bytes_ = bytes_of(memory).numpy()
        _core.read_memory_of(self._processes[member], address, bytes_)

    def take(self, size):
        """This rank's, of so many bytes."""
        os.ftruncate(self._file, max(size, _TOKEN_BYTES))

    def views(self):
        """The memory of each member, by member; every one must have taken what it needs."""
        if not self._views:
            for file in self._others:
                self._views.append(torch.frombuffer(mmap.mmap(file, 0), dtype=torch.uint8))
        return self._views

    def close(self):
        """Gives it back."""
        self._views = []
        _close(self._others or [])
        _close([] if self._file is None else [self._file])
        self._file = self._others = None


def _sees(told):
    """Whether this process reads the memory of all those: not every system lets it."""
    found = torch.empty(_TOKEN_BYTES, dtype=torch.uint8)
    for _, process, _, token, address in told:
        try:
            _core.read_memory_of(process, address, found.numpy())
        except Error:
            return False
        if found.numpy().tobytes() != token:
            return False
    return True


def _close(files):
    for file in files:
        os.close(file)
