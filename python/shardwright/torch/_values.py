# SPDX-License-Identifier: Apache-2.0
"""What is stored of a value."""
import io
from typing import NamedTuple

import torch

from .. import _core
from .._errors import make

_DENSE = (torch.Tensor, torch.nn.Parameter)


class Value(NamedTuple):
    """A tensor that is stored under a name, or bytes that are stored as they are."""

    name: str
    tensor: torch.Tensor  # may have no memory of what it stands for, see `dense`
    dtype: str  # torch's name of its type; "" of bytes

    @classmethod
    def of(cls, name, value):
        """`value` is a tensor or a `BytesIO`. Tensors of a class with a `dequantize` of its own
        (FP8 of Transformer Engine) stand for what that gives; quantised ones and the like become an
        archive of torch's. Raises SW0409 for what nobody could load."""
        if not isinstance(value, torch.Tensor):
            buffer = value.getbuffer()
            bytes_ = torch.frombuffer(buffer, dtype=torch.uint8) if buffer.nbytes else nothing()
            return cls(name, bytes_, "")
        tensor = value.detach()
        if _is_computed(tensor):
            return cls(name, tensor, _name_of(tensor.dtype))
        tensor = tensor.resolve_conj().resolve_neg()
        if type(tensor) not in _DENSE:
            tensor = tensor.cpu()  # which makes some dense, and is where the others are read back
        _check_alike(name, tensor, value)
        if not _is_dense(tensor):
            return cls.of(name, _archive_of(name, tensor))
        return cls(name, tensor.contiguous(), _name_of(tensor.dtype))

    @property
    def nbytes(self):
        """Of `dense`."""
        return self.tensor.nbytes

    def dense(self):
        """The tensor that is stored. Computed when it is asked for, and not kept: at once, those of
        a model whose weights are FP8 alone would take twice the memory that they have."""
        if not _is_computed(self.tensor):
            return self.tensor
        with torch.no_grad():
            tensor = self.tensor.dequantize()
        _check_alike(self.name, tensor, self.tensor)
        return tensor.detach().contiguous()


def nothing():
    return torch.empty(0, dtype=torch.uint8)


def _is_computed(tensor):
    own = type(tensor).dequantize
    return type(tensor) not in _DENSE and own is not torch.Tensor.dequantize


def _is_dense(tensor):
    is_plain = type(tensor) in _DENSE and tensor.layout == torch.strided
    return is_plain and _core.knows_dtype(_name_of(tensor.dtype))


def _archive_of(name, tensor):
    """What `torch.save` makes of a tensor of a type or class that only torch knows."""
    if tensor.layout != torch.strided:
        # torch's reader fills a copy of a sparse tensor that is then forgotten.
        raise make(
            "SW0409",
            f"tensor {name}: found layout {_name_of(tensor.layout)}, which dcp.load does not fill, "
            "expected a dense tensor; save to_dense()",
        )
    archive = io.BytesIO()
    try:
        torch.save(tensor, archive)
        archive.seek(0)
        # As torch's reader loads it.
        loaded = torch.load(archive, map_location="cpu", weights_only=True)
    except Exception as error:
        raise make(
            "SW0409",
            f"tensor {name}: found a {type(tensor).__name__}, which torch.load does not give back, "
            f"expected a dense tensor; save its values ({error})",
        ) from error
    _check_alike(name, loaded, tensor)
    return archive


def _check_alike(name, tensor, asked):
    """What `.metadata` says is the type and shape of the tensor that was asked for."""
    found, expected = (tensor.dtype, tensor.shape), (asked.dtype, asked.shape)
    if found != expected:
        raise make(
            "SW0409",
            f"tensor {name}: found {_kind(*found)} of a {type(asked).__name__}, expected "
            f"{_kind(*expected)}; save its values",
        )


def _kind(dtype, shape):
    return f"{_name_of(dtype)} {tuple(shape)}"


def _name_of(dtype):
    return str(dtype).partition(".")[2]
