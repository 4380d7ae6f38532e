# SPDX-License-Identifier: Apache-2.0
import os
from typing import Any, Callable, Iterator, Literal, Mapping, Optional, Sequence, Union, overload

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
_Progress = Optional[Callable[[int, int], object]]
_Framework = Literal["np", "numpy", "pt", "torch", "pytorch", "dlpack"]
_Names = Literal["stored", "megatron", "hf"]
_Target = Literal["hf", "torch_dist", "legacy", "mimo", "fsdp_dtensor", "dcp", "safetensors"]
_Format = str
_Dtype = Literal["keep", "bfloat16", "float16", "float32"]
_Size = Union[int, str]

__version__: str

class Error(Exception):
    code: str
    message: str
    def __init__(self, code: str, message: str) -> None: ...

class StorageError(Error, OSError):
    def __init__(self, code: str, message: str) -> None: ...

class MissingError(StorageError, FileNotFoundError): ...
class AccessError(StorageError, PermissionError): ...
class ExistsError(StorageError, FileExistsError): ...
class OutOfMemoryError(StorageError, MemoryError): ...
class CodecError(Error, ValueError): ...
class FormatError(Error, ValueError): ...
class ModelError(Error, ValueError): ...
class PlanError(Error, ValueError): ...
class UsageError(Error, ValueError): ...
class UnknownNameError(UsageError, KeyError): ...

class Slice:
    """A tensor that is read when it is indexed: by integers, slices of positive steps and `...`."""

    def get_shape(self) -> list[int]: ...
    def get_dtype(self) -> str: ...
    def __init__(self, checkpoint: Checkpoint, tensor: Any) -> None: ...
    def __getitem__(self, index: Any) -> Any: ...

