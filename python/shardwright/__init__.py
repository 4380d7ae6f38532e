# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Megatron-family training: read, diagnosed, resharded, converted and proven."""
from . import _core
from ._commands import (
    average,
    clean,
    convert,
    diagnose,
    diff,
    explain,
    hash,
    index,
    inspect,
    locality,
    merge,
    merge_adapter,
    plan,
    publish,
    report,
    show,
    split,
    verify,
)
from ._errors import (
    AccessError,
    CodecError,
    Error,
    ExistsError,
    FormatError,
    MissingError,
    ModelError,
    OutOfMemoryError,
    PlanError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from ._reading import Checkpoint, Slice
from ._results import (
    AdapterMerge,
    Average,
    Conversion,
    Diagnosis,
    Difference,
    Digests,
    Finding,
    Index,
    Leftovers,
    Inspection,
    Locality,
    Merge,
    MergeFinding,
    Page,
    Part,
    Plan,
    Publication,
    Report,
    Rename,
    Split,
    StoredTensor,
    TensorDifference,
    TensorDigest,
    TensorReport,
    Verification,
)

__version__ = _core.version
__all__ = [
    "AccessError",
    "AdapterMerge",
    "Average",
    "Checkpoint",
    "CodecError",
    "Conversion",
    "Diagnosis",
    "Difference",
    "Digests",
    "Error",
    "ExistsError",
    "Finding",
    "FormatError",
    "Index",
    "Leftovers",
    "Inspection",
    "Locality",
    "Merge",
    "MergeFinding",
    "MissingError",
    "ModelError",
    "OutOfMemoryError",
    "Page",
    "Part",
    "Plan",
    "PlanError",
    "Publication",
    "Report",
    "Rename",
    "Slice",
    "Split",
    "StorageError",
    "StoredTensor",
    "TensorDifference",
    "TensorDigest",
    "TensorReport",
    "UnknownNameError",
    "UsageError",
    "Verification",
    "average",
    "clean",
    "convert",
    "diagnose",
    "diff",
    "explain",
    "hash",
    "index",
    "inspect",
    "locality",
    "merge",
    "merge_adapter",
    "open",
    "plan",
    "publish",
    "report",
    "show",
    "split",
    "verify",
]


def open(
    path,
    framework="np",
    as_=None,
    *,
    names="stored",
    device=None,
    hf_config=None,
    family=None,
    map=None,
    dtype=None,
    mtp=None,
    accept_loss=False,
    replica=None,
    source_ep=None,
    source_etp=None,
    source_tp=None,
):
    """Opens a checkpoint of any format, reading metadata and headers only.

    `names="stored"`: tensors have their stored names and global shapes, however many files hold
    their pieces. Where the checkpoint is of a model that Megatron knows, in whatever format, a tensor
    is also found by Megatron's name of one layer (`decoder.layers.7.mlp.linear_fc1.weight`) and of the
    stack of all layers (`decoder.layers.mlp.linear_fc1.weight`); `keys()` lists what is stored. A
    tensor that ranks stored several times under names of their own (`NAME.__tp_replica_1`) is listed
    as NAME, whose copies are compared when it is read; each of those names finds its own copy.
    `framework`: "np" for numpy arrays (bfloat16 and 8-bit floats need ml_dtypes), "pt" for torch
    tensors on `device` (default: the CPU), "dlpack" for memory that any framework takes with its
    `from_dlpack`, bfloat16 too. `as_` names the format where the path holds several checkpoints. Raises
    Error.

    `names="hf"`: a model under Hugging Face's names, with the shapes and dtypes, and bit by bit the
    elements, that `convert(to="hf")` writes; optimizer states are no part of that.
    `names="megatron"`: under Megatron's, one tensor for each layer, and found by the names of stacks
    too. Tensors are made when they are read, of the bytes that a box needs; opening may read a little
    more of a model than headers, as planning a conversion does (tensors that may be tied, norms that
    Megatron shifts).

    With either, the other options say what the files do not tell: `hf_config` (a config.json or its folder),
    `family`, `map` (mapping files of your own), `accept_loss`, `replica`, `source_ep`,
    `source_etp`, `source_tp`, as the flags of `convert`; with "hf" also `dtype`, which casts what a
    conversion would cast, and `mtp="drop"`, which leaves prediction layers out.
    """
    return Checkpoint(
        path,
        framework,
        as_,
        names=names,
        device=device,
        hf_config=hf_config,
        family=family,
        map=map,
        dtype=dtype,
        mtp=mtp,
        accept_loss=accept_loss,
        replica=replica,
        source_ep=source_ep,
        source_etp=source_etp,
        source_tp=source_tp,
    )
