# SPDX-License-Identifier: Apache-2.0
"""Who works in a hidden folder."""
import contextlib
import fcntl
import os
import shutil
import threading
import weakref

from .._errors import make, of_system

_claims = weakref.WeakSet()  # of this process: some file systems have no locks
_one_begins = threading.Lock()


class Claim:
    """An empty hidden folder `path` for one save to `target`, until `end`; or until somebody
    removes the folder, or nobody has this. What a save that was killed left in it goes. Raises
    ExistsError (SW0107) where another save is at it, of this process or, where the file system has
    locks, of another.

    Of a save that another rank fails this one's writer may not be told. But torch does all steps of
    a save in one thread: a claim is over when its thread makes another or has ended, and what is
    left in its folder goes.
    """

    def __init__(self, path, target):
        self._path = path
        self._process, self._thread = os.getpid(), threading.current_thread()
        with _one_begins:
            for claim in list(_claims):
                claim.end_if_over()
            try:
                descriptor = _locked(path)
            except OSError as error:
                # Nobody gave this name, which is hidden: only what lies in its place is told by it.
                blocked = f": {path}" if os.path.lexists(path) else ""
                text = f"{target}: the folder of the save could not be made beside it{blocked}"
                raise of_system(error, text) from error
            if descriptor is None:
                raise make(
                    "SW0107",
                    f"{target}: another save to it is under way, in {path}; wait for it or choose "
                    "another path",
                )
            self.identity = _identity(os.fstat(descriptor))
            # A folder that is open keeps its number.
            self._close = weakref.finalize(self, os.close, descriptor)
            _claims.add(self)
        for entry in os.scandir(path):
            is_folder = entry.is_dir(follow_symlinks=False)
            (shutil.rmtree if is_folder else os.unlink)(entry.path)

    def follow(self):
        """A step of the save is done here. Who does them in several threads may begin the next in
        one of them while another still writes."""
        if self._thread is not threading.current_thread():
            self._thread = None

    def end(self):
        _claims.discard(self)
        self._close()

    def end_if_over(self):
        """For the thread that makes another, or is about to."""
        # A forked process has none of the threads of the one whose claims it has.
        if self._thread is None or self._process != os.getpid():
            return
        if self._thread is threading.current_thread() or not self._thread.is_alive():
            with contextlib.suppress(OSError):
                if self.identity == _identity(os.lstat(self._path)):
                    shutil.rmtree(self._path, ignore_errors=True)
            self.end()


def _locked(path):
    """The folder, made where it is missing, open and locked; None where another has it."""
    while True:
        os.makedirs(path, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # its save has just ended
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            pass  # no locks here
        found = _identity(os.fstat(descriptor))
        if any(found == claim.identity for claim in _claims):
            os.close(descriptor)
            return None
        with contextlib.suppress(FileNotFoundError):
            if found == _identity(os.lstat(path)):
                return descriptor
        os.close(descriptor)  # another save has made it a checkpoint, or removed it


def _identity(details):
    return details.st_dev, details.st_ino
