# SPDX-License-Identifier: Apache-2.0
"""What the commands give back: the documents of `--json`, with typed fields."""
import dataclasses
import html
import typing

_SHOWN = 5
# What JSON has no number for.
_NUMBERS = {text: float(text) for text in ("nan", "inf", "-inf")}


class _Result:
    """Fields by name; `to_dict()` is the whole document. True where the command's exit status is 0."""

    _succeeded = True

    @classmethod
    def of(cls, document, succeeded=True):
        values = {}
        for field in dataclasses.fields(cls):
            # What only some documents have is None in the others.
            value = document.get(field.name) if field.metadata.get("rare") else document[field.name]
            if field.metadata.get("real"):
                value = _NUMBERS.get(value, value)
            values[field.name] = _typed(field.metadata.get("item"), value)
        result = cls(**values)
        object.__setattr__(result, "_document", document)
        object.__setattr__(result, "_succeeded", succeeded)
        return result

    def __bool__(self):
        return self._succeeded

    def to_dict(self):
        return self._document

    def __repr__(self):
        fields = ", ".join(
            f"{field.name}={_short(getattr(self, field.name))}"
            for field in dataclasses.fields(self)
        )
        return f"{type(self).__name__}({fields})"

    def _repr_html_(self):
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(field.name)}</th>"
            f"<td style='text-align:left'>{_cell(self._document[field.name])}</td></tr>"
            for field in dataclasses.fields(self)
            if field.name in self._document
        )
        return f"<table><caption>{html.escape(type(self).__name__)}</caption>{rows}</table>"


def _typed(item, value):
    if item is None or value is None:
        return value
    return [item.of(element) for element in value]


def _cell(value):
    if isinstance(value, list):
        return "<br>".join(_cell(element) for element in value)
    if isinstance(value, dict):
        return html.escape(", ".join(f"{key}: {element}" for key, element in value.items()))
    return html.escape(str(value))


def _short(value):
    if not isinstance(value, list) or len(value) <= _SHOWN:
        return repr(value)
    return "[" + ", ".join(map(repr, value[:_SHOWN])) + f", ... {len(value) - _SHOWN} more]"


def _list_of(item):
    return dataclasses.field(metadata={"item": item})


def _rare():
    return dataclasses.field(metadata={"rare": True})


def _real():
    return dataclasses.field(metadata={"real": True})


_result = dataclasses.dataclass(frozen=True, repr=False)


@_result
class Finding(_Result):
    code: str
    severity: str
    message: str


@_result
class TensorDifference(_Result):
    tensor: str
    left: dict
    right: dict
    differing: int
    first: list
    max_delta: float = _real()


@_result
class TensorDigest(_Result):
    name: str
    dtype: str
    shape: list
    digest: str


@_result
class Locality(_Result):
    ranks: int
    tensors: int
    rules: dict
    metadata: dict
    objects: dict
    notes: list


@_result
class Rename(_Result):
    source: list
    target: str


@_result
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
    leftovers: list
    notes: list
    part: dict = _rare()


@_result
class Publication(_Result):
    output: str
    format: str
    family: str
    bytes_checked: int
    bytes_written: int
    files_written: int
    seconds: float
    leftovers: list
    notes: list


@_result
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
    leftovers: list
    notes: list


@_result
class Average(_Result):
    inputs: list
    weights: list
    output: str
    format: str
    family: str
    bytes_read: int
    bytes_written: int
    files_opened: int
    files_written: int
    seconds: float
    peak_memory_bytes: int
    leftovers: list
    notes: list


@_result
class Plan(_Result):
    source: dict
    target: dict
    family: str
    cost: dict
    replaced: list
    keeps_others: bool
    notes: list
    renames: typing.List[Rename] = _list_of(Rename)


@_result
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
    checks: list
    notes: list
    findings: typing.List[Finding] = _list_of(Finding)


@_result
class Difference(_Result):
    left: str
    right: str
    names: str
    family: str
    equal: bool
    compared: int
    elements: int
    bytes: int
    missing_left: list
    missing_right: list
    differing_elements: int
    max_delta: float = _real()
    settings: list
    notes: list
    differences: typing.List[TensorDifference] = _list_of(TensorDifference)


@_result
class Diagnosis(_Result):
    path: str
    container: str
    format: str
    layout_class: str
    sizes: dict
    reason: str
    evidence: list
    confidence: str
    complete: bool
    findings: typing.List[Finding] = _list_of(Finding)


@_result
class StoredTensor(_Result):
    name: str
    dtype: str
    shape: list
    encoding: str
    replicas: int
    stored_as: list
    chunks: list


@_result
class Inspection(_Result):
    path: str
    format: str
    reasons: list
    totals: dict
    objects: list
    pickles: list
    warnings: list
    notes: list
    container: typing.Optional[str] = _rare()
    iteration: typing.Optional[int] = _rare()
    arguments: typing.Optional[dict] = _rare()
    file_bytes: typing.Optional[int] = _rare()
    metadata: typing.Optional[dict] = _rare()
    counts: typing.Optional[dict] = _rare()
    values: typing.Optional[list] = _rare()
    tensors: typing.List[StoredTensor] = _list_of(StoredTensor)


@_result
class TensorReport(_Result):
    tensor: str
    stored_in: str
    dtype: str
    shape: list
    chunks: list
    values: list
    elements: int
    nan: int
    inf: int
    zero: int
    min: typing.Optional[float] = _real()
    max: typing.Optional[float] = _real()
    mean: typing.Optional[float] = _real()
    std: typing.Optional[float] = _real()


@_result
class Part(_Result):
    name: str
    path: str
    tensors: int
    bytes: int
    dtypes: dict


@_result
class MergeFinding(_Result):
    kind: str
    severity: str
    part: str
    text: str
    tensors: list


@_result
class Merge(_Result):
    family: str
    fits: bool
    written: bool
    output: typing.Optional[str] = _rare()
    bytes_written: typing.Optional[int] = _rare()
    files_written: typing.Optional[int] = _rare()
    seconds: typing.Optional[float] = _rare()
    leftovers: typing.Optional[list] = _rare()
    notes: typing.Optional[list] = _rare()
    parts: typing.List[Part] = _list_of(Part)
    findings: typing.List[MergeFinding] = _list_of(MergeFinding)


@_result
class Split(_Result):
    family: str
    output: str
    bytes_written: int
    files_written: int
    seconds: float
    leftovers: list
    notes: list
    parts: typing.List[Part] = _list_of(Part)


@_result
class Report(_Result):
    path: str
    output: str
    bytes: int
    tensors: int
    errors: int
    equal: typing.Optional[bool]
    failures: list


@_result
class Index(_Result):
    path: str
    backup: str
    written: bool
    tensors: int
    files: int
    total_bytes: int
    ghosts: list
    unlisted: list
    misplaced: list
    left_out: list


@_result
class Leftovers(_Result):
    path: str
    outputs: list


@_result
class Page(_Result):
    code: str
    title: str
    language: str
    text: str

    def __str__(self):
        return f"{self.code} {self.title}\n\n{self.text}"


@_result
class Digests(_Result):
    algorithm: str
    names: str
    family: str
    digest: str
    notes: list
    tensors: typing.List[TensorDigest] = _list_of(TensorDigest)
