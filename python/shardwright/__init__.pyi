# SPDX-License-Identifier: Apache-2.0
import os
from typing import Any, Callable, Mapping, Optional, Sequence, Union

_Path = Union[str, "os.PathLike[str]"]
_Progress = Optional[Callable[[int, int], object]]
_Flag = Union[None, bool, int, float, str, "os.PathLike[str]", Sequence[Any]]

__version__: str

class Error(Exception):
    code: str
    message: str
    def __init__(self, code: str, message: str) -> None: ...

class StorageError(Error): ...
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

    def __init__(self, path: _Path, framework: str = "np") -> None: ...
    def __enter__(self) -> Checkpoint: ...
    def __exit__(self, *exception: object) -> None: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: str) -> bool: ...
    def keys(self) -> list[str]:
        """The tensors' stored names, sorted."""
    def metadata(self) -> dict[str, str]:
        """`format`, `path` of the folder with the data, and `iteration` where the folder has one."""
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
    notes: list[str]

class Plan(_Result):
    source: Mapping[str, Any]
    target: Mapping[str, Any]
    family: str
    cost: Mapping[str, Any]
    notes: list[str]
    renames: list[Rename]

class Verification(_Result):
    path: str
    container: str
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

class Diagnosis(_Result):
    path: str
    container: str
    layout_class: str
    sizes: Mapping[str, Any]
    reason: str
    evidence: list[str]
    confidence: str
    complete: bool
    findings: list[Finding]

class Digests(_Result):
    algorithm: str
    names: str
    family: str
    digest: str
    notes: list[str]
    tensors: list[TensorDigest]

def open(path: _Path, framework: str = "np") -> Checkpoint: ...
def convert(
    input: _Path, output: _Path, *, to: str, progress: _Progress = None, **flags: _Flag
) -> Conversion: ...
def plan(input: _Path, output: _Path, *, to: str, **flags: _Flag) -> Plan: ...
def verify(path: _Path, *, progress: _Progress = None, **flags: _Flag) -> Verification: ...
def diff(
    left: _Path, right: _Path, *, progress: _Progress = None, **flags: _Flag
) -> Difference: ...
def diagnose(path: _Path, **flags: _Flag) -> Diagnosis: ...
def hash(path: _Path, *, progress: _Progress = None, **flags: _Flag) -> Digests: ...
