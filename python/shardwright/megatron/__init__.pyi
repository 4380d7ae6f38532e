# SPDX-License-Identifier: Apache-2.0
import os
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Optional, Union

import torch.distributed as dist
from megatron.core.dist_checkpointing.strategies.torch import TorchDistSaveShardedStrategy

_Path = Union[str, "os.PathLike[str]"]

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

def enable(replicas: bool = True, locality: bool = True, async_save: bool = True) -> None: ...
def disable() -> None: ...
def enabled(
    replicas: bool = True, locality: bool = True, async_save: bool = True
) -> AbstractContextManager[None]: ...
def last_save() -> Optional[SaveReport]: ...
