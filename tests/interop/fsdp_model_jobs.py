# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_fsdp_models.py save: real FSDP and FSDP2, with gloo on CPUs."""
import pathlib

import hf_models  # noqa: F401  keeps transformers off the network
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import transformers
from checkpoints import load_hf
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, StateDictType, fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor


def whole_model(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    model = getattr(transformers, config.architectures[0])(config).to(config.dtype)
    model.load_state_dict(load_hf(folder))
    return model


def fsdp2_model(folder, mesh):
    model = whole_model(folder)
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def stepped(model):
    """An optimizer with states that has changed no weight."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.0)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return optimizer


def save_rank(state, folder):
    """As verl does it."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    world, rank = dist.get_world_size(), dist.get_rank()
    torch.save(state, folder / f"model_world_size_{world}_rank_{rank}.pt")


def save_fsdp2(folder, out):
    """One save in each form in which people nest state dicts."""
    model = fsdp2_model(folder, init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = stepped(model)
    weights = get_model_state_dict(model)
    states = get_optimizer_state_dict(model, optimizer)
    dcp.save(weights, checkpoint_id=f"{out}/bare")
    dcp.save({"model": weights, "optimizer": states}, checkpoint_id=f"{out}/model")
    dcp.save({"app": {"model": weights, "optim": states}}, checkpoint_id=f"{out}/app")
    dcp.save({**weights, "optimizer": states, "train_state": {"step": torch.tensor(7)}},
             checkpoint_id=f"{out}/flat")  # fmt: skip
    wrapped = {f"module._orig_mod.{name}": tensor for name, tensor in weights.items()}
    dcp.save(wrapped, checkpoint_id=f"{out}/wrapped")
    dcp.save({"model": weights, "ema": weights}, checkpoint_id=f"{out}/two")
    lacking = {k: v for k, v in weights.items() if k != "model.norm.weight"}
    dcp.save({"model": lacking}, checkpoint_id=f"{out}/lacking")
    save_rank(model.state_dict(), f"{out}/verl/global_step_5/actor")
    torch.save(optimizer.state_dict(), f"{out}/verl/global_step_5/actor/"
               f"optim_world_size_{dist.get_world_size()}_rank_{dist.get_rank()}.pt")  # fmt: skip


def save_ranks(folder, out, shape):
    """FSDP2 over a mesh of that shape: of two axes, the first one replicates."""
    names = ("replicate", "shard")[-len(shape) :]
    model = fsdp2_model(folder, init_device_mesh("cpu", tuple(shape), mesh_dim_names=names))
    save_rank(model.state_dict(), out)


def save_fsdp1(folder, out):
    model = FullyShardedDataParallel(
        whole_model(folder), use_orig_params=True, device_id=torch.device("cpu")
    )
    for kind in (StateDictType.SHARDED_STATE_DICT, StateDictType.LOCAL_STATE_DICT):
        with FullyShardedDataParallel.state_dict_type(model, kind):
            state = model.state_dict()
            if kind == StateDictType.SHARDED_STATE_DICT:
                dcp.save({"model": state}, checkpoint_id=f"{out}/dcp")
            save_rank(state, f"{out}/{kind.name}")
    flat = FullyShardedDataParallel(whole_model(folder), use_orig_params=False, device_id=torch.device("cpu"))
    with FullyShardedDataParallel.state_dict_type(flat, StateDictType.LOCAL_STATE_DICT):
        save_rank(flat.state_dict(), f"{out}/flat")


def save_on_some(out, ranks):
    """Tensors on a mesh of the first `ranks`; the others pickle that they have nothing of them."""
    mesh = DeviceMesh("cpu", torch.arange(ranks))
    whole = torch.arange(10.0)
    if dist.get_rank() < ranks:
        sharded = distribute_tensor(whole, mesh, [Shard(0)], src_data_rank=None)
    else:
        sharded = DTensor.from_local(torch.empty(0), mesh, [Shard(0)], shape=whole.shape, stride=(1,))
    save_rank({"sharded": sharded, "plain": torch.ones(2)}, out)
