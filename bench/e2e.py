#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times whole conversions against `cp -r` of the same bytes, and checks what they wrote; and what
only reads (verify, hash, diff) against `cat` of the same files.

Both sides end with the data on the device: our program syncs what it writes, the copy is followed by
`sync -f`. They take turns in going first; the source is in the page cache.
"""

import datetime
import json
import os
import subprocess
import sys

import checkpoints
import timing
from task_arguments import ROOT, TaskArguments

CASES = (
    "dense-import", "dense-reshard", "dense-export", "legacy-import", "legacy-reshard",
    "legacy-export", "moe-import", "moe-export", "verify", "hash", "diff", "metadata",
)  # fmt: skip
MIB = 1 << 20
GIB = 1 << 30


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


class Model:
    """A generated checkpoint and what has been made of it so far."""

    def __init__(self, bench, name, config, flags):
        self.name = name
        self.bench = bench
        self.config = config
        self.flags = flags  # of its torch_dist form
        self.bytes = checkpoints.model_bytes(config)
        self.folder = os.path.join(bench.work, f"{name}-{self.bytes}")
        self.hf = os.path.join(self.folder, "hf")
        self.torch_dist = os.path.join(self.folder, "torch_dist")
        self.legacy = os.path.join(self.folder, "legacy")

    def generate(self):
        say(f"{self.name}: {self.bytes / GIB:.2f} GiB in {self.folder}")
        # In a process of its own: its memory would count as every later child's.
        script = (
            "import json, sys; sys.path.insert(0, sys.argv[1]); import checkpoints; "
            "checkpoints.generate(sys.argv[2], json.loads(sys.argv[3]))"
        )
        here = os.path.dirname(os.path.abspath(__file__))
        arguments = [sys.executable, "-c", script, here, self.folder, json.dumps(self.config)]
        subprocess.run(arguments, check=True)

    def require_torch_dist(self):
        if not os.path.isdir(self.torch_dist):
            timing.run(self.bench.convert(self.hf, self.torch_dist, "torch_dist", *self.flags))

    def require_legacy(self):
        if not os.path.isdir(self.legacy):
            timing.run(self.bench.convert(self.hf, self.legacy, "legacy", *self.flags))

    def check(self, hf):
        script = (
            "import sys; sys.path.insert(0, sys.argv[1]); import checkpoints; "
            "problems = checkpoints.differences(sys.argv[2], sys.argv[3]); "
            "print(len(problems), *problems[:5], sep='; '); sys.exit(bool(problems))"
        )
        here = os.path.dirname(os.path.abspath(__file__))
        arguments = [sys.executable, "-c", script, here, hf, self.folder]
        result = subprocess.run(arguments, capture_output=True, text=True)
        if result.returncode != 0:
            text = result.stdout.strip() or result.stderr.strip()
            raise timing.Failed(f"{hf}: differs from the generated model: {text}")

    def check_megatron(self, folder):
        """Through Hugging Face's form: the only way back that the generator knows."""
        hf = folder + "-as-hf"
        timing.remove(hf)
        timing.run(self.bench.convert(folder, hf, "hf"))
        self.check(hf)
        timing.remove(hf)

    def chunks(self, folder):
        found = json.loads(timing.run([self.bench.binary, "inspect", folder, "--json"]).output)
        return found["totals"]["chunks"]

    def clean(self):
        for entry in os.scandir(self.folder) if os.path.isdir(self.folder) else ():
            if entry.is_dir() and entry.name != "hf":
                timing.remove(entry.path)


