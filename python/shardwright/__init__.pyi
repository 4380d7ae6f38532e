# SPDX-License-Identifier: Apache-2.0
import os
from typing import Any, Callable, Iterator, Literal, Mapping, Optional, Sequence, Union, overload

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
_Progress = Optional[Callable[[int, int], object]]
_Names = Literal["stored", "megatron", "hf"]
_Flag = Union[None, bool, int, float, _Path, Sequence[Any]]

__version__: str

class Error(Exception):
    code: str
    message: str
    def __init__(self, code: str, message: str) -> None: ...

class StorageError(Error): ...
class OutOfMemoryError(StorageError, MemoryError): ...
class CodecError(Error): ...
class FormatError(Error): ...
class ModelError(Error): ...
class PlanError(Error): ...
class UsageError(Error): ...

class Slice:
    """A tensor that is read when it is indexed: by integers, slices of positive steps and `...`."""

    def get_shape(self) -> list[int]: ...
    def get_dtype(self) -> str: ...
    def __getitem__(self, index: Any) -> Any: ...

class Checkpoint:
    """An open checkpoint. May be used by several threads."""

    def __init__(
        self,
        path: _Path,
        framework: str = "np",
        as_: Optional[str] = None,
        *,
        names: _Names = "stored",
        hf_config: Optional[_Path] = None,
        family: Optional[str] = None,
        map: Union[None, _Path, Sequence[_Path]] = None,
        dtype: object = None,
        mtp: Optional[Literal["keep", "drop"]] = None,
        accept_loss: bool = False,
        replica: Optional[int] = None,
        source_ep: Optional[int] = None,
        source_etp: Optional[int] = None,
        source_tp: Optional[int] = None,
    ) -> None: ...
    def __enter__(self) -> Checkpoint: ...
    def __exit__(self, kind: object, *exception: object) -> None: ...
    def check_unchanged(self) -> None:
        """Raises SW0111 unless every file that was read is still what it was when it was opened.
        Leaving a `with` block does it too."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, name: object) -> bool:
        """Whether a tensor is found by this name: a stored one, or Megatron's of a layer or of a
        stack of layers."""
    def keys(self) -> list[str]:
        """The tensors' names, sorted: the stored ones, or those that `names` asked for."""
    def document_keys(self) -> list[str]:
        """With `names="hf"`: the files that a conversion would put beside the weights."""
    def get_document(self, name: str) -> bytes:
        """Such a file: `config.json`. Raises StorageError (SW0101) for no such name."""
    def object_keys(self) -> list[str]:
        """The names of stored values that are no tensors, sorted."""
    def get_object(self, name: str) -> bytes:
        """Such a value as it is stored: a pickle in torch's archive. Never unpickled here."""
    def metadata(self) -> dict[str, str]:
        """`format`, `container` that it lies in, `path` of the folder with the data, and `iteration` where the folder has one."""
    def get_tensor(self, name: str) -> Any:
        """The whole tensor, an array or tensor of its own. Raises Error; TypeError where the
        framework has no such dtype."""
    def get_slice(self, name: str) -> Slice: ...
    def shape_of(self, name: str) -> tuple[int, ...]: ...
    def dtype_of(self, name: str) -> str:
        """torch's name: `bfloat16`."""
    def read_box(self, name: str, origin: Sequence[int], shape: Sequence[int]) -> Any:
        """The elements [origin, origin + shape)."""
    def read_into(
        self, name: str, origin: Sequence[int], shape: Sequence[int], buffer: Any
    ) -> None:
        """The same, row-major into a contiguous one-axis uint8 array of exactly its bytes."""

class _Result:
    def to_dict(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...

class Finding(_Result):
    code: str
    severity: str
    message: str

class TensorDifference(_Result):
    tensor: str
    left: Mapping[str, Any]
    right: Mapping[str, Any]
    differing: int
    first: list[int]
    max_delta: float

class TensorDigest(_Result):
    name: str
    dtype: str
    shape: list[int]
    digest: str

class Locality(_Result):
    ranks: int
    tensors: int
    rules: dict[str, dict[str, int]]
    metadata: dict[str, Any]
    objects: dict[str, int]
    notes: list[str]

class Rename(_Result):
    source: list[str]
    target: str

class Conversion(_Result):
    output: str
    format: str
    family: str
    bytes_read: int
    bytes_written: int
    files_opened: int
    files_written: int
    seconds: float
    peak_memory_bytes: int
    leftovers: list[str]
    notes: list[str]

class Plan(_Result):
    source: Mapping[str, Any]
    target: Mapping[str, Any]
    family: str
    cost: Mapping[str, Any]
    replaced: list[str]
    keeps_others: bool
    notes: list[str]
    renames: list[Rename]

class Verification(_Result):
    path: str
    container: str
    format: str
    family: str
    proven: bool
    tensors: int
    elements: int
    chunks: int
    files: int
    payload_bytes: int
    checks: list[str]
    notes: list[str]
    findings: list[Finding]
    def __bool__(self) -> bool: ...

class Difference(_Result):
    left: str
    right: str
    names: str
    family: str
    equal: bool
    compared: int
    elements: int
    bytes: int
    missing_left: list[str]
    missing_right: list[str]
    differing_elements: int
    max_delta: float
    notes: list[str]
    differences: list[TensorDifference]
    def __bool__(self) -> bool:
        """Whether they are equal."""

class Diagnosis(_Result):
    path: str
    container: str
    format: str
    layout_class: str
    sizes: Mapping[str, Any]
    reason: str
    evidence: list[str]
    confidence: str
    complete: bool
    findings: list[Finding]
    def __bool__(self) -> bool:
        """Whether no finding is an error."""

class Digests(_Result):
    algorithm: str
    names: str
    family: str
    digest: str
    notes: list[str]
    tensors: list[TensorDigest]

def open(
    path: _Path,
    framework: str = "np",
    as_: Optional[str] = None,
    *,
    names: _Names = "stored",
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    dtype: object = None,
    mtp: Optional[Literal["keep", "drop"]] = None,
    accept_loss: bool = False,
    replica: Optional[int] = None,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
) -> Checkpoint: ...
@overload
def convert(
    input: _Path,
    output: _Path,
    *,
    to: str,
    progress: _Progress = None,
    dry_run: Literal[False] = False,
    **flags: _Flag,
) -> Conversion: ...
@overload
def convert(
    input: _Path,
    output: _Path,
    *,
    to: str,
    progress: _Progress = None,
    dry_run: Literal[True],
    **flags: _Flag,
) -> Plan: ...
@overload
def convert(
    input: _Path,
    output: _Path,
    *,
    to: str,
    progress: _Progress = None,
    dry_run: bool,
    **flags: _Flag,
) -> Union[Conversion, Plan]: ...
def plan(input: _Path, output: _Path, *, to: str, **flags: _Flag) -> Plan: ...
def verify(path: _Path, *, progress: _Progress = None, **flags: _Flag) -> Verification: ...
def diff(
    left: _Path, right: _Path, *, progress: _Progress = None, **flags: _Flag
) -> Difference: ...
def diagnose(path: _Path, **flags: _Flag) -> Diagnosis: ...
def locality(path: _Path, **flags: _Flag) -> Locality: ...
def hash(path: _Path, *, progress: _Progress = None, **flags: _Flag) -> Digests: ...
