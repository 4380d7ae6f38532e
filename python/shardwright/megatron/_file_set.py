# SPDX-License-Identifier: Apache-2.0
"""Files of one folder that appear together, in the place of others."""
import contextlib
import os

from ..torch._durable import make_durable

_NEW, _OLD = ".partial", ".old"  # what a name ends with meanwhile


class FileSet:
    """New files of `folder`, each durable under another name, until `appear`.

    Several files cannot be replaced in one step. The first that is added is the one without which
    the others are nothing: it goes before they are touched and comes when they are all there.
    """

    def __init__(self, folder):
        self.is_visible = False
        self._folder = folder
        self._new, self._gone = [], []

    def add(self, name, contents):
        """A file that is to appear."""
        with open(self._path(name, _NEW), "wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        self._new.append(name)

    def drop(self, name):
        """A file that may lie there and is no longer wanted."""
        self._gone.append(name)

    def appear(self):
        """Where this raises before `is_visible`, what was there before is there again. Who is
        killed meanwhile leaves what was there before, or the new files, or none by the first name:
        nothing that could be taken for either."""
        make_durable(self._folder)
        if len(self._new) > 1 or any(os.path.lexists(self._path(name)) for name in self._gone):
            self._replace_several()
        else:
            os.replace(self._path(self._new[0], _NEW), self._path(self._new[0]))
        self.is_visible = True
        make_durable(self._folder)
        for name in (*self._new, *self._gone):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(name, _OLD))

    def _replace_several(self):
        aside, placed = [], []
        try:
            for name in (*self._new, *self._gone):
                if os.path.lexists(self._path(name)):
                    os.replace(self._path(name), self._path(name, _OLD))
                    aside.append(name)
            make_durable(self._folder)
            for name in reversed(self._new):
                os.replace(self._path(name, _NEW), self._path(name))
                placed.append(name)
        except BaseException:
            for name in placed:
                os.unlink(self._path(name))
            for name in reversed(aside):
                os.replace(self._path(name, _OLD), self._path(name))
            raise

    def _path(self, name, ending=""):
        return os.path.join(self._folder, name + ending)


def unfinished(names):
    """What these files are called before they appear."""
    return [name + _NEW for name in names]
