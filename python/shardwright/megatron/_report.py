# SPDX-License-Identifier: Apache-2.0
"""What the last save cost this rank."""
from typing import NamedTuple, Optional


class SaveReport(NamedTuple):
    """Of this rank alone; bytes and seconds (wall clock)."""

    path: str
    opens: int  # files that were opened to be written
    own_bytes: int  # written
    files: int
    items: int  # tensors and objects in them
    replicas: int  # of them tensors under a name of this tensor rank
    staged_bytes: int  # copied to be written in the background
    blocking_seconds: float  # that the training waited; of a save in the background less than:
    seconds: float  # from its begin until it was published


_last: Optional[SaveReport] = None


def record_save(report):
    global _last
    _last = report


def last_save():
    """The report of the last save that was published, or None."""
    return _last
