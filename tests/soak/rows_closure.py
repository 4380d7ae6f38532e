# SPDX-License-Identifier: Apache-2.0
"""R21, R22, R23: memory, determinism, and there and back."""
import itertools
import json
import shutil

import rows_crash
import writers
from bench import LLAMA, tree_digest
from row import Outcome

GIB = 1 << 30
LAYOUTS = [
    ["--to", "torch_dist"], ["--to", "torch_dist", "--tp", "2", "--pp", "2"],
    ["--to", "legacy"], ["--to", "legacy", "--tp", "2", "--pp", "2"],
    ["--to", "torch_dist", "--dp", "2"], ["--to", "torch_dist", "--tp", "2", "--dp", "2"],
    ["--to", "hf"],
]  # fmt: skip


def measure_memory(bench):
    """R21: every byte of sparse models is read; memory does not depend on their size."""
    peaks = {}
    for gib in (1, 8):
        folder = bench.fresh("sparse")
        size = gib * GIB
        tensors = {
            f"w{i}": {"dtype": "U8", "shape": [GIB], "data_offsets": [i * GIB, (i + 1) * GIB]}
            for i in range(gib)
        }
        header = json.dumps(tensors).encode()
        with open(folder / "model.safetensors", "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + size)
        ran = bench.measured("hash", folder, "--own-names", limit=2 * GIB)
        assert ran.status == 0, ran.messages
        peaks[gib] = ran.peak / (1 << 20)
        shutil.rmtree(folder)
    faults = []
    if peaks[8] > 512 or peaks[8] > 1.5 * peaks[1] + 16:
        faults.append(f"memory grows with the model: {peaks}")
    return Outcome(f"{peaks[1]:.0f} MiB for 1 GiB, {peaks[8]:.0f} MiB for 8 GiB (hash)", faults)


def measure_determinism(bench):
    """R22."""
    bench = rows_crash.stages(bench)
    faults = []
    runs = 0
    for writer in bench.writers():
        threaded = writer.words[0] in ("convert", "merge", "split")
        for threads in (1, 2, 3, 7) if threaded else (0, 0):
            stage = writer.stage(bench)
            more = ["--threads", threads] if threads else []
            ran = bench.shardwright(*stage.words, *more, cwd=stage.folder)
            runs += 1
            if ran.status != 0 or stage.digest() != writer.new:
                faults.append(f"{writer.name}, {threads} threads: {ran.status}, other bytes")
            shutil.rmtree(stage.folder)
    return Outcome(f"{runs} runs of {len(bench.writers())} writers, {len(faults)} differ", faults)


def measure_closure(bench):
    """R23: from each layout to each other and to Hugging Face: one digest, and the same bytes.

    DCP keeps the source's names and fsdp_dtensor widens weights to float32: neither closes, and both
    are R22's.
    """
    made = []
    for i, words in enumerate(LAYOUTS):
        made.append(bench.made(f"layout-{i}", lambda folder, words=words: writers.convert(
            bench, LLAMA, folder, words[1], *words[2:])))  # fmt: skip

    def digest_of(folder):
        return json.loads(bench.shardwright("hash", folder, "--json").output)["digest"]

    wanted = digest_of(LLAMA)
    final = tree_digest(made[-1])

    def pair(job):
        (source, a), (_, b) = job
        folder = bench.fresh("pair")
        writers.convert(bench, source, folder / "x", b[1], *b[2:])
        if digest_of(folder / "x") != wanted:
            return f"{a} to {b}: another digest"
        writers.convert(bench, folder / "x", folder / "hf", "hf")
        same = tree_digest(folder / "hf") == final
        shutil.rmtree(folder)
        return "" if same else f"{a} to {b} and back: other bytes"

    pairs = list(itertools.product(zip(made, LAYOUTS), zip(made, LAYOUTS)))
    ended, count = bench.each(pair, pairs)
    faults = [fault for fault in ended if fault]
    return Outcome(f"{len(ended)} of {count} pairs of 7 layouts and formats, {len(faults)} differ", faults,
                   len(ended) < count)  # fmt: skip
