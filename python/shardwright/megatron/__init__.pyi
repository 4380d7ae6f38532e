# SPDX-License-Identifier: Apache-2.0
import os
from typing import Any, Optional, Sequence, Union

import torch

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
_Model = Union[torch.nn.Module, Sequence[torch.nn.Module]]

def load_hf(
    model: _Model,
    path: _Path,
    *,
    as_: Optional[str] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    accept_loss: bool = False,
    replica: Optional[int] = None,
    source_ep: Optional[int] = None,
    source_etp: Optional[int] = None,
    source_tp: Optional[int] = None,
) -> None: ...
def save_hf(
    model: _Model, path: _Path, *, hf_config: _Path, overwrite: bool = False, **flags: Any
) -> None: ...
