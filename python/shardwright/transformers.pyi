# SPDX-License-Identifier: Apache-2.0
import os
from typing import Any, Literal, Optional, Sequence, Union

import torch
from transformers import PreTrainedModel

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

def from_pretrained(
    path: _Path,
    *,
    model_class: Optional[type[Any]] = None,
    dtype: Optional[torch.dtype] = None,
    device: Union[None, int, str, torch.device] = None,
    hf_config: Optional[_Path] = None,
    family: Optional[str] = None,
    map: Union[None, _Path, Sequence[_Path]] = None,
    mtp: Optional[Literal["keep", "drop"]] = None,
    accept_loss: bool = False,
    replica: Optional[int] = None,
    as_: Optional[str] = None,
    **model_options: Any,
) -> PreTrainedModel: ...
