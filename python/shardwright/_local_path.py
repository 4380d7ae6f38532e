# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re

from ._errors import make

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def local_path(path):
    """A place on this machine that is written to. An address would become a folder of that name,
    `s3:/bucket`, in which nobody looks for it."""
    text = os.fsdecode(path)
    if not text:
        raise make("SW0900", "the path is empty; give the folder to save into")
    if _ADDRESS.match(text):
        raise make(
            "SW0900",
            f"{text}: found an address, expected a folder on this machine; save into one, which "
            "shardwright.convert then writes to s3://",
        )
    return pathlib.Path(text)
