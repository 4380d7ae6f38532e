# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_any_names_torch.py do."""
import hf_models  # noqa: F401  keeps transformers off the network
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import transformers
from checkpoints import load_hf, same_bits
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from shardwright.torch import StorageReader


def bytes_read():
    """By this process, as the kernel counts them."""
    with open("/proc/self/io") as counts:
        return int(next(line.split()[1] for line in counts if line.startswith("rchar")))


class CountingReader(StorageReader):
    """Counts what reading tensors reads; opening and the messages between ranks are left out."""

    read = 0

    def read_data(self, plan, planner):
        before = bytes_read()
        future = super().read_data(plan, planner)
        self.read += bytes_read() - before
        return future


def sharded_model(folder):
    """FSDP2's model of a config.json, its values garbage."""
    config = transformers.AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = getattr(transformers, config.architectures[0])(config).to(config.dtype)
    for layer in model.model.layers:
        fully_shard(layer)
    fully_shard(model)
    model.to_empty(device="cpu")
    for parameter in model.parameters():
        parameter.detach().to_local().fill_(-7.0)
    return model


def load_by_hf_names(path, folder, options, counts):
    """`folder` has the config and the tensors that the shards must be parts of."""
    model = sharded_model(folder)
    state = model.state_dict()
    expected = load_hf(folder)
    assert set(state) == set(expected)
    reader = CountingReader(path, names="hf", **options)
    dcp.load(state, storage_reader=reader)
    model.load_state_dict(state)
    needed = 0
    for name, parameter in model.named_parameters():
        assert isinstance(parameter, DTensor), name
        needed += parameter.to_local().numel() * parameter.element_size()
        assert same_bits(parameter.full_tensor(), expected[name]), name
    if counts:
        assert needed < reader.read <= 1.05 * needed, f"read {reader.read}, needed {needed}"


def load_by_megatron_names(path, expected):
    """A state dict of Megatron's, each rank's rows of each stack, out of a Hugging Face model."""
    rank, world = dist.get_rank(), dist.get_world_size()
    truth = torch.load(expected)
    mesh = dist.device_mesh.init_device_mesh("cpu", (world,))
    shard = [dist.tensor.Shard(1)]
    state = {}
    for name, tensor in truth.items():
        if tensor.dim() > 2:
            local = torch.full_like(tensor.chunk(world, 1)[rank], -7.0)
            state[name] = DTensor.from_local(local, mesh, shard, run_check=False)
        else:
            state[name] = torch.full_like(tensor, -7.0)
    dcp.load(state, storage_reader=StorageReader(path, names="megatron"))
    for name, tensor in state.items():
        whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        assert same_bits(whole, truth[name]), name
