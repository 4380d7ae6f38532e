#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times whole conversions beside the ways that people have without this program, see bench/peers.

    ./dev peers [--size-gib 1] [--runs 5] [--save]

Each task is done by both and by `cp -r`, in turns, from a warm page cache to data that is durable.
Their results must be the same, which `shardwright diff` says. Memory is what a process takes at
most; that of its imports counts, for who uses it needs them.
"""
import dataclasses
import datetime
import importlib.metadata
import json
import pathlib
import statistics
import sys

import checkpoints
import timing
from task_arguments import TaskArguments

HERE = pathlib.Path(__file__).resolve().parent
GIB = 1 << 30
RANKS = "4"


@dataclasses.dataclass
class Task:
    name: str
    source: str
    form: list  # what `convert` makes
    peer: str  # the script in bench/peers
    title: str


TASKS = [
    Task("dcp-to-safetensors", "dcp", ["--to", "safetensors"], "dcp_to_safetensors",
         "torch DCP: load, then safetensors.save_file"),
    Task("dcp-again", "dcp", ["--to", "dcp", "--shards", "1"], "dcp_again",
         "torch DCP: dcp.load, dcp.save"),
    Task("consolidate", "ranks", ["--to", "safetensors"], "consolidate",
         "torch DCP: consolidate_safetensors_files"),
    Task("safetensors-again", "hf", ["--to", "hf"], "safetensors_again",
         "safetensors: load_file, save_file"),
    Task("torch-again", "legacy", ["--to", "legacy", "--tp", "2"], "torch_again",
         "torch: torch.load, torch.save"),
]  # fmt: skip


def say(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


class Sources:
    """One generated model in all the forms that tasks begin with."""

    def __init__(self, work, binary, size_gib):
        self.work, self.binary = work, binary
        config = checkpoints.dense_config(int(size_gib * GIB))
        self.bytes = checkpoints.model_bytes(config)
        say(f"{self.bytes / GIB:.2f} GiB in {work}")
        checkpoints.generate(str(work), config)
        self._make("dcp", "--to", "dcp", "--shards", RANKS)
        self._make("legacy", "--to", "legacy", "--tp", "2")
        ranks = work / "ranks"
        timing.remove(ranks)
        ranks.mkdir()
        timing.run([sys.executable, str(HERE / "peers" / "make_ranks.py"), str(work / "hf"),
                    str(ranks), RANKS])  # fmt: skip

    def _make(self, name, *flags):
        timing.remove(self.work / name)
        timing.run([self.binary, "convert", str(self.work / "hf"), str(self.work / name), *flags])


class Comparison:
    def __init__(self, arguments, sources):
        self.arguments, self.sources = arguments, sources

    def commands(self, task):
        """Who does it: the command, and where its result lies."""
        work = self.sources.work
        source = str(work / task.source)
        ours, theirs = str(work / "ours"), str(work / "theirs")
        return {
            "shardwright": ([self.sources.binary, "convert", source, ours, *task.form], ours),
            "peer": ([sys.executable, str(HERE / "peers" / f"{task.peer}.py"), source, theirs],
                     theirs),
            "cp": (["cp", "-r", source, str(work / "copy")], str(work / "copy")),
        }  # fmt: skip

    def measure(self, task):
        commands = self.commands(task)
        seconds = {who: [] for who in commands}
        peaks = {who: 0 for who in commands}
        timing.warm(self.sources.work / task.source)
        for turn in range(self.arguments.runs):
            order = list(commands) if turn % 2 == 0 else list(commands)[::-1]
            for who in order:
                run = timing.durable(*commands[who])
                seconds[who].append(run.seconds)
                peaks[who] = max(peaks[who], run.peak_bytes)
        self._check(task, commands)
        for _, target in commands.values():
            timing.remove(target)
        medians = {who: statistics.median(values) for who, values in seconds.items()}
        said = ", ".join(f"{who} {medians[who]:.2f} s {peaks[who] / 2**20:.0f} MiB" for who in medians)
        say(f"{task.name}: {said}")
        return {"title": task.title, "seconds": seconds, "peak_bytes": peaks}

    def _check(self, task, commands):
        ours, theirs = commands["shardwright"][1], commands["peer"][1]
        try:
            timing.run([self.sources.binary, "diff", ours, theirs])
        except timing.Failed as failure:
            raise timing.Failed(f"{task.name}: the two results are not the same: {failure}") from None


def rows_of(document):
    """Per task: seconds by cp's and MiB, of ours and of the peer."""
    for name, task in document["tasks"].items():
        median = {who: statistics.median(values) for who, values in task["seconds"].items()}
        yield (name, task["title"], *(median[who] / median["cp"] for who in ("shardwright", "peer")),
               *(task["peak_bytes"][who] / 2**20 for who in ("shardwright", "peer")))  # fmt: skip


HEADINGS = ("Task", "Peer", "ours / cp", "peer / cp", "ours MiB", "peer MiB")


def table_of(document, headings=HEADINGS):
    yield f"| {' | '.join(headings)} |"
    yield "|---|---|---|---|---|---|"
    for name, title, ours, peer, ours_mib, peer_mib in rows_of(document):
        yield f"| {name} | {title} | {ours:.2f} | {peer:.2f} | {ours_mib:.0f} | {peer_mib:.0f} |"


def document_of(arguments, sources, tasks):
    return {
        "date": datetime.date.today().isoformat(),
        "program": timing.run([sources.binary, "--version"]).output.strip(),
        "torch": importlib.metadata.version("torch"),
        "safetensors": importlib.metadata.version("safetensors"),
        "machine": timing.machine(sources.work),
        "bytes": sources.bytes,
        "runs": arguments.runs,
        "tasks": tasks,
    }


def parse_arguments():
    tasks = [task.name for task in TASKS]
    parser = TaskArguments(__doc__, "peers", tasks, size_gib=1.0, runs=5)
    parser.add_argument("--save", action="store_true", help="also write bench/results/peers.json")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    timing.remove(arguments.work)
    arguments.work.mkdir(parents=True)
    try:
        sources = Sources(arguments.work, arguments.binary, arguments.size_gib)
        comparison = Comparison(arguments, sources)
        wanted = [task for task in TASKS if not arguments.only or task.name in arguments.only]
        document = document_of(
            arguments, sources, {task.name: comparison.measure(task) for task in wanted}
        )
    except timing.Failed as failure:
        sys.exit(f"peers: {failure}")
    finally:
        timing.remove(arguments.work)
    print("\n".join(table_of(document)))
    if arguments.save:
        path = HERE / "results" / "peers.json"
        path.write_text(json.dumps(document, indent=1) + "\n")
        say(f"wrote {path}")


if __name__ == "__main__":
    main()
