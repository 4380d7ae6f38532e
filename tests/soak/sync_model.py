# SPDX-License-Identifier: Apache-2.0
"""What POSIX promises of a run's files after a power failure: what was synced, and no more.

File systems keep more than that (ext4 writes whatever else its journal has with each fsync), so that an
fsync which another one needs is not missed on their disks. Here it is.
"""
import os
import re

CALLS = ("fsync,fdatasync,write,pwrite64,pwritev,ftruncate,fallocate,openat,openat2,mkdir,mkdirat,"
         "rename,renameat,renameat2,unlink,unlinkat")  # fmt: skip
FD = re.compile(r"\d+<([^>]*)>")
PLACE = r'(?:(?:AT_FDCWD|\d+)(?:<([^>]*)>)?, )?"((?:[^"\\]|\\.)*)"'


def place_of(base, folder, name):
    return os.path.normpath(os.path.join(folder or base, name))


def ended_calls(log):
    """(name, arguments) of each call that did what it should, as they ended."""
    begun = {}
    for line in log.splitlines():
        process, _, text = line.partition(" ")
        text = text.strip()
        if text.endswith(" <unfinished ...>"):
            begun[process] = text.removesuffix(" <unfinished ...>")
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", text)
        if resumed:
            text = begun.pop(process, "") + resumed[1]
        call = re.match(r"(\w+)\((.*)\) += (-?\d+)", text)
        if call and not call[3].startswith("-"):
            yield call[1], call[2]


def events_of(log, base):
    """(what, path, further path) of each call in a log of `strace -f -y`, run in the folder `base`."""
    found = []
    for name, words in ended_calls(log):
        places = [place_of(base, *place) for place in re.findall(PLACE, words)]
        held = FD.match(words)
        if name in ("fsync", "fdatasync"):
            found.append(("sync", held[1], ""))
        elif name in ("write", "pwrite64", "pwritev", "ftruncate", "fallocate"):
            found.append(("write", held[1] if held else "", ""))
        elif name in ("openat", "openat2") and "O_CREAT" in words:
            found += [("entry", places[0], ""), ("write", places[0], "")]
        elif name.startswith("mkdir"):
            found.append(("entry", places[0], ""))
        elif name.startswith("unlink"):
            found.append(("unlink", places[0], ""))
        elif name.startswith("rename"):
            found.append(("rename", places[0], places[1]))
    return found


def synced(events):
    """The paths that are made durable, in order."""
    return [path for what, path, _ in events if what == "sync"]


def lost(events, target, without=-1):
    """What a power failure may lose of `target`, whose run said that it succeeded.

    `without`: the number of a sync, from 0, that is taken as not done.
    """
    dirty = {}  # what is not durable: a file's contents, or an entry of a folder -> what syncs it
    losses = []
    syncs = -1
    for what, path, other in events:
        if what == "write":
            dirty["contents of " + path] = path
        elif what == "entry":
            dirty["entry " + path] = os.path.dirname(path)
        elif what == "unlink":
            dirty.pop("contents of " + path, None)
            dirty["entry " + path] = os.path.dirname(path)
        elif what == "sync":
            syncs += 1
            if syncs != without:
                dirty = {name: by for name, by in dirty.items() if by != path}
        elif what == "rename":
            # A copy of what is replaced must be there before.
            losses += [f"{name} at the rename" for name, by in dirty.items()
                       if is_in(by, path) or name.endswith(".bak")]  # fmt: skip
            dirty = {name: by for name, by in dirty.items() if not is_in(by, path)}
            dirty["entry " + other] = os.path.dirname(other)
    losses += [name for name, by in dirty.items() if is_in(by, target) or name == "entry " + target]
    return losses


def is_in(path, folder):
    return path == folder or path.startswith(folder + "/")
