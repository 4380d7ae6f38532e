# SPDX-License-Identifier: Apache-2.0
"""R15, R16, R17: what is altered is found, and what that costs."""
import hashlib
import json
import shutil
import time

import writers
from bench import LLAMA
from row import Outcome

FORMS = {"hf": [], "torch_dist": ["--tp", "2"], "legacy": ["--tp", "2"], "dcp": ["--shards", "2"]}


def digested(bench, form):
    """A checkpoint with integrity.json."""

    def make(folder):
        writers.convert(bench, LLAMA, folder, form, *FORMS[form], "--digests")

    return bench.made(f"digested-{form}", make)


def flip(bench, job):
    """One bit of a file is turned; '' where verify names the file."""
    form, name, at = job
    folder = bench.fresh("flipped")
    shutil.copytree(digested(bench, form), folder / "c")
    file = folder / "c" / name
    data = bytearray(file.read_bytes())
    data[at // 8] ^= 1 << at % 8
    file.write_bytes(data)
    ran = bench.shardwright("verify", "c", cwd=folder)
    shutil.rmtree(folder)
    if ran.status == 0:
        return f"{form}: bit {at} of {name} was turned, and it is proven"
    return f"{form}: crashed ({ran.status})" if ran.crashed else ""


def measure_flips(bench):
    """R15: with the digests of `convert --digests`; and that their lack is said."""
    jobs = []
    for form in FORMS:
        root = digested(bench, form)
        files = [file for file in sorted(root.rglob("*")) if file.is_file()]
        for file in files:
            bits = 8 * file.stat().st_size
            name = str(file.relative_to(root))
            # The tracker changes with every save; it is read, not guarded.
            if file.name == "latest_checkpointed_iteration.txt" or not bits:
                continue
            places = {bench.random.randrange(bits) for _ in range(60)} | {0, bits - 1}
            jobs += [(form, name, at) for at in sorted(places)]
    ended, count = bench.each(lambda job: flip(bench, job), jobs)
    faults = [fault for fault in ended if fault]
    bare = bench.shardwright("verify", LLAMA)
    if "nothing guards" not in bare.output.splitlines()[-1]:
        faults.append("hf without digests: the verdict does not say that nothing guards it")
    found = len(ended) - len([fault for fault in ended if fault])
    return Outcome(f"{found} of {len(ended)} flips found ({count} planned), 4 formats", faults, len(ended) < count)


def measure_interop(bench):
    """R16: Megatron's integrity.json, by its rules; model signing is not there."""
    faults = []
    root = digested(bench, "torch_dist")
    folder = next(root.glob("iter_*"))
    document = json.loads((folder / "integrity.json").read_text())
    files = {file.name for file in folder.iterdir()} - {"integrity.json"}
    if document["algorithm"] != "sha256" or set(document["files"]) != files:
        faults.append("integrity.json does not list the iteration's files")
    for name, digest in document["files"].items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            faults.append(f"{name} has another digest")
    faults.append("OpenSSF model signing is neither written nor checked")
    return Outcome(f"integrity.json of {len(files)} files is right; no model signing", faults)


def measure_cost(bench):
    """R17: a conversion of 64 MB with and without digests, the best of several."""
    folder = bench.fresh("cost")
    size = 64 << 20
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    source = folder / "in"
    source.mkdir()
    with open(source / "model.safetensors", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size)
    best = {}
    for flag in ([], ["--digests"]) * 4:
        started = time.monotonic()
        writers.convert(bench, source, folder / "out", "safetensors", *flag)
        seconds = time.monotonic() - started
        best[bool(flag)] = min(seconds, best.get(bool(flag), seconds))
        shutil.rmtree(folder / "out")
    shutil.rmtree(folder)
    more = best[True] / best[False] - 1
    faults = [f"{100 * more:.0f} % more time with digests"] if more > 0.05 else []
    return Outcome(f"{best[False]:.2f} s without, {best[True]:.2f} s with SHA-256 of files", faults)
