# SPDX-License-Identifier: Apache-2.0
"""Exceptions for the error codes; docs/errors.md explains each code.

Each is also the exception of Python's own that a caller would expect: a path that is not there is a
FileNotFoundError, a name that no tensor has a KeyError, a wrong argument a ValueError.
"""
import errno


class Error(Exception):
    """An operation that failed. `code` is public and keeps its meaning: `"SW0307"`.

    `shardwright.explain(code)` is the page about it.
    """

    def __init__(self, code, message):
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self):
        return f"error[{self.code}]: {self.message}"


class StorageError(Error, OSError):
    """Files and folders (SW01xx): missing, unreadable, full, in the way; a run that was stopped."""

    def __init__(self, code, message):
        super().__init__(code, message)
        self.errno = _ERRNO.get(code, errno.EIO)
        self.strerror = message


class MissingError(StorageError, FileNotFoundError):
    """A file or folder that is not there (SW0101)."""


class AccessError(StorageError, PermissionError):
    """A file or folder that may not be read or written (SW0102)."""


class ExistsError(StorageError, FileExistsError):
    """A target that is there already (SW0107)."""


class OutOfMemoryError(StorageError, MemoryError):
    """Memory ran out (SW0113); nothing was left behind."""


class CodecError(Error, ValueError):
    """A file that is not what its format says (SW02xx)."""


class FormatError(Error, ValueError):
    """A checkpoint that is damaged, incomplete or of no supported format (SW03xx)."""


class ModelError(Error, ValueError):
    """A model family, config or layout that does not fit (SW04xx)."""


class PlanError(Error, ValueError):
    """A conversion that cannot be carried out here (SW05xx)."""


class UsageError(Error, ValueError):
    """A wrong argument (SW09xx)."""


class UnknownNameError(UsageError, KeyError):
    """A name that nothing in the checkpoint has (SW0900)."""

    __str__ = Error.__str__  # KeyError's would show a tuple


_ERRNO = {
    "SW0101": errno.ENOENT,
    "SW0102": errno.EACCES,
    "SW0105": errno.ENOSPC,
    "SW0107": errno.EEXIST,
    "SW0109": errno.ECANCELED,
    "SW0113": errno.ENOMEM,
}
_CLASSES = {
    "SW0101": MissingError,
    "SW0102": AccessError,
    "SW0107": ExistsError,
    "SW0113": OutOfMemoryError,
}
_FAMILIES = {
    "SW01": StorageError,
    "SW02": CodecError,
    "SW03": FormatError,
    "SW04": ModelError,
    "SW05": PlanError,
    "SW09": UsageError,
}


# As the core tells them apart.
_SYSTEM = {
    errno.ENOENT: "SW0101",
    errno.ENOTDIR: "SW0101",
    errno.EACCES: "SW0102",
    errno.EPERM: "SW0102",
    errno.EROFS: "SW0102",
    errno.ENOSPC: "SW0105",
    errno.EDQUOT: "SW0105",
    errno.EEXIST: "SW0107",
    errno.EMFILE: "SW0108",
    errno.ENFILE: "SW0108",
}


def of_system(error, message):
    """The exception for what the system answered, an OSError: the message ends with it."""
    return make(_SYSTEM.get(error.errno, "SW0103"), f"{message}: {error.strerror}")


def make(code, message):
    """The exception for a code."""
    kind = _CLASSES.get(code) or _FAMILIES.get(code[:4], Error)
    return kind(code, message)
