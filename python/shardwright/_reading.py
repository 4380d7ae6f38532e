# SPDX-License-Identifier: Apache-2.0
"""Reading tensors of a checkpoint, whatever its format."""
import html
import operator
import os
import threading
import warnings

from . import _core
from ._arguments import text_or_none
from ._errors import Error, UnknownNameError, make
from ._frameworks import framework_of
from ._naming import MEGATRON, STORED, reader_options
from ._tensors import Tensors


_SHOWN_ROWS = 40


class Checkpoint:
    """An open checkpoint; made by `shardwright.open`. May be used by several threads."""

    def __init__(self, path, framework="np", as_=None, *, names=STORED, device=None, **options):
        self._framework = framework_of(framework, device)
        self._path = os.fsencode(path)
        self._as = text_or_none("as_", as_)
        self._names = names
        self._reader = _core.Reader(self._path, self._as, names, **reader_options(**options))
        self._unreadable = self._reader.unreadable()
        self._objects = {name: at for at, name in enumerate(self._reader.objects())}
        stacks = names == MEGATRON or (names == STORED and self._reader.has_layer_stacks)
        self._named = Tensors(self._reader, stacks=stacks)
        self._megatron = None  # made when a name is asked for that is not stored
        self._megatron_reader = None
        self._no_megatron = None  # why there is none
        self._lock = threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, kind, *exception):
        try:
            if kind is None and self._reader is not None:
                self.check_unchanged()
        finally:
            self._close()

    def _close(self):
        """Names and shapes stay known; no file stays open, whoever still holds a tensor's place."""
        with self._lock:
            self._named.names_by_place()  # remembers them
            for reader in (self._reader, self._megatron_reader):
                if reader is not None:
                    reader.close()
            self._reader = None

    def __len__(self):
        return len(self._named)

    def __contains__(self, name):
        return self._is_unreadable(name) or self._find(name) is not None

    def __iter__(self):
        return iter(self.keys())

    def __repr__(self):
        if self._reader is None:
            return f"<shardwright.Checkpoint {os.fsdecode(self._path)!r}, closed>"
        return (
            f"<shardwright.Checkpoint {self._reader.path!r}: {self._reader.format}, "
            f"{len(self)} tensors>"
        )

    def _repr_html_(self):
        if self._reader is None:
            return html.escape(repr(self))
        facts = "".join(
            f"<tr><th style='text-align:left'>{html.escape(key)}</th>"
            f"<td style='text-align:left' colspan='2'>{html.escape(value)}</td></tr>"
            for key, value in self.metadata().items()
        )
        names = self.keys()
        rows = "".join(
            f"<tr><td style='text-align:left'>{html.escape(name)}</td>"
            f"<td>{html.escape(self.dtype_of(name))}</td><td>{list(self.shape_of(name))}</td></tr>"
            for name in names[:_SHOWN_ROWS]
        )
        if len(names) > _SHOWN_ROWS:
            rows += f"<tr><td colspan='3'>… {len(names) - _SHOWN_ROWS} more</td></tr>"
        return f"<table><caption>{len(names)} tensors</caption>{facts}{rows}</table>"

    def __getitem__(self, name):
        return self.get_tensor(name)

    def keys(self):
        return self._named.names()

    def offset_keys(self):
        """The names in the order in which their bytes lie in the files: the fastest to read in."""
        return self._named.names_by_place()

    def items(self):
        """Name and tensor, one after the other in the order of offset_keys(); each is read when it
        is asked for."""
        for name in self.offset_keys():
            yield name, self.get_tensor(name)

    def get_tensors(self):
        """All tensors by name. What they need in memory is what the checkpoint holds."""
        return dict(self.items())

    def object_keys(self):
        return sorted(self._objects)

    def document_keys(self):
        return self._open().documents()

    def get_document(self, name):
        _check_name("get_document", name)
        return self._open().read_document(_shown(name))

    def metadata(self):
        reader = self._open()
        facts = {"format": reader.format, "container": reader.container, "path": reader.path}
        if reader.iteration is not None:
            facts["iteration"] = str(reader.iteration)
        return facts

    def get_tensor(self, name):
        tensor = self._tensor(name)
        return self.read_box(name, (0,) * len(tensor.shape), tensor.shape)

    def get_slice(self, name):
        return Slice(self, self._tensor(name))

    def get_object(self, name):
        _check_name("get_object", name)
        if name not in self._objects:
            raise UnknownNameError("SW0900", f"object {_shown(name)}: no such name; see object_keys()")
        return self._open().read_object(self._objects[name])

    def read_box(self, name, origin, shape):
        origin, shape = _box_inside("read_box", origin, shape, self._tensor(name).shape)
        return self._framework.finish(self._read_box(name, origin, shape))

    def _read_box(self, name, origin, shape):
        tensor = self._tensor(name)
        target = self._framework.empty(shape, tensor.dtype, tensor.itemsize)
        self.read_into(name, origin, shape, self._framework.bytes_of(target))
        return target

    def _read_part(self, name, index):
        """What an index asks for, of the smallest box with it."""
        origin, extent, rest = _box_of(index, self._tensor(name).shape)
        return self._framework.finish(self._read_box(name, tuple(origin), tuple(extent))[rest])

    def read_into(self, name, origin, shape, buffer):
        tensor = self._tensor(name)
        self._open()
        origin, shape = _box_inside("read_into", origin, shape, tensor.shape)
        try:
            notes = tensor.read(list(origin), list(shape), buffer)
        except TypeError as error:
            raise TypeError(
                f"read_into: found {type(buffer).__name__}, expected memory that may be written: "
                "one dimension of uint8 without gaps, of NumPy or of torch on the CPU"
            ) from error
        for note in notes:
            warnings.warn(note, stacklevel=3)

    def check_unchanged(self):
        """Raises SW0111 unless every file that was read is still what it was when it was opened."""
        self._open().check_unchanged()
        if self._megatron_reader is not None:
            self._megatron_reader.check_unchanged()

    def shape_of(self, name):
        return self._tensor(name).shape

    def dtype_of(self, name):
        return self._tensor(name).dtype

    def _find(self, name):
        if not _may_be_name(name):
            return None
        found = self._named.find(name)
        if found is None and self._names == STORED:
            found = self._by_megatron().find(name)
        if found is None:
            self._open()  # a closed one no longer knows of all that it has
        return found

    def _is_unreadable(self, name):
        return isinstance(name, str) and name in self._unreadable

    def _tensor(self, name):
        if self._is_unreadable(name):
            raise make(*self._unreadable[name])
        found = self._find(name)
        if found is not None:
            return found
        text = f"tensor {_shown(name)}: no such name; see keys()"
        if self._no_megatron is not None:
            text += f"; Megatron's names are not known here, because: {self._no_megatron}"
            text += '; what tells them is an argument of open(names="megatron")'
        raise UnknownNameError("SW0900", text)

    def _by_megatron(self):
        # A family has to be found, and all tensors located: nothing for those who don't ask.
        with self._lock:
            if self._megatron is None:
                self._open()
                try:
                    self._megatron_reader = _core.Reader(self._path, self._as, MEGATRON)
                    self._megatron = Tensors(self._megatron_reader, stacks=True)
                except Error as error:
                    self._megatron = Tensors(None, stacks=False)
                    # Not the error itself: its traceback holds this checkpoint, and so its files.
                    self._no_megatron = str(error)
        return self._megatron

    def _open(self):
        if self._reader is None:
            raise ValueError("the checkpoint is closed")
        return self._reader