class Bench:
    def __init__(self, arguments):
        self.binary = os.path.abspath(arguments.binary)
        self.work = os.path.abspath(arguments.work)
        self.runs = arguments.runs
        self.flags = arguments.flag
        least = int(arguments.size_gib * GIB)
        self.dense = Model(self, "dense", checkpoints.dense_config(least), ["--tp", "8"])
        self.moe = Model(self, "moe", checkpoints.moe_config(least), ["--tp", "1", "--ep", "8"])
        self.results = {}

    def convert(self, source, target, form, *flags):
        command = [self.binary, "convert", source, target, "--to", form, "--json"]
        return command + list(flags) + self.flags

    def measure(self, name, model, source, command, target):
        """`runs` runs of a conversion and of a copy of its source; what it wrote last stays."""
        copy = target + "-copy"
        timing.remove(copy)
        timing.warm(source)
        ours, copies, peaks = [], [], []
        for turn in range(self.runs):
            ours_first = turn % 2 == 0
            if not ours_first:
                copies.append(timing.timed_copy(source, copy))
            run = timing.timed_command(command, target)
            ours.append(run.seconds)
            peaks.append(run.peak_bytes)
            if ours_first:
                timing.remove(target)
                copies.append(timing.timed_copy(source, copy))
            say(f"{name}: ours {run.seconds:.2f} s, cp {copies[-1][0]:.2f} s, "
                f"cp+sync {copies[-1][1]:.2f} s")  # fmt: skip
        calls = timing.count_calls(command, target)
        run = timing.timed_command(command, target)  # untimed: the one that is checked
        report = json.loads(run.output)
        self.results[name] = {
            "command": command[1:2] + command[4:],
            "payload_bytes": model.bytes,
            "ours": timing.spread(ours),
            "cp": timing.spread([copied for copied, _ in copies]),
            "cp_sync": timing.spread([durable for _, durable in copies]),
            "peak_bytes": max(peaks),
            "report": {key: find(report, key) for key in REPORTED},
            "calls": calls,
        }

    def dense_import(self):
        model = self.dense
        model.generate()
        command = self.convert(model.hf, model.torch_dist, "torch_dist", *model.flags)
        self.measure("dense-import", model, model.hf, command, model.torch_dist)
        model.check_megatron(model.torch_dist)

    def dense_reshard(self):
        model = self.dense
        model.generate()
        model.require_torch_dist()
        target = os.path.join(model.folder, "tp2")
        command = self.convert(model.torch_dist, target, "torch_dist", "--tp", "2")
        self.measure("dense-reshard", model, model.torch_dist, command, target)
        model.check_megatron(target)
        timing.remove(target)

    def export(self, model):
        model.generate()
        model.require_torch_dist()
        target = os.path.join(model.folder, "exported")
        command = self.convert(model.torch_dist, target, "hf")
        self.measure(f"{model.name}-export", model, model.torch_dist, command, target)
        model.check(target)
        timing.remove(target)

    def dense_export(self):
        self.export(self.dense)

    def legacy_import(self):
        model = self.dense
        model.generate()
        command = self.convert(model.hf, model.legacy, "legacy", *model.flags)
        self.measure("legacy-import", model, model.hf, command, model.legacy)
        model.check_megatron(model.legacy)

    def legacy_reshard(self):
        """A file for each rank to torch_dist, replicas compared."""
        model = self.dense
        model.generate()
        model.require_legacy()
        target = os.path.join(model.folder, "from-legacy")
        command = self.convert(model.legacy, target, "torch_dist", "--tp", "2")
        self.measure("legacy-reshard", model, model.legacy, command, target)
        model.check_megatron(target)
        timing.remove(target)

    def legacy_export(self):
        model = self.dense
        model.generate()
        model.require_legacy()
        target = os.path.join(model.folder, "exported")
        command = self.convert(model.legacy, target, "hf")
        self.measure("legacy-export", model, model.legacy, command, target)
        model.check(target)
        timing.remove(target)

    def moe_import(self):
        model = self.moe
        model.generate()
        command = self.convert(model.hf, model.torch_dist, "torch_dist", *model.flags)
        self.measure("moe-import", model, model.hf, command, model.torch_dist)
        chunks = model.chunks(model.torch_dist)
        if chunks < 13_000:
            raise timing.Failed(f"moe-import: {chunks} chunks, expected at least 13000")
        self.results["moe-import"]["chunks"] = chunks
        model.check_megatron(model.torch_dist)

    def moe_export(self):
        self.export(self.moe)

    def measure_reading(self, name, command, folders):
        """`runs` runs of a command and of `cat`, which take turns."""
        for folder in folders:
            timing.warm(folder)
        files = [path for folder in folders for path in timing.files_below(folder)]
        cat = ["sh", "-c", 'cat "$@" > /dev/null', "cat", *files]
        ours, cats, peaks = [], [], []
        for _ in range(self.runs):
            cats.append(timing.run(cat).seconds)
            run = timing.run(command)
            ours.append(run.seconds)
            peaks.append(run.peak_bytes)
            say(f"{name}: ours {run.seconds:.2f} s, cat {cats[-1]:.2f} s")
        self.results[name] = {
            "command": command[1:2],
            "read_bytes": sum(os.path.getsize(path) for path in files),
            "ours": timing.spread(ours),
            "cat": timing.spread(cats),
            "peak_bytes": max(peaks),
        }

    def verify(self):
        model = self.dense
        model.generate()
        model.require_torch_dist()
        self.measure_reading("verify", [self.binary, "verify", model.torch_dist], [model.torch_dist])

    def hash(self):
        model = self.dense
        model.generate()
        model.require_torch_dist()
        self.measure_reading("hash", [self.binary, "hash", model.torch_dist], [model.torch_dist])

    def diff(self):
        """Hugging Face with Megatron: both sides are read."""
        model = self.dense
        model.generate()
        model.require_torch_dist()
        folders = [model.hf, model.torch_dist]
        self.measure_reading("diff", [self.binary, "diff", *folders], folders)

    def metadata(self):
        """Opens a checkpoint of a million chunks; its data files are holes."""
        folder = os.path.join(self.work, "metadata-1000x1000")
        path = os.path.join(folder, ".metadata")
        if not os.path.exists(path):
            os.makedirs(folder, exist_ok=True)
            here = os.path.dirname(os.path.abspath(__file__))
            maker = os.path.join(here, "make_dcp_metadata.py")
            say("metadata: writing a million chunks")
            subprocess.run([sys.executable, maker, path + ".new"], check=True)
            for rank in range(1000):
                with open(os.path.join(folder, f"__{rank}_0.distcp"), "wb") as file:
                    file.truncate(8 * GIB)
            os.rename(path + ".new", path)
        timing.warm_file(path)
        runs = [timing.run([self.binary, "inspect", folder]) for _ in range(self.runs)]
        if "1000000chunks" not in runs[-1].output.replace(",", "").replace(" ", ""):
            raise timing.Failed(f"inspect {folder}: does not tell of 1,000,000 chunks")
        self.results["metadata"] = {
            "command": ["inspect"],
            "metadata_bytes": os.path.getsize(path),
            "ours": timing.spread([run.seconds for run in runs]),
            "peak_bytes": max(run.peak_bytes for run in runs),
        }
        say(f"metadata: {self.results['metadata']['ours']['median']:.2f} s")


