# SPDX-License-Identifier: Apache-2.0
import os
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Optional, Sequence, Union

import torch
import torch.distributed as dist
from megatron.core.dist_checkpointing.strategies.torch import (
    TorchDistLoadShardedStrategy,
    TorchDistSaveShardedStrategy,
)

_Path = Union[str, "os.PathLike[str]"]
_Model = Union[torch.nn.Module, Sequence[torch.nn.Module]]

class SaveReport(NamedTuple):
    path: str
    opens: int
    own_bytes: int
    files: int
    items: int
    replicas: int
    staged_bytes: int
    blocking_seconds: float
    seconds: float

class SaveStrategy(TorchDistSaveShardedStrategy):
    def __init__(
        self,
        backend: str = "torch_dist",
        version: int = 1,
        *,
        replicas: bool = True,
        tp_group: Optional[dist.ProcessGroup] = None,
        dp_group: Optional[dist.ProcessGroup] = None,
        threads: int = 0,
        max_staging_bytes: int = ...,
        silent_seconds: float = 6.0,
        arrival_seconds: Optional[float] = None,
        **options: Any,
    ) -> None: ...
    def save(self, sharded_state_dict: dict[str, Any], checkpoint_dir: _Path) -> None: ...
    def async_save(
        self,
        sharded_state_dict: dict[str, Any],
        checkpoint_dir: _Path,
        async_strategy: str = "mcore",
    ) -> Any: ...
    def wait(self) -> None: ...

class LoadReport(NamedTuple):
    opens: int
    foreign_opens: int
    own_bytes: int
    foreign_bytes: int
    sent_bytes: int
    received_bytes: int
    seconds: float

class LoadStrategy(TorchDistLoadShardedStrategy):
    def __init__(
        self,
        parallelization_group: Optional[dist.ProcessGroup] = None,
        *,
        process_group: Optional[dist.ProcessGroup] = None,
        read_price: int = 1,
        sent_price: int = 1,
        round_bytes: int = ...,
        weights_only: bool = False,
    ) -> None: ...
    def load(
        self,
        sharded_state_dict: dict[str, Any],
        checkpoint_dir: _Path,
        async_strategy: str = "mcore",
    ) -> dict[str, Any]: ...

def enable(replicas: bool = True, locality: bool = True, async_save: bool = True) -> None: ...
def disable() -> None: ...
def enabled(
    replicas: bool = True, locality: bool = True, async_save: bool = True
) -> AbstractContextManager[None]: ...
def last_load() -> Optional[LoadReport]: ...
def last_save() -> Optional[SaveReport]: ...
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
