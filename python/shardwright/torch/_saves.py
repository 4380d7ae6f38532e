# SPDX-License-Identifier: Apache-2.0
"""What a StorageWriter knows of each of its saves: it may begin one before another is done."""
import hashlib
import os
import threading

_MOST_BYTES = 255  # of a name, in all common file systems


class OneSave:
    """Where a save goes, and what the writer's steps tell the next."""

    def __init__(self, target):
        self.target = target
        self.path = hidden(target, ".partial")
        self.copies = None
        self.claim = None  # of the coordinator, of the hidden folder
        self.file = None  # that this rank has begun


class Saves:
    """`now` is the save that this thread has begun last: torch does all steps of one in one thread.
    Of a thread that has begun none it is the one that any has begun last."""

    def __init__(self, target):
        self._of_thread = threading.local()
        self.begin(target)

    def begin(self, target=None):
        """Where the one before went for None."""
        former = getattr(self._of_thread, "save", None)
        if former is not None and former.claim is not None:
            former.claim.end_if_over()  # nobody has it any more
        self._last = self._of_thread.save = OneSave(target or self._last.target)

    @property
    def now(self):
        return getattr(self._of_thread, "save", self._last)

    def __reduce__(self):
        # What is under way in this process is not in the one that a writer is sent to.
        return Saves, (self._last.target,)


def hidden(target, ending):
    """A hidden name beside `target`; where its own is so long that nothing can be added, its
    beginning and a digest."""
    name = f".{target.name}{ending}"
    if len(os.fsencode(name)) > _MOST_BYTES:
        ending = f"~{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}{ending}"
        kept = target.name
        while len(os.fsencode(f".{kept}{ending}")) > _MOST_BYTES:
            kept = kept[:-1]  # a character, not a byte: some file systems want whole ones
        name = f".{kept}{ending}"
    return target.parent / name
