# SPDX-License-Identifier: Apache-2.0
"""What `.metadata` of a folder has for loads."""
import os

from .. import _core
from .._errors import make


def read_metadata(folder):
    """Its bytes. Raises StorageError: SW0101 where there is none, SW0103."""
    path = os.path.join(folder, ".metadata")
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        code = "SW0101" if isinstance(error, FileNotFoundError) else "SW0103"
        raise make(code, f"{path}: {error.strerror}") from error


def catalog_of(contents, folder):
    """The tensors and objects in such bytes. Raises FormatError for damaged ones."""
    return _core.LoadCatalog(contents, os.path.join(folder, ".metadata"))
