# SPDX-License-Identifier: Apache-2.0
"""Memory of one rank that the others on its machine read."""
import contextlib
import mmap
import os
import pathlib

import torch

_TOKEN_BYTES = 16
_BOOT = pathlib.Path("/proc/sys/kernel/random/boot_id")


class HostMemory:
    """This rank's memory, a file without a name, and that of the others of its group, once `meet`
    has found all of them. Where ranks see neither one machine nor one another's processes, nothing
    is shared. One thread's."""

    def __init__(self):
        self._file, self._others, self._views = None, None, []
        self._token = os.urandom(_TOKEN_BYTES)
        with contextlib.suppress(OSError, AttributeError):  # not every system has such files
            self._file = os.memfd_create("shardwright-exchange")
            os.write(self._file, self._token)

    @property
    def is_shared(self):
        return self._others is not None

    def told(self):
        """What the others need to find it; None where they can't."""
        if self._file is None:
            return None
        with contextlib.suppress(OSError):
            return _BOOT.read_text(), os.getpid(), self._file, self._token
        return None

    def meet(self, told, gather):
        """Opens what all members told, if all of them can. `gather(value)`: what every member
        has."""
        # Of what all were told all think the same.
        if None in told or len({boot for boot, *_ in told}) > 1:
            return
        opened = []
        with contextlib.suppress(OSError):
            for _, process, file, token in told:
                opened.append(os.open(f"/proc/{process}/fd/{file}", os.O_RDWR))
                # In a container of its own a process may have another's number.
                if os.pread(opened[-1], _TOKEN_BYTES, 0) != token:
                    break
            else:
                self._others = opened
        if not all(gather(self._others is not None)):
            self._others = None
        if self._others is None:
            _close(opened)

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


def _close(files):
    for file in files:
        os.close(file)