class Slice:
    """A tensor that is read when it is indexed, and only what is asked for."""

    def __init__(self, checkpoint, tensor):
        self._checkpoint = checkpoint
        self._tensor = tensor

    def __repr__(self):
        return f"<shardwright.Slice {self._tensor.name!r}: {self.get_dtype()} {self.get_shape()}>"

    def get_shape(self):
        return list(self._tensor.shape)

    def get_dtype(self):
        return self._tensor.safetensors_dtype or self._tensor.dtype

    def __getitem__(self, index):
        return self._checkpoint._read_part(self._tensor.name, index)


def _may_be_name(name):
    """No stored name has half a character, as `os.fsdecode` makes them of a path's bytes."""
    if not isinstance(name, str):
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(name):
    return str(name).encode(errors="backslashreplace").decode()


def _check_name(what, name):
    if not isinstance(name, str):
        raise TypeError(f"{what}: found {type(name).__name__}, expected a name (str)")


def _box_inside(what, origin, shape, whole):
    """Both as tuples of whole numbers. Raises TypeError for what is none, FormatError (SW0309) for a
    box that does not lie inside a tensor of the shape `whole`."""
    origin = _whole_numbers(f"{what}: origin", origin)
    shape = _whole_numbers(f"{what}: shape", shape)
    is_inside = len(origin) == len(shape) == len(whole) and all(
        0 <= first and 0 <= count <= size - first
        for first, count, size in zip(origin, shape, whole)
    )
    if not is_inside:
        text = f"box at {origin} of shape {shape} does not lie inside {tuple(whole)}"
        raise make("SW0309", text)
    return origin, shape


def _whole_numbers(what, values):
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        text = f"{what}: found {values!r}, expected a sequence of whole numbers"
        raise TypeError(text) from None


def _is_truth(part):
    """A bool of Python's, numpy's, torch's or any other library's arrays: `operator.index` takes
    some of them for 0 and 1."""
    return isinstance(part, bool) or str(getattr(part, "dtype", "")).rpartition(".")[2] == "bool"


def _box_of(index, shape):
    """The smallest box with what `index` asks for, and the index of that within the box."""
    parts = list(index) if isinstance(index, tuple) else [index]
    dots = [at for at, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index may hold one '...'")
    missing = len(shape) - (len(parts) - len(dots))
    if missing < 0:
        raise IndexError(f"{len(parts) - len(dots)} indices for {len(shape)} axes")
    at = dots[0] if dots else len(parts)
    parts[at : at + len(dots)] = [slice(None)] * missing
    origin, extent, rest = [], [], []
    for axis, (part, size) in enumerate(zip(parts, shape)):
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            if step < 0:
                raise IndexError(f"axis {axis}: the step {step} is not positive")
            count = len(range(start, stop, step))
            origin.append(start if count else 0)
            extent.append((count - 1) * step + 1 if count else 0)
            rest.append(slice(None, None, step))
            continue
        if _is_truth(part) or not hasattr(part, "__index__"):
            raise TypeError(f"axis {axis}: {part!r} is no whole number, slice or '...'")
        position = operator.index(part)
        if not -size <= position < size:
            raise IndexError(f"axis {axis}: {position} is outside its {size} elements")
        origin.append(position % size)
        extent.append(1)
        rest.append(0)
    return origin, extent, tuple(rest)
