# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_own_files.py do: Megatron-Core's fully parallel save and load, with every
file that a rank opens counted."""
import json
import multiprocessing
import pathlib

import gpu_modules

gpu_modules.install()

import checkpoints  # noqa: E402
import megatron_cpu  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from megatron.core import dist_checkpointing, parallel_state  # noqa: E402
from megatron.core.dist_checkpointing import serialization  # noqa: E402
from megatron.core.dist_checkpointing.strategies import fully_parallel  # noqa: E402
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed  # noqa: E402

FAMILY = "llama3_4l"


class Reads:
    """Opens and bytes of this rank, of its own file and of others', while it loads."""

    def __init__(self):
        self.counts = dict.fromkeys(("opens", "bytes", "foreign_opens", "foreign_bytes"), 0)

    def __enter__(self):
        self.read_data = dcp.FileSystemReader.read_data
        own = f"__{dist.get_rank()}_"

        def counted(reader, plan, planner):
            opened = set()
            for item in plan.items:
                if item.storage_index.fqn.startswith("common_state/"):
                    continue  # later versions keep there what ours has in common.pt
                info = reader.storage_data[item.storage_index]
                opened.add(info.relative_path)
                foreign = not info.relative_path.startswith(own)
                self.counts["bytes"] += info.length
                self.counts["foreign_bytes"] += info.length * foreign
            self.counts["opens"] += len(opened)
            self.counts["foreign_opens"] += sum(not path.startswith(own) for path in opened)
            return self.read_data(reader, plan, planner)

        dcp.FileSystemReader.read_data = counted
        return self.counts

    def __exit__(self, *_):
        dcp.FileSystemReader.read_data = self.read_data


def data_ranks():
    return parallel_state.get_data_parallel_group(with_context_parallel=True)


def save(model, folder):
    """A fully parallel save of the weights, one file a rank."""
    if dist.get_rank() == 0:
        pathlib.Path(folder).mkdir()
    dist.barrier()
    strategy = serialization.get_default_save_sharded_strategy()
    assert hasattr(strategy, "thread_count")
    strategy.thread_count = 1
    strategy = fully_parallel.FullyParallelSaveStrategyWrapper(strategy, data_ranks())
    dist_checkpointing.save({"model": megatron_cpu.sharded(model)}, str(folder), strategy)
    dist.barrier()


def load(model, folder):
    """A fully parallel load of all that is there; returns what was read for it."""
    for parameter in model.parameters():
        parameter.data.fill_(-7.0)
    strategy = serialization.get_default_load_sharded_strategy(str(folder))
    strategy = fully_parallel.FullyParallelLoadStrategyWrapper(strategy, data_ranks())
    state = {"model": megatron_cpu.sharded(model)}
    with Reads() as counts:
        loaded = dist_checkpointing.load(state, str(folder), strategy, strict="raise_all")
    model.load_state_dict(loaded["model"], strict=False)
    return counts


def measure(root, tp, pp, folders):
    """What a save of Megatron's own and each of `folders` cost this rank to load."""
    try:
        counts = measured(root, tp, pp, folders)
    finally:
        for child in multiprocessing.active_children():  # the saver's
            child.kill()
    pathlib.Path(root, f"counts.{dist.get_rank()}").write_text(json.dumps(counts))


def measured(root, tp, pp, folders):
    parallel_state.initialize_model_parallel(tp, pp)
    model_parallel_cuda_manual_seed(1)
    hf = megatron_cpu.read_config(checkpoints.GOLDEN / "hf" / FAMILY / "hf")
    truth = checkpoints.truth(FAMILY)
    model = megatron_cpu.build(hf, "local")
    megatron_cpu.fill(model, truth)
    save(model, f"{root}/own")
    counts = {}
    for name in ("own", *folders):
        folder = f"{root}/own" if name == "own" else checkpoints.iteration_folder(f"{root}/{name}")
        counts[name] = load(model, folder)
        assert megatron_cpu.assert_holds(model, truth), "this rank holds nothing"
    return counts
