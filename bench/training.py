# SPDX-License-Identifier: Apache-2.0
"""Saving and loading at training time, Megatron-Core's own strategies and ours side by side.

    PYTHONPATH=build/release/python build/venv/bin/python bench/training.py --mb 300

A GPT on a CPU, gloo, TP 2 and DP 2: each of five rounds does everything once, in an order that
alternates, and medians are told. A time is that of the slowest rank. Needs what the interop tests
need (torch, Megatron-Core 0.16.1).
"""
import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
INTEROP = HERE.parent / "tests" / "interop"
TP, WORLD = 2, 4
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
    """Seconds of the slowest rank, and the most memory that this rank had meanwhile."""

    def __enter__(self):
        import torch.distributed as dist

        pathlib.Path("/proc/self/clear_refs").write_text("5")
        self._memory = memory("VmRSS")
        dist.barrier()
        self._begun = time.monotonic()
        return self

    def __exit__(self, *_):
        import torch
        import torch.distributed as dist

        seconds = torch.tensor([time.monotonic() - self._begun])
        more = torch.tensor([float(memory("VmHWM") - self._memory)])
        dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
        dist.all_reduce(more, op=dist.ReduceOp.MAX)
        self.result = dict(seconds=seconds.item(), megabytes=more.item() / 1e6)


def memory(what):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(what))
    return 1024 * int(line.split()[1])


class Bench:
    """The job of one rank."""

    def __init__(self, root, megabytes):
        import megatron_cpu
        import torch
        from megatron.core import parallel_state

        self.root = root
        megatron_cpu.join(tp=TP)
        torch.manual_seed(1)
        self.megatron = megatron_cpu
        self.model = megatron_cpu.build(config(megabytes), "local")
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.copy_(torch.rand_like(parameter))
        self.group = parallel_state.get_data_parallel_group(with_context_parallel=True)

    def strategies(self):
        from megatron.core.dist_checkpointing.strategies import fully_parallel, torch

        from shardwright.megatron import SaveStrategy

        stock = torch.TorchDistSaveShardedStrategy("torch_dist", 1)
        return {
            "stock": fully_parallel.FullyParallelSaveStrategyWrapper(stock, self.group),
            "ours": SaveStrategy(),
        }

    def save(self, folder, strategy, is_async):
        from megatron.core import dist_checkpointing
        from megatron.core.dist_checkpointing.strategies.async_utils import AsyncCallsQueue

        self.fresh(folder)
        state = {"model": self.megatron.sharded(self.model)}
        queue = AsyncCallsQueue()
        with Measured() as measured:
            request = dist_checkpointing.save(
                state, folder, strategy, async_sharded_save=is_async
            )
            if is_async:
                queue.schedule_async_request(request)
        queue.maybe_finalize_async_calls(blocking=True)
        return measured.result

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
        return measured.result

    def fresh(self, folder):
        import torch.distributed as dist

        if dist.get_rank() == 0:
            shutil.rmtree(folder, ignore_errors=True)
            os.sync()  # what others wrote is nobody's time
            os.mkdir(folder)
        dist.barrier()


def run(root, megabytes, rounds, loads):
    import torch.distributed as dist

    bench = Bench(root, megabytes)
    strategies = bench.strategies()
    results = {}
    for number in range(rounds + 1):
        names = list(strategies) if number % 2 else list(reversed(strategies))
        for name in names:
            for is_async in (False, True):
                kind = "async save, blocking" if is_async else "save"
                found = bench.save(f"{root}/{name}", strategies[name], is_async)
                if number:  # the first round warms up
                    results.setdefault((kind, name), []).append(found)
        for name in loads if number % 2 else reversed(loads):
            found = bench.load(f"{root}/{'ours' if name == 'ours' else 'stock'}", name)
            if number:
                results.setdefault(("load", name), []).append(found)
    if dist.get_rank() == 0:
        rows = [[*what, *medians(found)] for what, found in results.items()]
        pathlib.Path(root, "results.json").write_text(json.dumps(rows))


def medians(found):
    return [statistics.median(one[unit] for one in found) for unit in ("seconds", "megabytes")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=int, default=300, help="size of the model in megabytes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default=None, help="where to save, for instance on a disk")
    options = parser.parse_args()
    sys.path.insert(0, str(INTEROP))
    import ranks

    paths = [HERE, INTEROP, INTEROP / "tools", *os.environ.get("PYTHONPATH", "").split(":")]
    environment = dict(os.environ, PYTHONPATH=":".join(map(str, paths)), OMP_NUM_THREADS="1")
    loads = ["stock", "stock, fully parallel"]
    if importlib.util.find_spec("shardwright.megatron._load"):
        loads.append("ours")
    with tempfile.TemporaryDirectory(dir=options.dir) as root:
        job = ranks.Ranks("training", environment)
        arguments = dict(root=root, megabytes=options.mb, rounds=options.rounds, loads=loads)
        try:
            job.run("run", WORLD, pathlib.Path(root, "store"), arguments, seconds=3600)
        finally:
            job.close()
        rows = json.loads(pathlib.Path(root, "results.json").read_text())
    stock = {kind: seconds for kind, name, seconds, _ in rows if name.startswith("stock")}
    print(f"{options.mb} MB, TP {TP}, DP {WORLD // TP}, medians of {options.rounds}")
    for kind, name, seconds, megabytes in sorted(rows):
        share = seconds / stock[kind]
        print(f"{kind:22}{name:24}{seconds:8.3f} s {share:6.2f} x {megabytes:8.0f} MB more memory")


if __name__ == "__main__":
    main()
