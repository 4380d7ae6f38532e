# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_together.py do: DCP saves and loads of state that several of them hold."""
import json
import os
import pathlib

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from shardwright._loading import _exchange, _host_memory
from shardwright.torch import SavePlanner, StorageReader, StorageWriter


def state_of(seed, shards):
    """A model and its optimizer: sharded over `shards` ranks, the same on all others; what DDP
    has; values that are no tensors."""
    world = dist.get_world_size()
    mesh = init_device_mesh("cpu", (world // shards, shards))
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.Linear(6, 5, dtype=torch.float64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.25 / seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    weights, states = get_state_dict(model, optimizer)
    placements = (Replicate(), Shard(0))
    return {
        "model": {name: distribute_tensor(t, mesh, placements) for name, t in weights.items()},
        "optim": states,
        "raw": optimizer.state_dict(),
        "scalar": torch.tensor(float(seed)),
        "transposed": seed * torch.arange(35).reshape(7, 5).t(),
        "step": seed * 10,
        "nested": {"list": [seed, 0.5 / seed, {"text": f"seed {seed}"}]},
        "rng": torch.get_rng_state(),
    }


def equal(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(v, other[k]) for k, v in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, DTensor):
        return torch.equal(one.to_local(), other.to_local())
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return one == other


def save(path, shards):
    dcp.save(state_of(1, shards), storage_writer=StorageWriter(path), planner=SavePlanner())


def load(path, shards, root, **options):
    """Loads over another state; writes this rank's report."""
    truth, state = state_of(1, shards), state_of(2, shards)
    assert not equal(truth, state)
    reader = StorageReader(path, **options)
    dcp.load(state, storage_reader=reader)
    assert equal(state, truth)
    report = reader.last_load
    assert (report is None) != options.get("locality", False)
    told = json.dumps(report and report._asdict())
    pathlib.Path(root, f"report.{dist.get_rank()}").write_text(told)


def load_in_halves(path, root):
    """Two groups of two load at once, and then each rank alone."""
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    own = halves[dist.get_rank() // 2]
    truth = {"scalar": torch.tensor(1.0), "step": 10}
    state = {"scalar": torch.tensor(0.0), "step": 0}
    reader = StorageReader(path, locality=True, process_group=own)
    dcp.load(state, storage_reader=reader, process_group=own)
    assert equal(state, truth) and reader.last_load is not None
    reports = [None, None]
    dist.all_gather_object(reports, reader.last_load._asdict(), group=own)
    assert sum(report["received_bytes"] for report in reports) > 0
    assert sum(report["opens"] for report in reports) <= 2
    if dist.get_rank() == 1:  # nobody else takes part
        state = {"scalar": torch.tensor(0.0), "step": 0}
        alone = StorageReader(path, locality=True)
        dcp.load(state, storage_reader=alone, no_dist=True)
        assert equal(state, truth) and alone.last_load is None
    wrong = StorageReader(path, locality=True, process_group=own)
    try:
        dcp.load({"scalar": torch.tensor(0.0)}, storage_reader=wrong)
    except dcp.CheckpointException as error:
        assert "SW0900" in str(error) and "2 ranks" in str(error)
    else:
        raise AssertionError("a reader of another group was not refused")


def refused(path, text):
    """What is told on every rank of a load that fails on one."""
    try:
        dcp.load(state_of(2, 2), storage_reader=StorageReader(path, locality=True))
    except dcp.CheckpointException as error:
        assert text in str(error), error
    else:
        raise AssertionError("the load was not refused")


def load_compressed(path, truth):
    """Tensors and objects behind zstd; each rank decodes the objects that it needs."""
    truth = load_file(truth)
    state = {**{name: torch.zeros_like(tensor) for name, tensor in truth.items()}, "step": 0}
    reader = StorageReader(path, locality=True)
    dcp.load(state, storage_reader=reader)
    assert equal(state, {**truth, "step": 5}), state
    assert reader.last_load is not None


def exchanges_of(path, change=None):
    """How often the backend exchanges in a load that gives what was saved. `change`: of what is
    told of this rank's memory."""
    module, memory = _exchange.dist, _host_memory.HostMemory
    stock, told, calls = module.all_to_all_single, memory.told, []

    def counted(*arguments, **named):
        calls.append(1)
        return stock(*arguments, **named)

    module.all_to_all_single = counted
    if change is not None:
        memory.told = lambda own: change(*told(own))
    try:
        truth, state = state_of(1, 2), state_of(2, 2)
        reader = StorageReader(path, locality=True)
        dcp.load(state, storage_reader=reader)
    finally:
        module.all_to_all_single, memory.told = stock, told
    assert equal(state, truth) and reader.last_load.received_bytes > 0
    files = pathlib.Path("/proc/self/fd").iterdir()
    left = [os.readlink(file) for file in files if os.path.lexists(file)]
    assert not [name for name in left if "shardwright" in name], left
    return len(calls)


def reads_of(path, change=None):
    """How often this rank reads what another has in memory, in such a load."""
    memory, calls = _host_memory.HostMemory, []
    stock = memory.read

    def counted(self, *arguments):
        calls.append(1)
        stock(self, *arguments)

    memory.read = counted
    try:
        assert exchanges_of(path, change) == 0
    finally:
        memory.read = stock
    return len(calls)


def memory_taken(path, most=None):
    """Bytes that this rank takes for rounds through memory, where a round may take `most`."""
    memory, taken = _host_memory.HostMemory, []
    stock, stock_most = memory.take, _exchange._CACHED_BYTES

    def take(self, size):
        taken.append(size)
        stock(self, size)

    memory.take, _exchange._CACHED_BYTES = take, most or stock_most
    try:
        exchanges_of(path)
    finally:
        memory.take, _exchange._CACHED_BYTES = stock, stock_most
    return taken


def exchange(path):
    """Through memory where ranks find one another's, else over the backend, on all of them."""
    is_one = dist.get_rank() == 1

    def elsewhere(boot, process, *rest):
        return boot + "another" * is_one, process, *rest

    def in_a_container(boot, process, file, token, address):
        return boot, process, file, token[::-1] if is_one else token, address

    def out_of_sight(boot, process, *rest):
        return boot, 2**30 if is_one else process, *rest

    decoy = torch.zeros(16, dtype=torch.uint8)

    def mistaken(boot, process, file, token, address):
        return boot, process, file, token, decoy.data_ptr() if is_one else address

    assert reads_of(path) > 0, "ranks of one machine read one another's memory"
    assert reads_of(path, mistaken) == 0, "what is read there is something else"
    stock = _host_memory._sees
    _host_memory._sees = lambda told: not is_one and stock(told)
    assert reads_of(path) == 0, "one rank alone may not"
    assert max(memory_taken(path)) > 256
    assert max(memory_taken(path, 64)) <= 128, "a round takes what it may, and what aligns it"
    _host_memory._sees = stock
    for change in (elsewhere, in_a_container, out_of_sight):
        assert exchanges_of(path, change) > 0, change.__name__
    open_file = os.open

    def hidden(path, *arguments, **named):
        if str(path).startswith("/proc/"):
            raise PermissionError(1, "not allowed")
        return open_file(path, *arguments, **named)

    try:
        os.open = hidden if is_one else open_file
        assert exchanges_of(path) > 0, "one rank alone cannot look at the others"
    finally:
        os.open = open_file


def in_a_group(path):
    """Files are named after the ranks of the group that saves."""
    group = dist.new_group([1, 2])
    rank = dist.get_rank(group)
    if rank < 0:
        return
    mesh = DeviceMesh.from_group(group, "cpu")

    def state(whole, value):
        # Each of these is stored by one rank, and the other needs it too.
        alike = {f"same{number}": torch.full((64,), value * number) for number in range(1, 9)}
        return {"w": distribute_tensor(whole, mesh, (Shard(0),)), **alike}

    dcp.save(state(torch.arange(8.0), 1.0), storage_writer=StorageWriter(path), process_group=group)
    loaded = state(torch.zeros(8), 0.0)
    reader = StorageReader(path, locality=True, process_group=group)
    dcp.load(loaded, storage_reader=reader, process_group=group)
    assert torch.equal(loaded["w"].to_local(), torch.arange(8.0)[4 * rank : 4 * rank + 4])
    for number in range(1, 9):
        assert torch.equal(loaded[f"same{number}"], torch.full((64,), float(number)))
    report = reader.last_load
    assert (report.opens, report.foreign_opens) == (1, 0) and report.own_bytes > 0, report
    assert report.received_bytes > 0, "both have stored something that the other needs"
