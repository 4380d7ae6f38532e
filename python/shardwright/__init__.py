# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Megatron-family training: read, diagnosed, resharded, converted and proven."""
import json
import os
import warnings

from . import _core
from ._errors import (
    CodecError,
    Error,
    FormatError,
    ModelError,
    OutOfMemoryError,
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
    Locality,
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
    "Locality",
    "ModelError",
    "OutOfMemoryError",
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
    "locality",
    "open",
    "plan",
    "verify",
]


def open(path, framework="np", as_=None, *, names="stored", **options):
    """Opens a checkpoint of any format, reading metadata and headers only.

    `names="stored"`: tensors have their stored names and global shapes, however many files hold
    their pieces. Where the checkpoint is of a model that Megatron knows, in whatever format, a tensor
    is also found by Megatron's name of one layer (`decoder.layers.7.mlp.linear_fc1.weight`) and of the
    stack of all layers (`decoder.layers.mlp.linear_fc1.weight`); `keys()` lists what is stored. A
    tensor that ranks stored several times under names of their own (`NAME.__tp_replica_1`) is listed
    as NAME, whose copies are compared when it is read; each of those names finds its own copy.
    `framework`: "np" for numpy arrays (bfloat16 and 8-bit floats need ml_dtypes), "pt" for torch
    tensors on the CPU. `as_` names the format where the path holds several checkpoints. Raises
    Error.

    `names="hf"`: a model under Hugging Face's names, with the shapes and dtypes, and bit by bit the
    elements, that `convert(to="hf")` writes; optimizer states are no part of that.
    `names="megatron"`: under Megatron's, one tensor for each layer, and found by the names of stacks
    too. Tensors are made when they are read, of the bytes that a box needs; opening may read a little
    more of a model than headers, as planning a conversion does (tensors that may be tied, norms that
    Megatron shifts).

    With either, `options` say what the files do not tell: `hf_config` (a config.json or its folder),
    `family`, `map` (mapping files of your own), `accept_loss`, `replica`, `source_ep`,
    `source_etp`, `source_tp`, as the flags of `convert`; with "hf" also `dtype`, which casts what a
    conversion would cast, and `mtp="drop"`, which leaves prediction layers out.
    """
    return Checkpoint(path, framework, as_, names=names, **options)


def convert(input, output, *, to, progress=None, **flags):
    """Converts or reshards a checkpoint; `output` appears whole or not at all.

    `to`: "hf", "torch_dist", "legacy", "mimo", "fsdp_dtensor", "dcp" or "safetensors". `flags` are
    those of
    `shardwright convert --help` with `_` for `-`: `tp=2`, `hf_config=folder`, `overwrite=True`;
    what may be repeated takes a list. `progress(bytes_done, bytes_total)` is called from the
    calling thread, about ten times a second and once before publishing; what it raises, and Ctrl-C,
    stop the conversion and leave nothing behind. `dry_run=True` writes nothing and gives the Plan.
    """
    result = Plan if flags.get("dry_run") else Conversion
    return _run("convert", [input, output], result, progress, to=to, **flags)


def plan(input, output, *, to, **flags):
    """What `convert` with the same arguments would do; writes nothing. Sizes are in bytes."""
    return _run("plan", [input, output], Plan, None, to=to, **flags)


def verify(path, *, progress=None, **flags):
    """Proves what can be proven of a checkpoint and lists everything that is wrong.

    The result is true where nothing is wrong. `against`: a manifest of `hash`, or a checkpoint.
    """
    return _run("verify", [path], Verification, progress, **flags)


def diff(left, right, *, progress=None, **flags):
    """Compares two checkpoints of any formats and layouts, bit by bit or within `tolerance`.

    The result is true where they are equal, as that of `verify` is where nothing is wrong.
    """
    return _run("diff", [left, right], Difference, progress, **flags)


def diagnose(path, **flags):
    """Which layout a path holds and what is wrong with it; `tp=2` and its like are your belief.

    The result is true where no finding is an error.
    """
    return _run("diagnose", [path], Diagnosis, None, **flags)


def hash(path, *, progress=None, **flags):
    """Digests of every tensor, the same for the same weights in any format and layout."""
    return _run("hash", [path], Digests, progress, **flags)


def locality(path, **flags):
    """Who would read which file when a job of `tp=2, pp=1, dp=2` and its like loads a checkpoint.

    `rules` has the counts by "stock" (Megatron-Core's), "per_name" (PR 3392's) and "per_chunk".
    """
    return _run("locality", [path], Locality, None, **flags)


def _words(command, paths, flags):
    words = [command]
    for name, value in flags.items():
        flag = "--" + name.rstrip("_").replace("_", "-")  # as_: `as` is a word of Python's own
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        words += [f"{flag}={_text(one)}" for one in values]
    # --json behind them: a flag without its value must not take the word that ends the flags.
    words += ["--json", "--", *(os.fsdecode(path) for path in paths)]
    return [os.fsencode(word) for word in words]


def _text(value):
    return os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else str(value)


def _run(command, paths, result, progress, **flags):
    status, output, messages = _core.run(_words(command, paths, flags), progress)
    # A flag that asks for something else, such as help, has no document.
    try:
        document = json.loads(output)
    except ValueError:
        raise UsageError("SW0900", f"{command}: the flags ask for no result: {messages or output}") from None
    if status == 2:
        raise _make_error(**document["error"])
    for path in document.get("leftovers", []):
        warnings.warn(f"what was replaced could not be removed: {path}; remove it", stacklevel=3)
    return result.of(document)
