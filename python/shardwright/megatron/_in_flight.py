# SPDX-License-Identifier: Apache-2.0
"""Saves of this job that are under way. Rank 0's: it numbers their files and publishes them."""
import os
import re
import threading
import weakref

from .._errors import make

_DATA = re.compile(r"__\d+_(\d+)\.distcp")
_under_way = weakref.WeakSet()  # whoever begins a save and drops it tells nobody
_one_at_a_time = threading.Lock()


class InFlight:
    """A save to `folder` from its beginning until `end`. Its files have a `generation` of their own
    in their names: a save never writes over files, be they of a checkpoint that is replaced, of
    another save or left by one that failed."""

    def __init__(self, folder):
        if not os.path.isdir(folder):
            raise make("SW0101", f"{folder}: found no folder, expected the one to save to")
        details = os.stat(folder)
        self._place = details.st_dev, details.st_ino  # it may be asked for by several names
        self.is_outdone = False  # whether a save that began later is published
        with _one_at_a_time:
            taken = {generation_of(name) for name in os.listdir(folder)} - {None}
            taken.update(one.generation for one in self._others())
            self.generation = max(taken, default=-1) + 1
            _under_way.add(self)

    def may_remove(self, name):
        """Whether a file is of a save that began before this one and is not under way. What began
        later may be another job's, or be published next."""
        generation = generation_of(name)
        with _one_at_a_time:
            others = {one.generation for one in self._others()}
        return generation is not None and generation <= self.generation and generation not in others

    def published(self):
        """What began before this is no longer to be published."""
        with _one_at_a_time:
            for other in self._others():
                other.is_outdone |= other.generation < self.generation
        self.end()

    def end(self):
        with _one_at_a_time:
            _under_way.discard(self)

    def _others(self):
        return [one for one in _under_way if one is not self and one._place == self._place]


def generation_of(name):
    """That of a data file; None for other files."""
    found = _DATA.fullmatch(name)
    return int(found.group(1)) if found else None
