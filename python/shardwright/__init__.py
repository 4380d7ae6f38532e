# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Megatron-family training: read, diagnosed, resharded, converted and proven."""
import json
import os

from . import _core
from ._errors import (
    CodecError,
    Error,
    FormatError,
    ModelError,
    PlanError,
    StorageError,
    UsageError,
    make as _make_error,
)
from ._reading import Checkpoint, Slice
from ._results import (
    Conversion,
    Diagnosis,
    Difference,
    Digests,
    Finding,
    Plan,
    Rename,
    TensorDifference,
    TensorDigest,
    Verification,
)

__version__ = _core.version
__all__ = [
    "Checkpoint",
    "CodecError",
    "Conversion",
    "Diagnosis",
    "Difference",
    "Digests",
    "Error",
    "Finding",
    "FormatError",
    "ModelError",
    "Plan",
    "PlanError",
    "Rename",
    "Slice",
    "StorageError",
    "TensorDifference",
    "TensorDigest",
    "UsageError",
    "Verification",
    "convert",
    "diagnose",
    "diff",
    "hash",
    "open",
    "plan",
    "verify",
]


def open(path, framework="np"):
    """Opens a checkpoint of any format, reading metadata and headers only.

    Tensors have their stored names and global shapes, however many files hold their pieces.
    `framework`: "np" for numpy arrays (bfloat16 and 8-bit floats need ml_dtypes), "pt" for torch
    tensors on the CPU. Raises Error.
    """
    return Checkpoint(path, framework)


def convert(input, output, *, to, progress=None, **flags):
    """Converts or reshards a checkpoint; `output` appears whole or not at all.

    `to`: "hf", "torch_dist", "legacy", "mimo", "fsdp_dtensor", "dcp" or "safetensors". `flags` are
    those of
    `shardwright convert --help` with `_` for `-`: `tp=2`, `hf_config=folder`, `overwrite=True`;
    what may be repeated takes a list. `progress(bytes_done, bytes_total)` is called from the
    calling thread, about ten times a second and once before publishing; what it raises, and Ctrl-C,
    stop the conversion and leave nothing behind.
    """
    return _run("convert", [input, output], Conversion, progress, to=to, **flags)


def plan(input, output, *, to, **flags):
    """What `convert` with the same arguments would do; writes nothing. Sizes are in bytes."""
    return _run("plan", [input, output], Plan, None, to=to, **flags)


def verify(path, *, progress=None, **flags):
    """Proves what can be proven of a checkpoint and lists everything that is wrong.

    The result is true where nothing is wrong. `against`: a manifest of `hash`, or a checkpoint.
    """
    return _run("verify", [path], Verification, progress, **flags)


def diff(left, right, *, progress=None, **flags):
    """Compares two checkpoints of any formats and layouts, bit by bit or within `tolerance`."""
    return _run("diff", [left, right], Difference, progress, **flags)


def diagnose(path, **flags):
    """Which layout a path holds and what is wrong with it; `tp=2` and its like are your belief."""
    return _run("diagnose", [path], Diagnosis, None, **flags)


def hash(path, *, progress=None, **flags):
    """Digests of every tensor, the same for the same weights in any format and layout."""
    return _run("hash", [path], Digests, progress, **flags)


def _words(command, paths, flags):
    words = [command, "--json"]
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        words += [f"{flag}={os.fspath(v) if isinstance(v, os.PathLike) else v}" for v in values]
    return words + ["--"] + [os.fspath(path) for path in paths]


def _run(command, paths, result, progress, **flags):
    status, output, messages = _core.run(_words(command, paths, flags), progress)
    # A flag that asks for something else, such as help, has no document.
    try:
        document = json.loads(output)
    except ValueError:
        raise UsageError("SW0900", f"{command}: found no result; {messages or output}") from None
    if status == 2:
        raise _make_error(**document["error"])
    return result.of(document)
