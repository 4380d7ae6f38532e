# SPDX-License-Identifier: Apache-2.0
"""Saving and loading at training time, Megatron-Core's own strategies and ours side by side.

    PYTHONPATH=build/release/python build/venv/bin/python bench/training.py --mb 300

A GPT on a CPU, gloo, TP 2 and DP 2: each of five rounds does everything once, in processes of its
own and an order that alternates, and medians are told. A time is that of the slowest rank, memory
what processes that have done nothing before take at most beyond the model, those that they start
included. Needs what the interop tests need (torch, Megatron-Core 0.16.1).
"""
import argparse
import itertools
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import threading
import time
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
INTEROP = HERE.parent / "tests" / "interop"
TP, WORLD = 2, 4
SAVES = ["save", "async save, blocking"]
HIDDEN, WORDS = 1024, 32000


def layers_of(megabytes):
    """How many layers make a model of bf16 weights that large; embedding and head count."""
    layer = 2 * (4 + 12) * HIDDEN**2
    return max(1, round((megabytes * 1e6 - 2 * 2 * WORDS * HIDDEN) / layer))


def config(megabytes):
    return dict(
        model_type="llama",
        num_hidden_layers=layers_of(megabytes),
        hidden_size=HIDDEN,
        intermediate_size=4 * HIDDEN,
        num_attention_heads=16,
        num_key_value_heads=16,
        rms_norm_eps=1e-5,
        vocab_size=WORDS,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
    )


class Measured:
    """Seconds of the slowest rank."""

    def __enter__(self):
        import torch.distributed as dist

        dist.barrier()
        self._begun = time.monotonic()
        return self

    def __exit__(self, *_):
        import torch.distributed as dist

        self.seconds = greatest(time.monotonic() - self._begun, dist)


def greatest(value, dist):
    """Of all ranks."""
    import torch

    told = torch.tensor([float(value)], dtype=torch.float64)
    dist.all_reduce(told, op=dist.ReduceOp.MAX)
    return told.item()


class Peak:
    """The most memory that this process and its children have at a time, looked at in a thread: of
    what they share with others, their share."""

    def __enter__(self):
        self._before = self._most = self._now()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()
        self.megabytes = (self._most - self._before) / 1e6

    def _look(self):
        while not self._stopped.wait(0.03):
            self._most = max(self._most, self._now())

    @staticmethod
    def _now():
        own = os.getpid()
        children = pathlib.Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return sum(map(memory_of, (own, *children)))


def memory_of(process):
    """Bytes; none of a process that has just ended."""
    try:
        lines = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except OSError:
        return 0


class Bench:
    """The job of one rank."""

    def __init__(self, root, megabytes):
        import megatron_cpu
        import torch
        from megatron.core import parallel_state

        self.root = root
        megatron_cpu.join(tp=TP)
        self.megatron = megatron_cpu
        with mock.patch("torch.nn.init.normal_", lambda tensor, *_, **__: tensor):
            self.model = megatron_cpu.build(config(megabytes), "local")
        with torch.no_grad():
            for number, parameter in enumerate(self.model.parameters()):
                parameter.fill_(number)
        self.group = parallel_state.get_data_parallel_group(with_context_parallel=True)

    def strategies(self):
        from megatron.core.dist_checkpointing.strategies import fully_parallel, torch

        from shardwright.megatron import SaveStrategy

        stock = torch.TorchDistSaveShardedStrategy("torch_dist", 1)
        return {
            "stock": fully_parallel.FullyParallelSaveStrategyWrapper(stock, self.group),
            "ours": SaveStrategy(),
        }

    def save(self, folder, strategy, is_async, and_train=False):
        """Seconds. `and_train`: until it is written the weights change, as in training."""
        from megatron.core import dist_checkpointing
        from megatron.core.dist_checkpointing.strategies.async_utils import AsyncCallsQueue
        import torch

        self.fresh(folder)
        state = {"model": self.megatron.sharded(self.model)}
        queue = AsyncCallsQueue()
        with Measured() as measured:
            request = dist_checkpointing.save(
                state, folder, strategy, async_sharded_save=is_async
            )
            if is_async:
                queue.schedule_async_request(request)
        if and_train:
            with torch.no_grad():
                for parameter in self.model.parameters():
                    parameter.mul_(2)
        queue.maybe_finalize_async_calls(blocking=True)
        return measured.seconds

    def load(self, folder, name):
        from megatron.core import dist_checkpointing
        from megatron.core.dist_checkpointing.strategies import fully_parallel, torch

        strategy = torch.TorchDistLoadShardedStrategy()
        if name == "stock, fully parallel":
            strategy = fully_parallel.FullyParallelLoadStrategyWrapper(strategy, self.group)
        if name == "ours":
            from shardwright.megatron import LoadStrategy

            strategy = LoadStrategy(parallelization_group=self.group)
        state = {"model": self.megatron.sharded(self.model)}
        with Measured() as measured:
            dist_checkpointing.load(state, folder, strategy)
        return measured.seconds

    def fresh(self, folder):
        import torch.distributed as dist

        if dist.get_rank() == 0:
            shutil.rmtree(folder, ignore_errors=True)
            os.sync()  # what others wrote is nobody's time
            os.mkdir(folder)
        dist.barrier()


