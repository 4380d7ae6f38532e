# SPDX-License-Identifier: Apache-2.0
import os
from typing import Any, Literal, Mapping, NamedTuple, Optional, Sequence, TypeVar, Union

import torch
from torch.distributed import ProcessGroup
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from torch.distributed.checkpoint.storage import StorageReader as _StorageReader
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.placement_types import Placement
from torch.futures import Future

from .._loading import LoadReport

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
_Tensor = TypeVar("_Tensor", bound=torch.Tensor)

class Placing(NamedTuple):
    is_expert: bool
    placements: tuple[Placement, ...]

class StorageReader(_StorageReader):
    def __init__(
        self,
        path: _Path,
        *,
        weights_only: bool = True,
        as_: Optional[str] = None,
        locality: bool = False,
        process_group: Optional[ProcessGroup] = None,
        replicas: Union[None, ProcessGroup, DeviceMesh] = None,
        names: Literal["stored", "megatron", "hf"] = "stored",
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
    @property
    def last_load(self) -> Optional[LoadReport]: ...
    @property
    def checkpoint_id(self) -> str: ...
    def reset(self, checkpoint_id: Union[str, "os.PathLike[str]", None] = None) -> None: ...
    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Union[str, "os.PathLike[str]"]) -> bool: ...
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata: ...
    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None: ...
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan: ...
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]: ...
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]: ...

class StorageWriter(FileSystemWriter):
    def __init__(
        self,
        path: _Path,
        *,
        replicas: Union[None, ProcessGroup, DeviceMesh] = None,
        overwrite: bool = False,
        thread_count: int = 0,
    ) -> None: ...

class SavePlanner(DefaultSavePlanner): ...

def placements_for(name: str, family: str) -> Placing: ...
def checkpoint_meshes(
    device_type: str, *, pp: int = 1, cp: int = 1, tp: int = 1, ep: int = 1, etp: int = 1
) -> tuple[DeviceMesh, DeviceMesh]: ...
def checkpoint_dtensor(
    param: torch.Tensor,
    mesh: DeviceMesh,
    placements: Sequence[Placement],
    *,
    name: str = "(unnamed)",
    fsdp_first: bool = False,
) -> DTensor: ...
def checkpoint_tensors(
    tensors: Mapping[str, torch.Tensor],
    family: str,
    dense: DeviceMesh,
    experts: DeviceMesh,
    *,
    fsdp_first: bool = False,
) -> dict[str, DTensor]: ...
def local_from_checkpoint(
    loaded: torch.Tensor, param: _Tensor, *, name: str = "(unnamed)"
) -> _Tensor: ...
