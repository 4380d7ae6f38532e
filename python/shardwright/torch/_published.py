# SPDX-License-Identifier: Apache-2.0
"""A folder that becomes a checkpoint, in one step."""
import ctypes
import errno
import os
import re
import shutil
import warnings

from .. import _core
from .._errors import Error, make
from ._durable import make_durable
from ._saves import hidden

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
_OLD = re.compile(r"\.old\d*$")


def publish(made, target):
    """Moves the folder `made` to `target`. What was there goes, and what saves that were killed had
    replaced. Where this raises, both are where they were."""
    if target.exists():
        _replace(made, target)
    else:
        os.rename(made, target)
    make_durable(target.parent)
    for old in _old_copies(target):
        shutil.rmtree(old, ignore_errors=True)
        if old.exists():
            text = f"what was replaced could not be removed: {old}; remove it"
            warnings.warn(text, stacklevel=2)


def exchange(one, other):
    """Swaps two folders in one step; False where the system or the file system can't."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), os.fspath(one), None, os.fspath(other))


def _replace(made, target):
    # Not by the name of the hidden folder: the next save might take what was there for its own.
    spare = _free_name(target)
    os.rename(made, spare)
    try:
        if not exchange(spare, target):
            _replace_in_two_steps(spare, target)
    except BaseException:
        os.rename(spare, made)
        raise


def _replace_in_two_steps(made, target):
    old = _free_name(target)
    os.rename(target, old)
    try:
        os.rename(made, target)
    except BaseException:
        os.rename(old, target)
        raise


def _free_name(target):
    for number in range(1000):
        old = hidden(target, f".old{number or ''}")
        if not os.path.lexists(old):
            return old
    name = hidden(target, ".old").name
    raise make("SW0107", f"{target}: too many old copies lie beside it; remove {name}*")


def _old_copies(target):
    """Checkpoints by the names of `_free_name`, and nothing that is somebody's own."""
    for entry in sorted(os.listdir(target.parent)):
        ending = _OLD.search(entry)
        if ending is None or entry != hidden(target, ending.group()).name:
            continue
        try:
            _core.check_replaceable(os.fsencode(target.parent / entry))
        except Error:
            continue
        yield target.parent / entry