def run(root, megabytes, kinds, name):
    """Each kind twice, of which the first warms up. A process does it by nobody else's means: after
    a fork of one writer its pages are slower to write for all."""
    import torch.distributed as dist

    bench = Bench(root, megabytes)
    strategy = bench.strategies().get(name)
    found = {}
    for _ in range(2):
        for kind in kinds:
            folder = f"{root}/{'ours' if name == 'ours' else 'stock'}"
            found[kind] = (
                bench.load(folder, name)
                if kind == "load"
                else bench.save(folder, strategy, kind != "save")
            )
    if dist.get_rank() == 0:
        pathlib.Path(root, "results.json").write_text(json.dumps(found))


def look(root, megabytes, kind, name):
    """The same once, by processes that have done nothing before: how much memory it takes."""
    import torch.distributed as dist

    bench = Bench(root, megabytes)
    folder = f"{root}/{'ours' if name == 'ours' else 'stock'}"
    with Peak() as peak:
        if kind == "load":
            bench.load(folder, name)
        else:
            bench.save(f"{folder}.again", bench.strategies()[name], kind != "save", True)
    megabytes = greatest(peak.megabytes, dist)
    if dist.get_rank() == 0:
        shutil.rmtree(f"{folder}.again", ignore_errors=True)
        pathlib.Path(root, "memory.json").write_text(json.dumps(megabytes))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=int, default=300, help="size of the model in megabytes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default=None, help="where to save, for instance on a disk")
    options = parser.parse_args()
    sys.path.insert(0, str(INTEROP))
    import ranks
    import warm

    # The ranks run in another folder.
    more = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(":") if path]
    paths = [HERE, INTEROP, INTEROP / "tools", *more]
    environment = dict(os.environ, PYTHONPATH=":".join(map(str, paths)), OMP_NUM_THREADS="1")
    # As torchrun says of ranks that are all on one machine.
    environment["LOCAL_WORLD_SIZE"] = str(WORLD)
    tasks = [(SAVES, "stock"), (SAVES, "ours")]
    tasks += [(["load"], name) for name in ("stock", "stock, fully parallel", "ours")]
    rows = {}
    with tempfile.TemporaryDirectory(dir=options.dir) as root:
        # Both sides' processes are forked from the same one.
        server = pathlib.Path(root, "warm")
        warm.Server(server, os.getpid(), ["torch.distributed.checkpoint"])
        job = ranks.Ranks("training", environment, server)
        stores = (pathlib.Path(root, f"store.{number}") for number in itertools.count())
        common = dict(root=root, megabytes=options.mb)
        try:
            for number in range(options.rounds):
                # What is loaded must have been saved.
                order = tasks if number % 2 == 0 else tasks[::-1]
                for kinds, name in order:
                    what = dict(kinds=kinds, name=name, **common)
                    job.run("run", WORLD, next(stores), what, seconds=3600)
                    found = json.loads(pathlib.Path(root, "results.json").read_text())
                    for kind, seconds in found.items():
                        rows.setdefault((kind, name), []).append(seconds)
            memory = {}
            for kind, name in rows:
                what = dict(kind=kind, name=name, **common)
                job.run("look", WORLD, next(stores), what, seconds=3600)
                memory[kind, name] = json.loads(pathlib.Path(root, "memory.json").read_text())
        finally:
            job.close()
            warm.Server.end(server)
    seconds = {what: statistics.median(found) for what, found in rows.items()}
    whole = {"load": seconds["load", "stock, fully parallel"]}
    loads = os.getloadavg()[0]
    sizes = f"{options.mb} MB, TP {TP}, DP {WORLD // TP}"
    print(f"{sizes}, medians of {options.rounds}, load average {loads:.1f}")
    for kind, name in sorted(rows):
        share = seconds[kind, name] / whole.get(kind, seconds["save", "stock"])
        print(
            f"{kind:22}{name:24}{seconds[kind, name]:8.3f} s {share:6.2f} x "
            f"{memory[kind, name]:8.0f} MB more memory"
        )
    print("shares: of a whole save by Megatron-Core, of its fully parallel load")


if __name__ == "__main__":
    main()
