# SPDX-License-Identifier: Apache-2.0
"""Whether a stored value is intact, and whether unpickling it would run more than plain data needs."""
import _compat_pickle
import io
import pickle
import types
import zipfile

import torch

from ._errors import Error, make

_BUILTINS = (
    "bool bytearray bytes complex dict float frozenset int list object range set slice str tuple "
    "Ellipsis NotImplemented"
)
_NUMPY = (
    "multiarray._reconstruct multiarray.scalar multiarray._frombuffer numeric._frombuffer"
)
_NUMPY_RANDOM = "__randomstate_ctor __generator_ctor __bit_generator_ctor"
_GENERATORS = "mt19937.MT19937 pcg64.PCG64 pcg64.PCG64DXSM philox.Philox sfc64.SFC64"
# Making one of these, with any arguments and any state, does nothing else.
_PLAIN = {
    "_codecs.encode", "_io.BytesIO", "io.BytesIO", "copyreg._reconstructor",
    "argparse.Namespace", "types.SimpleNamespace", "random.Random", "uuid.UUID",
    "decimal.Decimal", "fractions.Fraction",
    *(f"builtins.{name}" for name in _BUILTINS.split()),
    *(f"collections.{name}" for name in ("Counter", "OrderedDict", "defaultdict", "deque")),
    *(f"datetime.{name}" for name in ("date", "datetime", "time", "timedelta", "timezone")),
    *(
        f"{module}.{kind}{system}Path"
        for module in ("pathlib", "pathlib._local")
        for kind in ("", "Pure")
        for system in ("Posix", "Windows")
    ),
    "numpy.ndarray", "numpy.dtype",
    *(f"numpy.{core}.{name}" for core in ("core", "_core") for name in _NUMPY.split()),
    *(f"numpy.random._pickle.{name}" for name in _NUMPY_RANDOM.split()),
    *(f"numpy.random._{name}" for name in _GENERATORS.split()),
}  # fmt: skip
# How protocol 2 spells modules of Python 3, and some of their names (`__builtin__.xrange`).
_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_NAMES = _compat_pickle.NAME_MAPPING


def check_plain(bytes_, where):
    """Raises where torch.load would call what is no plain data, without calling it (SW0224), and
    where it could not read the value (SW0223)."""
    allowed = _allowed()

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            as_now = _NAMES.get((module, name), (_MODULES.get(module, module), name))
            full = ".".join(as_now)
            if full in allowed:
                return super().find_class(module, name)
            raise make(
                "SW0224",
                f"{where}: unpickling it would import and may run {full}; if you trust this "
                "checkpoint, allow that with torch.serialization.add_safe_globals or all with "
                "weights_only=False",
            )

    def load(file, **options):
        return Unpickler(file, **options).load()

    restricted = types.SimpleNamespace(
        Unpickler=Unpickler, load=load, __name__="restricted", UnpicklingError=pickle.UnpicklingError
    )
    try:
        torch.load(
            io.BytesIO(bytes_), map_location="cpu", pickle_module=restricted, weights_only=False
        )
    except Error:
        raise
    except Exception as error:
        raise make("SW0223", f"{where}: torch cannot load this value: {error}") from error


def unpickled(bytes_, where):
    """What torch.load makes of a value, whatever that runs. Raises SW0223 where it can't."""
    try:
        return torch.load(io.BytesIO(bytes_), weights_only=False)
    except Exception as error:
        raise make("SW0223", f"{where}: torch cannot load this value: {error}") from error


def check_intact(bytes_, where):
    """Raises where a record of the archive is not what its CRC-32 says, which torch does not look
    at, or the archive is none that can be read (SW0314)."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(bytes_))
    except zipfile.BadZipFile:
        return  # torch says what is wrong with it
    except Exception as error:  # of what else its directory may say: places, names, versions
        raise make("SW0314", f"{where}: the archive's directory: {error}") from error
    for record in archive.infolist():
        if record.CRC == 0:  # torch may be told to compute none
            continue
        try:
            archive.read(record)
        except Exception as error:
            raise make("SW0314", f"{where}: record {record.filename}: {error}") from error


def _allowed():
    names = set(_PLAIN)
    try:
        from torch._weights_only_unpickler import _get_allowed_globals

        names.update(_get_allowed_globals())
    except ImportError:  # an internal name of torch's: without it only less is allowed
        pass
    for entry in getattr(torch.serialization, "get_safe_globals", list)():
        value, name = entry if isinstance(entry, tuple) else (entry, None)
        names.add(name or f"{value.__module__}.{value.__qualname__}")
    return names
