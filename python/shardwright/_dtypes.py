# SPDX-License-Identifier: Apache-2.0
"""numpy's types for the names that torch gives them."""
import numpy

# torch's name, where numpy's own name differs or ml_dtypes has the type.
_FROM_ML_DTYPES = {
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "float8_e4m3fnuz": "float8_e4m3fnuz",
    "float8_e5m2fnuz": "float8_e5m2fnuz",
    "float8_e8m0fnu": "float8_e8m0fnu",
}
_NONE = {"float4_e2m1fn_x2", "complex32"}


def to_numpy(name):
    """The numpy.dtype of torch's `name`. Raises TypeError where there is none here."""
    if name in _NONE:
        raise TypeError(f"numpy has no type for {name}; open the checkpoint with framework='pt'")
    if name not in _FROM_ML_DTYPES:
        return numpy.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(
            f"numpy has no {name} of its own; install ml_dtypes, or use framework='pt'"
        ) from None
    kind = getattr(ml_dtypes, _FROM_ML_DTYPES[name], None)
    if kind is None:
        raise TypeError(f"this ml_dtypes has no {name}; install a newer one, or use framework='pt'")
    return numpy.dtype(kind)
