# SPDX-License-Identifier: Apache-2.0
"""One device for all of gloo's process groups: each would have its own, whose thread looks for messages
a hundred times a second. Of Megatron's twenty groups on four ranks, that takes more than the messages."""
import datetime

from torch.distributed import ProcessGroupGloo

_devices = []
_plain = ProcessGroupGloo.__init__


def _init(self, store, rank, size, timeout=datetime.timedelta(minutes=30)):
    options = ProcessGroupGloo._Options()
    options._timeout = timeout
    options._threads = 2
    if not _devices:
        _devices.append(ProcessGroupGloo.create_default_device())
    options._devices = _devices
    _plain(self, store, rank, size, options)


def share():
    """For the groups that this process, and what is forked from it, makes from now on. There must be
    none that it forks with."""
    ProcessGroupGloo.__init__ = _init