class Checkpoint:
    """An open checkpoint. May be used by several threads."""

    def __init__(
        self,
        path: _Path,
        framework: _Framework = "np",
        as_: Optional[str] = None,
        *,
        names: _Names = "stored",
        device: object = None,
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
    def offset_keys(self) -> list[str]:
        """The same in the order in which their bytes lie in the files: the fastest to read in."""
    def items(self) -> Iterator[tuple[str, Any]]:
        """Name and tensor in the order of offset_keys(); each is read when it is asked for."""
    def get_tensors(self) -> dict[str, Any]:
        """All tensors by name. What they need in memory is what the checkpoint holds."""
    def __getitem__(self, name: str) -> Any:
        """get_tensor(name)."""
    def _repr_html_(self) -> str: ...
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
    def to_dict(self) -> dict[str, Any]:
        """The whole document that `--json` prints."""
    def _repr_html_(self) -> str: ...
    def __bool__(self) -> bool:
        """Whether the program's exit status is 0."""

class Finding(_Result):
    code: str
    severity: str
    message: str

class TensorDifference(_Result):
    tensor: str
    left: dict[str, Any]
    right: dict[str, Any]
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
    part: Optional[dict[str, int]]

class Publication(_Result):
    output: str
    format: str
    family: str
    bytes_checked: int
    bytes_written: int
    files_written: int
    seconds: float
    leftovers: list[str]
    notes: list[str]

class AdapterMerge(_Result):
    base: str
    adapter: str
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

class Average(_Result):
    inputs: list[str]
    weights: list[float]
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
    source: dict[str, Any]
    target: dict[str, Any]
    family: str
    cost: dict[str, Any]
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
    settings: list[str]
    notes: list[str]
    differences: list[TensorDifference]

class Diagnosis(_Result):
    path: str
    container: str
    format: str
    layout_class: str
    sizes: dict[str, Optional[int]]
    reason: str
    evidence: list[str]
    confidence: str
    complete: bool
    findings: list[Finding]

class StoredTensor(_Result):
    name: str
    dtype: str
    shape: list[int]
    encoding: str
    replicas: int
    stored_as: list[str]
    chunks: list[dict[str, Any]]

class Inspection(_Result):
    path: str
    format: str
    reasons: list[str]
    totals: dict[str, Any]
    objects: list[dict[str, Any]]
    pickles: list[dict[str, str]]
    warnings: list[dict[str, str]]
    notes: list[str]
    container: Optional[str]
    iteration: Optional[int]
    arguments: Optional[dict[str, Any]]
    file_bytes: Optional[int]
    metadata: Optional[dict[str, Any]]
    counts: Optional[dict[str, Any]]
    values: Optional[list[Any]]
    tensors: list[StoredTensor]

class TensorReport(_Result):
    tensor: str
    stored_in: str
    dtype: str
    shape: list[int]
    chunks: list[dict[str, Any]]
    values: list[Any]
    elements: int
    nan: int
    inf: int
    zero: int
    min: Optional[float]
    max: Optional[float]
    mean: Optional[float]
    std: Optional[float]

class Part(_Result):
    name: str
    path: str
    tensors: int
    bytes: int
    dtypes: dict[str, int]

class MergeFinding(_Result):
    kind: str
    severity: str
    part: str
    text: str
    tensors: list[str]

class Merge(_Result):
    family: str
    fits: bool
    written: bool
    output: Optional[str]
    bytes_written: Optional[int]
    files_written: Optional[int]
    seconds: Optional[float]
    leftovers: Optional[list[str]]
    notes: Optional[list[str]]
    parts: list[Part]
    findings: list[MergeFinding]

class Split(_Result):
    family: str
    output: str
    bytes_written: int
    files_written: int
    seconds: float
    leftovers: list[str]
    notes: list[str]
    parts: list[Part]

class Report(_Result):
    path: str
    output: str
    bytes: int
    tensors: int
    errors: int
    equal: Optional[bool]
    failures: list[dict[str, Any]]

class Index(_Result):
    path: str
    backup: str
    written: bool
    tensors: int
    files: int
    total_bytes: int
    ghosts: list[str]
    unlisted: list[str]
    misplaced: list[str]
    left_out: list[str]

class Leftovers(_Result):
    path: str
    outputs: list[dict[str, Any]]

class Page(_Result):
    code: str
    title: str
    language: str
    text: str
    def __str__(self) -> str: ...

class Digests(_Result):
    algorithm: str
    names: str
    family: str
    digest: str
    notes: list[str]
    tensors: list[TensorDigest]

def open(
    path: _Path,
    framework: _Framework = "np",
    as_: Optional[str] = None,
    *,
    names: _Names = "stored",
    device: object = None,
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
    *,
    plan: _Path,
    part: str,
    progress: _Progress = None,
    threads: Optional[int] = None,
    max_memory: Optional[_Size] = None,
) -> Conversion: ...
@overload
def convert(
    input: _Path,
    output: _Path,
    *,
    to: _Target,
    progress: _Progress = None,
    as_: Optional[_Format] = None,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    vpp: Optional[int] = None,
    ep: Optional[int] = None,
    etp: Optional[int] = None,
    encoder_tp: Optional[int] = None,
    component: Union[None, str, Sequence[str]] = None,
    world_size: Optional[int] = None,
    shards: Optional[int] = None,
    mtp: Optional[str] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    include: Union[None, str, Sequence[str]] = None,
    exclude: Union[None, str, Sequence[str]] = None,
    dtype: Optional[_Dtype] = None,
    quantise: Optional[Literal["fp8-block", "fp8-block-ue8m0", "mxfp4"]] = None,
    adapter_names: Optional[Literal["bridge", "ms-swift"]] = None,
    spec: Optional[Literal["te", "local"]] = None,
    optimizer: Optional[Literal["keep", "drop"]] = None,
    check_replicas: Optional[Literal["all", "sample", "none"]] = None,
    tp_replicas: Optional[Literal["collapse", "expand"]] = None,
    dp: Optional[int] = None,
    for_: Optional[Literal["stock", "replicas"]] = None,
    naming: Optional[Literal["megatron", "tp_pp_ep"]] = None,
    make_vocab_size_divisible_by: Optional[int] = None,
    max_shard_size: Optional[_Size] = None,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
    max_memory: Optional[_Size] = None,
    digests: bool = False,
    sha256: bool = False,
    sign: Optional[_Path] = None,
    overwrite: bool = False,
    extend_vocab: Optional[int] = None,
    upcycle: Optional[str] = None,
    resume: bool = False,
    dry_run: Literal[False] = False,
) -> Conversion: ...
@overload
def convert(
    input: _Path,
    output: _Path,
    *,
    to: _Target,
    progress: _Progress = None,
    as_: Optional[_Format] = None,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    vpp: Optional[int] = None,
    ep: Optional[int] = None,
    etp: Optional[int] = None,
    encoder_tp: Optional[int] = None,
    component: Union[None, str, Sequence[str]] = None,
    world_size: Optional[int] = None,
    shards: Optional[int] = None,
    mtp: Optional[str] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    include: Union[None, str, Sequence[str]] = None,
    exclude: Union[None, str, Sequence[str]] = None,
    dtype: Optional[_Dtype] = None,
    quantise: Optional[Literal["fp8-block", "fp8-block-ue8m0", "mxfp4"]] = None,
    adapter_names: Optional[Literal["bridge", "ms-swift"]] = None,
    spec: Optional[Literal["te", "local"]] = None,
    optimizer: Optional[Literal["keep", "drop"]] = None,
    check_replicas: Optional[Literal["all", "sample", "none"]] = None,
    tp_replicas: Optional[Literal["collapse", "expand"]] = None,
    dp: Optional[int] = None,
    for_: Optional[Literal["stock", "replicas"]] = None,
    naming: Optional[Literal["megatron", "tp_pp_ep"]] = None,
    make_vocab_size_divisible_by: Optional[int] = None,
    max_shard_size: Optional[_Size] = None,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
    max_memory: Optional[_Size] = None,
    digests: bool = False,
    sha256: bool = False,
    sign: Optional[_Path] = None,
    overwrite: bool = False,
    extend_vocab: Optional[int] = None,
    upcycle: Optional[str] = None,
    resume: bool = False,
    dry_run: Literal[True],
) -> Plan: ...
@overload
def convert(
    input: _Path,
    output: _Path,
    *,
    to: _Target,
    progress: _Progress = None,
    as_: Optional[_Format] = None,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    vpp: Optional[int] = None,
    ep: Optional[int] = None,
    etp: Optional[int] = None,
    encoder_tp: Optional[int] = None,
    component: Union[None, str, Sequence[str]] = None,
    world_size: Optional[int] = None,
    shards: Optional[int] = None,
    mtp: Optional[str] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    include: Union[None, str, Sequence[str]] = None,
    exclude: Union[None, str, Sequence[str]] = None,
    dtype: Optional[_Dtype] = None,
    quantise: Optional[Literal["fp8-block", "fp8-block-ue8m0", "mxfp4"]] = None,
    adapter_names: Optional[Literal["bridge", "ms-swift"]] = None,
    spec: Optional[Literal["te", "local"]] = None,
    optimizer: Optional[Literal["keep", "drop"]] = None,
    check_replicas: Optional[Literal["all", "sample", "none"]] = None,
    tp_replicas: Optional[Literal["collapse", "expand"]] = None,
    dp: Optional[int] = None,
    for_: Optional[Literal["stock", "replicas"]] = None,
    naming: Optional[Literal["megatron", "tp_pp_ep"]] = None,
    make_vocab_size_divisible_by: Optional[int] = None,
    max_shard_size: Optional[_Size] = None,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
    max_memory: Optional[_Size] = None,
    digests: bool = False,
    sha256: bool = False,
    sign: Optional[_Path] = None,
    overwrite: bool = False,
    extend_vocab: Optional[int] = None,
    upcycle: Optional[str] = None,
    plan: Optional[_Path] = None,
    part: Optional[str] = None,
    resume: bool = False,
    dry_run: bool,
) -> Union[Conversion, Plan]: ...
def plan(
    input: _Path,
    output: _Path,
    *,
    to: _Target,
    as_: Optional[_Format] = None,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    vpp: Optional[int] = None,
    ep: Optional[int] = None,
    etp: Optional[int] = None,
    encoder_tp: Optional[int] = None,
    component: Union[None, str, Sequence[str]] = None,
    world_size: Optional[int] = None,
    shards: Optional[int] = None,
    mtp: Optional[str] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    include: Union[None, str, Sequence[str]] = None,
    exclude: Union[None, str, Sequence[str]] = None,
    dtype: Optional[_Dtype] = None,
    quantise: Optional[Literal["fp8-block", "fp8-block-ue8m0", "mxfp4"]] = None,
    adapter_names: Optional[Literal["bridge", "ms-swift"]] = None,
    spec: Optional[Literal["te", "local"]] = None,
    optimizer: Optional[Literal["keep", "drop"]] = None,
    check_replicas: Optional[Literal["all", "sample", "none"]] = None,
    tp_replicas: Optional[Literal["collapse", "expand"]] = None,
    dp: Optional[int] = None,
    for_: Optional[Literal["stock", "replicas"]] = None,
    naming: Optional[Literal["megatron", "tp_pp_ep"]] = None,
    make_vocab_size_divisible_by: Optional[int] = None,
    max_shard_size: Optional[_Size] = None,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
    max_memory: Optional[_Size] = None,
    digests: bool = False,
    sha256: bool = False,
    sign: Optional[_Path] = None,
    overwrite: bool = False,
    extend_vocab: Optional[int] = None,
    upcycle: Optional[str] = None,
    html: Optional[_Path] = None,
    save: Optional[_Path] = None,
    lang: Optional[Literal["en", "zh"]] = None,
) -> Plan: ...
def publish(
    plan: _Path,
    *,
    progress: _Progress = None,
    threads: Optional[int] = None,
    max_memory: Optional[_Size] = None,
) -> Publication: ...
def verify(
    path: _Path,
    *,
    progress: _Progress = None,
    against: Optional[_Path] = None,
    other_as: Optional[_Format] = None,
    public_key: Optional[_Path] = None,
    certificate_chain: Optional[_Path] = None,
    as_: Optional[_Format] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    vocab_size: Optional[int] = None,
    own_names: bool = False,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    threads: Optional[int] = None,
    lang: Optional[Literal["en", "zh"]] = None,
) -> Verification: ...
def diff(
    left: _Path,
    right: _Path,
    *,
    progress: _Progress = None,
    tolerance: Optional[float] = None,
    other_as: Optional[_Format] = None,
    as_: Optional[_Format] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    vocab_size: Optional[int] = None,
    own_names: bool = False,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
) -> Difference: ...
def hash(
    path: _Path,
    *,
    progress: _Progress = None,
    manifest: Optional[_Path] = None,
    as_: Optional[_Format] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    vocab_size: Optional[int] = None,
    own_names: bool = False,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
) -> Digests: ...
def diagnose(
    path: _Path,
    *,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    vpp: Optional[int] = None,
    ep: Optional[int] = None,
    etp: Optional[int] = None,
    as_: Optional[_Format] = None,
    check_replicas: bool = False,
    lang: Optional[Literal["en", "zh"]] = None,
) -> Diagnosis: ...
def locality(
    path: _Path,
    *,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    vpp: Optional[int] = None,
    dp: Optional[int] = None,
    ep: Optional[int] = None,
    etp: Optional[int] = None,
    optimizer: bool = False,
    as_: Optional[_Format] = None,
) -> Locality: ...
def inspect(
    path: _Path,
    *,
    as_: Optional[_Format] = None,
    tensors: Union[None, str, Sequence[str]] = None,
    depth: Optional[int] = None,
    limit: Optional[int] = None,
) -> Inspection: ...
def show(
    path: _Path,
    tensor: str,
    *,
    progress: _Progress = None,
    as_: Optional[_Format] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
) -> TensorReport: ...
def merge(
    output: _Path,
    parts: Mapping[str, _Path],
    *,
    config: _Path,
    progress: _Progress = None,
    without: Union[None, str, Sequence[str]] = None,
    as_: Optional[_Format] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    max_shard_size: Optional[_Size] = None,
    threads: Optional[int] = None,
    overwrite: bool = False,
    dry_run: bool = False,
) -> Merge: ...
def split(
    input: _Path,
    output: _Path,
    *,
    progress: _Progress = None,
    as_: Optional[_Format] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    max_shard_size: Optional[_Size] = None,
    threads: Optional[int] = None,
    overwrite: bool = False,
) -> Split: ...
@overload
def merge_adapter(
    base: _Path,
    adapter: _Path,
    output: _Path,
    *,
    to: _Target = "hf",
    progress: _Progress = None,
    as_: Optional[_Format] = None,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    vpp: Optional[int] = None,
    ep: Optional[int] = None,
    etp: Optional[int] = None,
    encoder_tp: Optional[int] = None,
    component: Union[None, str, Sequence[str]] = None,
    world_size: Optional[int] = None,
    shards: Optional[int] = None,
    mtp: Optional[str] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    include: Union[None, str, Sequence[str]] = None,
    exclude: Union[None, str, Sequence[str]] = None,
    dtype: Optional[_Dtype] = None,
    quantise: Optional[Literal["fp8-block", "fp8-block-ue8m0", "mxfp4"]] = None,
    spec: Optional[Literal["te", "local"]] = None,
    optimizer: Optional[Literal["keep", "drop"]] = None,
    check_replicas: Optional[Literal["all", "sample", "none"]] = None,
    tp_replicas: Optional[Literal["collapse", "expand"]] = None,
    dp: Optional[int] = None,
    for_: Optional[Literal["stock", "replicas"]] = None,
    naming: Optional[Literal["megatron", "tp_pp_ep"]] = None,
    make_vocab_size_divisible_by: Optional[int] = None,
    max_shard_size: Optional[_Size] = None,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
    max_memory: Optional[_Size] = None,
    digests: bool = False,
    sha256: bool = False,
    sign: Optional[_Path] = None,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: Literal[False] = False,
    save: None = None,
) -> AdapterMerge: ...
@overload
def merge_adapter(
    base: _Path,
    adapter: _Path,
    output: _Path,
    *,
    to: _Target = "hf",
    progress: _Progress = None,
    as_: Optional[_Format] = None,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    vpp: Optional[int] = None,
    ep: Optional[int] = None,
    etp: Optional[int] = None,
    encoder_tp: Optional[int] = None,
    component: Union[None, str, Sequence[str]] = None,
    world_size: Optional[int] = None,
    shards: Optional[int] = None,
    mtp: Optional[str] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    include: Union[None, str, Sequence[str]] = None,
    exclude: Union[None, str, Sequence[str]] = None,
    dtype: Optional[_Dtype] = None,
    quantise: Optional[Literal["fp8-block", "fp8-block-ue8m0", "mxfp4"]] = None,
    spec: Optional[Literal["te", "local"]] = None,
    optimizer: Optional[Literal["keep", "drop"]] = None,
    check_replicas: Optional[Literal["all", "sample", "none"]] = None,
    tp_replicas: Optional[Literal["collapse", "expand"]] = None,
    dp: Optional[int] = None,
    for_: Optional[Literal["stock", "replicas"]] = None,
    naming: Optional[Literal["megatron", "tp_pp_ep"]] = None,
    make_vocab_size_divisible_by: Optional[int] = None,
    max_shard_size: Optional[_Size] = None,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
    max_memory: Optional[_Size] = None,
    digests: bool = False,
    sha256: bool = False,
    sign: Optional[_Path] = None,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: Literal[True],
    save: Optional[_Path] = None,
) -> Plan: ...
@overload
def merge_adapter(
    base: _Path,
    adapter: _Path,
    output: _Path,
    *,
    to: _Target = "hf",
    progress: _Progress = None,
    as_: Optional[_Format] = None,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    vpp: Optional[int] = None,
    ep: Optional[int] = None,
    etp: Optional[int] = None,
    encoder_tp: Optional[int] = None,
    component: Union[None, str, Sequence[str]] = None,
    world_size: Optional[int] = None,
    shards: Optional[int] = None,
    mtp: Optional[str] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    include: Union[None, str, Sequence[str]] = None,
    exclude: Union[None, str, Sequence[str]] = None,
    dtype: Optional[_Dtype] = None,
    quantise: Optional[Literal["fp8-block", "fp8-block-ue8m0", "mxfp4"]] = None,
    spec: Optional[Literal["te", "local"]] = None,
    optimizer: Optional[Literal["keep", "drop"]] = None,
    check_replicas: Optional[Literal["all", "sample", "none"]] = None,
    tp_replicas: Optional[Literal["collapse", "expand"]] = None,
    dp: Optional[int] = None,
    for_: Optional[Literal["stock", "replicas"]] = None,
    naming: Optional[Literal["megatron", "tp_pp_ep"]] = None,
    make_vocab_size_divisible_by: Optional[int] = None,
    max_shard_size: Optional[_Size] = None,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
    max_memory: Optional[_Size] = None,
    digests: bool = False,
    sha256: bool = False,
    sign: Optional[_Path] = None,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: bool,
    save: Optional[_Path] = None,
) -> Union[AdapterMerge, Plan]: ...
@overload
def average(
    inputs: Sequence[_Path],
    output: _Path,
    *,
    to: _Target = "hf",
    weights: Union[None, str, Sequence[float]] = None,
    progress: _Progress = None,
    as_: Optional[_Format] = None,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    vpp: Optional[int] = None,
    ep: Optional[int] = None,
    etp: Optional[int] = None,
    encoder_tp: Optional[int] = None,
    component: Union[None, str, Sequence[str]] = None,
    world_size: Optional[int] = None,
    shards: Optional[int] = None,
    mtp: Optional[str] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    include: Union[None, str, Sequence[str]] = None,
    exclude: Union[None, str, Sequence[str]] = None,
    dtype: Optional[_Dtype] = None,
    spec: Optional[Literal["te", "local"]] = None,
    optimizer: Optional[Literal["keep", "drop"]] = None,
    check_replicas: Optional[Literal["all", "sample", "none"]] = None,
    tp_replicas: Optional[Literal["collapse", "expand"]] = None,
    dp: Optional[int] = None,
    for_: Optional[Literal["stock", "replicas"]] = None,
    naming: Optional[Literal["megatron", "tp_pp_ep"]] = None,
    make_vocab_size_divisible_by: Optional[int] = None,
    max_shard_size: Optional[_Size] = None,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
    max_memory: Optional[_Size] = None,
    digests: bool = False,
    sha256: bool = False,
    sign: Optional[_Path] = None,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: Literal[False] = False,
    save: None = None,
) -> Average: ...
@overload
def average(
    inputs: Sequence[_Path],
    output: _Path,
    *,
    to: _Target = "hf",
    weights: Union[None, str, Sequence[float]] = None,
    progress: _Progress = None,
    as_: Optional[_Format] = None,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    vpp: Optional[int] = None,
    ep: Optional[int] = None,
    etp: Optional[int] = None,
    encoder_tp: Optional[int] = None,
    component: Union[None, str, Sequence[str]] = None,
    world_size: Optional[int] = None,
    shards: Optional[int] = None,
    mtp: Optional[str] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    include: Union[None, str, Sequence[str]] = None,
    exclude: Union[None, str, Sequence[str]] = None,
    dtype: Optional[_Dtype] = None,
    spec: Optional[Literal["te", "local"]] = None,
    optimizer: Optional[Literal["keep", "drop"]] = None,
    check_replicas: Optional[Literal["all", "sample", "none"]] = None,
    tp_replicas: Optional[Literal["collapse", "expand"]] = None,
    dp: Optional[int] = None,
    for_: Optional[Literal["stock", "replicas"]] = None,
    naming: Optional[Literal["megatron", "tp_pp_ep"]] = None,
    make_vocab_size_divisible_by: Optional[int] = None,
    max_shard_size: Optional[_Size] = None,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
    max_memory: Optional[_Size] = None,
    digests: bool = False,
    sha256: bool = False,
    sign: Optional[_Path] = None,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: Literal[True],
    save: Optional[_Path] = None,
) -> Plan: ...
@overload
def average(
    inputs: Sequence[_Path],
    output: _Path,
    *,
    to: _Target = "hf",
    weights: Union[None, str, Sequence[float]] = None,
    progress: _Progress = None,
    as_: Optional[_Format] = None,
    tp: Optional[int] = None,
    pp: Optional[int] = None,
    vpp: Optional[int] = None,
    ep: Optional[int] = None,
    etp: Optional[int] = None,
    encoder_tp: Optional[int] = None,
    component: Union[None, str, Sequence[str]] = None,
    world_size: Optional[int] = None,
    shards: Optional[int] = None,
    mtp: Optional[str] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    include: Union[None, str, Sequence[str]] = None,
    exclude: Union[None, str, Sequence[str]] = None,
    dtype: Optional[_Dtype] = None,
    spec: Optional[Literal["te", "local"]] = None,
    optimizer: Optional[Literal["keep", "drop"]] = None,
    check_replicas: Optional[Literal["all", "sample", "none"]] = None,
    tp_replicas: Optional[Literal["collapse", "expand"]] = None,
    dp: Optional[int] = None,
    for_: Optional[Literal["stock", "replicas"]] = None,
    naming: Optional[Literal["megatron", "tp_pp_ep"]] = None,
    make_vocab_size_divisible_by: Optional[int] = None,
    max_shard_size: Optional[_Size] = None,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
    max_memory: Optional[_Size] = None,
    digests: bool = False,
    sha256: bool = False,
    sign: Optional[_Path] = None,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: bool,
    save: Optional[_Path] = None,
) -> Union[Average, Plan]: ...
def report(
    path: _Path,
    other: Optional[_Path] = None,
    *,
    output: _Path,
    progress: _Progress = None,
    statistics: bool = False,
    verify: bool = False,
    tolerance: Optional[float] = None,
    other_as: Optional[_Format] = None,
    as_: Optional[_Format] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    vocab_size: Optional[int] = None,
    own_names: bool = False,
    accept_loss: bool = False,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
    replica: Optional[int] = None,
    threads: Optional[int] = None,
    lang: Optional[Literal["en", "zh"]] = None,
    overwrite: bool = False,
    open: bool = False,
) -> Report: ...
def index(path: _Path) -> Index: ...
def clean(path: _Path, *, remove: bool = False) -> Leftovers: ...
def explain(
    code: str,
    *,
    lang: Optional[Literal["en", "zh"]] = None,
) -> Page: ...