REPORTED = ("bytes_read", "bytes_written", "files_opened", "files_written")


def find(value, key):
    """The value of a key at any depth of a JSON document."""
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            found = find(inner, key)
            if found is not None:
                return found
    return None


def range_text(spread):
    return f"{spread['median']:.2f} [{spread['min']:.2f}-{spread['max']:.2f}]"


def row_of(name, result):
    ours = result["ours"]
    if "cat" in result:
        ratio = ours["median"] / result["cat"]["median"]
        size = f"{result['read_bytes'] / GIB:.2f} GiB, {ratio:.2f} times cat"
        return [name, range_text(ours), "", "", "", "", f"{result['peak_bytes'] / MIB:.0f}", size]
    if "cp" not in result:
        size = f"{result['metadata_bytes'] / MIB:.0f} MiB"
        return [name, range_text(ours), "", "", "", "", f"{result['peak_bytes'] / MIB:.0f}", size]
    report = result["report"]
    read = report["bytes_read"] or 0
    useful = f"{100 * result['payload_bytes'] / read:.1f} %" if read else "?"
    return [
        name,
        range_text(ours),
        range_text(result["cp_sync"]),
        range_text(result["cp"]),
        f"{ours['median'] / result['cp_sync']['median']:.2f}",
        f"{ours['median'] / result['cp']['median']:.2f}",
        f"{result['peak_bytes'] / MIB:.0f}",
        f"{read / GIB:.2f} GiB, {useful} useful",
    ]


HEADINGS = ["case", "ours s", "cp+sync s", "cp s", "/cp+sync", "/cp", "RSS MiB", "read"]


def print_table(results):
    rows = [HEADINGS] + [row_of(name, result) for name, result in results.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    print()
    for name, result in results.items():
        if "report" not in result:
            continue
        print(f"{name}: " + ", ".join(f"{k} {v}" for k, v in result["report"].items()))
        if result["calls"]:
            print("  calls: " + ", ".join(f"{k} {v}" for k, v in sorted(result["calls"].items())))


def parse_arguments():
    parser = TaskArguments(__doc__, "e2e", CASES, size_gib=2.1, runs=5)
    parser.add_argument("--flag", action="append", default=[], help="for every conversion")
    parser.add_argument("--json", help="also write everything measured to this file")
    parser.add_argument("--save", action="store_true", help="the same in bench/results/<date>.json")
    parser.add_argument("--clean", action="store_true", help="remove the generated models at the end")
    parser.add_argument("--allow-tmpfs", action="store_true")
    return parser.parse_args()


def document_of(bench, arguments):
    return {
        "date": datetime.date.today().isoformat(),
        "program": timing.run([bench.binary, "--version"]).output.strip(),
        "machine": timing.machine(bench.work),
        "size_gib": arguments.size_gib,
        "runs": arguments.runs,
        "floor_of_peak_bytes": timing.own_peak_bytes(),
        "cases": bench.results,
    }


def main():
    arguments = parse_arguments()
    os.makedirs(arguments.work, exist_ok=True)
    if timing.file_system(arguments.work) == "tmpfs" and not arguments.allow_tmpfs:
        sys.exit(f"bench: {arguments.work} is in memory; give a folder on a disk with --work")
    if not os.access(arguments.binary, os.X_OK):
        sys.exit(f"bench: {arguments.binary} is no program; build it with ./dev build")
    bench = Bench(arguments)
    failed = False
    for name in arguments.only or CASES:
        try:
            getattr(bench, name.replace("-", "_"))()
        except timing.Failed as failure:
            say(f"FAILED {name}: {failure}")
            failed = True
        if name in ("legacy-export", "moe-export"):
            (bench.moe if name == "moe-export" else bench.dense).clean()
    bench.dense.clean()
    bench.moe.clean()
    print_table(bench.results)
    document = document_of(bench, arguments)
    paths = [arguments.json] if arguments.json else []
    if arguments.save:
        results = ROOT / "bench/results"
        results.mkdir(exist_ok=True)
        paths.append(results / f"{document['date']}.json")
    for path in paths:
        with open(path, "w") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
    if arguments.clean:
        timing.remove(bench.work)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
