#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times conversions with 1 to 16 threads beside `cp -r` and `sync -f` of the source, with the source
in the page cache and without it.

    ./dev curve [--size-gib 0.7] [--runs 3] [--save]

All take turns. For a cold run the source's pages are given back before (POSIX_FADV_DONTNEED), which
leaves the caches of everybody else alone; what of them is there afterwards is counted.
"""
import datetime
import json
import pathlib
import statistics
import sys

import checkpoints
import timing
from task_arguments import TaskArguments

HERE = pathlib.Path(__file__).resolve().parent
GIB = 1 << 30
THREADS = (1, 2, 4, 8, 16)
STATES = {"warm": timing.warm, "cold": timing.make_cold}
# Which form is read, and what is made of it.
TASKS = {
    "import": ("hf", ["--to", "torch_dist", "--tp", "8"]),
    "reshard": ("torch_dist", ["--to", "torch_dist", "--tp", "2"]),
    "export": ("torch_dist", ["--to", "hf"]),
    "legacy": ("legacy", ["--to", "legacy", "--tp", "2"]),
}
COPY = "cp"


def say(text):
    print(f"curve: {text}", file=sys.stderr, flush=True)


class Curves:
    def __init__(self, arguments):
        self.binary, self.work, self.runs = arguments.binary, arguments.work, arguments.runs
        config = checkpoints.dense_config(int(arguments.size_gib * GIB))
        self.bytes = checkpoints.model_bytes(config)
        say(f"{self.bytes / GIB:.2f} GiB in {self.work}")
        checkpoints.generate(str(self.work), config)
        wanted = arguments.only or list(TASKS)
        for form in ("torch_dist", "legacy"):
            if all(TASKS[name][0] != form for name in wanted) or (self.work / form).exists():
                continue
            timing.run([self.binary, "convert", str(self.work / "hf"), str(self.work / form),
                        "--to", form, "--tp", "8"])  # fmt: skip
        self.tasks = {name: {state: self._measure(name, state) for state in STATES}
                      for name in wanted}  # fmt: skip

    def _measure(self, name, state):
        form, flags = TASKS[name]
        source, target = str(self.work / form), str(self.work / "target")
        commands = {COPY: ["cp", "-r", source, target]}
        for threads in THREADS:
            commands[str(threads)] = [self.binary, "convert", source, target, *flags,
                                      "--threads", str(threads)]  # fmt: skip
        measured = {who: {"seconds": [], "cpu": [], "peak_bytes": 0, "left_cached": 0}
                    for who in commands}  # fmt: skip
        for turn in range(self.runs):
            for who in list(commands) if turn % 2 == 0 else list(commands)[::-1]:
                STATES[state](source)
                run = timing.durable(commands[who], target)
                found = measured[who]
                found["seconds"].append(run.seconds)
                found["cpu"].append(run.cpu_seconds)
                found["peak_bytes"] = max(found["peak_bytes"], run.peak_bytes)
                found["left_cached"] = max(found["left_cached"], timing.cached_bytes(source))
        timing.remove(target)
        say(f"{name} {state}: " + ", ".join(
            f"{who} {statistics.median(found['seconds']):.2f} s "
            f"{statistics.median(found['cpu']):.2f} s of CPU"
            for who, found in measured.items()))  # fmt: skip
        return measured


def ratios(measured, of):
    """Of medians, to those of the copy, by threads."""
    copy = statistics.median(measured[COPY][of])
    return {who: statistics.median(found[of]) / copy
            for who, found in measured.items() if who != COPY}  # fmt: skip


HEADINGS = ("Task", "Source", *(f"{n} thr." for n in THREADS), "CPU / cp", "MiB", "left cached")


def table_of(document, headings=HEADINGS):
    yield f"| {' | '.join(headings)} |"
    yield "|" + "---|" * len(headings)
    for name, states in document["tasks"].items():
        for state, measured in states.items():
            times = ratios(measured, "seconds")
            ours = [found for who, found in measured.items() if who != COPY]
            cells = [name, state, *(f"{times[str(n)]:.2f}" for n in THREADS)]
            cells.append(f"{max(ratios(measured, 'cpu').values()):.2f}")
            cells.append(f"{max(found['peak_bytes'] for found in ours) / 2**20:.0f}")
            left = max(found["left_cached"] for found in ours) / document["bytes"]
            cells.append(f"{100 * left:.0f} %")
            yield f"| {' | '.join(cells)} |"


def document_of(curves):
    return {
        "date": datetime.date.today().isoformat(),
        "program": timing.run([curves.binary, "--version"]).output.strip(),
        "machine": timing.machine(curves.work),
        "bytes": curves.bytes,
        "runs": curves.runs,
        "tasks": curves.tasks,
    }


def parse_arguments():
    parser = TaskArguments(__doc__, "curve", TASKS, size_gib=0.7, runs=3)
    parser.add_argument("--keep", action="store_true", help="leave the models for the next time")
    parser.add_argument("--save", action="store_true", help="also write bench/results/curve.json")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    arguments.work.mkdir(parents=True, exist_ok=True)
    if timing.file_system(arguments.work) == "tmpfs":
        sys.exit(f"curve: {arguments.work} is in memory, where nothing is cold; give another --work")
    try:
        document = document_of(Curves(arguments))
    except timing.Failed as failure:
        sys.exit(f"curve: {failure}")
    finally:
        if not arguments.keep:
            timing.remove(arguments.work)
    print("\n".join(table_of(document)))
    if arguments.save:
        (HERE / "results" / "curve.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
