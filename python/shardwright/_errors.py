# SPDX-License-Identifier: Apache-2.0
"""Exceptions for the error codes; docs/errors.md explains each code."""


class Error(Exception):
    """An operation that failed. `code` is public and keeps its meaning: `"SW0307"`.

    `shardwright explain CODE` prints the page about it.
    """

    def __init__(self, code, message):
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self):
        return f"error[{self.code}]: {self.message}"


class StorageError(Error):
    """Files and folders (SW01xx): missing, unreadable, full, in the way; a run that was stopped."""


class OutOfMemoryError(StorageError, MemoryError):
    """Memory ran out (SW0113); nothing was left behind."""


class CodecError(Error):
    """A file that is not what its format says (SW02xx)."""


class FormatError(Error):
    """A checkpoint that is damaged, incomplete or of no supported format (SW03xx)."""


class ModelError(Error):
    """A model family, config or layout that does not fit (SW04xx)."""


class PlanError(Error):
    """A conversion that cannot be carried out here (SW05xx)."""


class UsageError(Error):
    """A wrong argument (SW09xx)."""


_FAMILIES = {
    "SW01": StorageError,
    "SW02": CodecError,
    "SW03": FormatError,
    "SW04": ModelError,
    "SW05": PlanError,
    "SW09": UsageError,
}


def make(code, message):
    """The exception for a code."""
    if code == "SW0113":
        return OutOfMemoryError(code, message)
    return _FAMILIES.get(code[:4], Error)(code, message)
