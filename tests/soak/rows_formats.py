# SPDX-License-Identifier: Apache-2.0
"""R4, R5, R6: safetensors against the reference, torch's zip archives, large metadata."""
import json
import shutil
import struct

from bench import GOLDEN, LLAMA, ROOT
from pickles import metadata_of_chunks
from row import Lacking, Outcome
from zips import END64, verdicts

# Asks the reference about each file: one line of `ok` or `no`.
REFERENCE = """
import sys
from safetensors import safe_open
for line in sys.stdin:
    try:
        with safe_open(line[:-1], framework="np") as file:
            list(file.keys())
        print("ok")
    except Exception:
        print("no")
"""


def mutated(chance, data):
    """The file with its header altered, and its length field put right most of the time."""
    size = struct.unpack("<Q", data[:8])[0]
    header = bytearray(data[8 : 8 + size])
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(header))
        what = chance.randrange(4)
        if what == 0:
            header[at] = chance.choice(b'0123456789{}[]",:- \\u')
        elif what == 1:
            del header[at]
        elif what == 2:
            header.insert(at, chance.choice(b'0123456789{}[]",:-\x00\x1f\xff'))
        else:
            end = min(len(header), at + chance.randrange(1, 40))
            header[at:at] = header[at:end]
    length = len(header) if chance.random() < 0.9 else size
    return struct.pack("<Q", length) + bytes(header) + data[8 + size :]


def measure_safetensors(bench):
    """R4: what the reference rejects is never accepted."""
    python = ROOT / "build" / "venv" / "bin" / "python"
    if not python.exists():
        raise Lacking("build/venv with safetensors is not there; ./dev test makes it")
    folder = bench.fresh("headers")
    corpus = sorted((ROOT / "fuzz" / "corpus" / "fuzz_safetensors").iterdir())
    sound = [file.read_bytes() for file in corpus if file.name in ("plain", "empties_together", "a")]
    files = []
    for i, file in enumerate(corpus):
        files.append(folder / f"{i}.safetensors")
        shutil.copy(file, files[-1])
    for i in range(600):
        files.append(folder / f"m{i}.safetensors")
        files[-1].write_bytes(mutated(bench.random, bench.random.choice(sound)))
    asked = folder / "ask.py"
    asked.write_text(REFERENCE)
    listed = "".join(f"{file}\n" for file in files)
    (folder / "list").write_text(listed)
    ran = bench.run("sh", "-c", f"'{python}' '{asked}' < '{folder / 'list'}'")
    theirs = ran.output.split()
    if len(theirs) != len(files):
        raise Lacking(f"the reference ended: {ran.messages[-200:]}")
    ours, _ = bench.each(lambda i: (i, bench.shardwright("inspect", files[i]).status), range(len(files)))
    faults = []
    stricter = 0
    for i, status in ours:
        if status not in (0, 2):
            faults.append(f"{files[i].name}: status {status}")
        if status == 0 and theirs[i] == "no":
            faults.append(f"{files[i].name}: accepted, and the reference rejects {files[i].read_bytes()[:120]!r}")
        stricter += status != 0 and theirs[i] == "ok"
    if stricter < 12 and len(ours) == len(files):
        faults.append(f"{stricter} rejections of our own, expected 12")
    return Outcome(
        f"{len(ours)} headers, {stricter} refused that the reference takes", faults,
        len(ours) < len(files)
    )  # fmt: skip


def measure_zip(bench):
    """R5: each row of the matrix, on one archive of torch."""
    folder = bench.fresh("zips")
    files = sorted(GOLDEN.glob("torch_save/2.13.0/*.pt"))
    archives = [file.read_bytes() for file in files if "torchscript" not in file.name]
    source = next(data for data in archives if END64 in data)
    faults = []
    rows = verdicts(source)
    for name, (data, wanted) in rows.items():
        file = folder / f"{name}.pt"
        file.write_bytes(data)
        ran = bench.shardwright("verify", file, cwd=folder)
        told = "ok" if ran.status == 0 else "no"
        if ran.crashed or told not in wanted:
            faults.append(f"{name}: status {ran.status}, expected {wanted}")
    return Outcome(f"{len(rows) - len(faults)} of {len(rows)} as expected", faults)


def measure_geometry(bench):
    """R6: 50,000 files that are missing, and hostile boxes in `.metadata`."""
    folder = bench.fresh("missing")
    weights = {f"t{i}": f"model-{i:05}.safetensors" for i in range(50_000)}
    shutil.copy(LLAMA / "config.json", folder)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    shutil.copy(LLAMA / "model.safetensors", folder / "model-00000.safetensors")
    ran = bench.measured("verify", folder)
    faults = []
    if ran.status != 1:
        faults.append(f"50,000 missing files: status {ran.status} {ran.messages[-200:]}")
    if ran.seconds > 3:
        faults.append(f"50,000 missing files: {ran.seconds:.1f} s, expected 3")
    hostile = sorted((ROOT / "fuzz" / "corpus" / "fuzz_dcp_metadata").glob("md*"))
    for file in hostile:
        place = bench.fresh("boxes")
        shutil.copy(file, place / ".metadata")
        found = bench.measured("verify", place, limit=1 << 30)
        if found.crashed or found.status == 0:
            faults.append(f"{file.name}: status {found.status}")
    place = bench.fresh("chunks")
    (place / ".metadata").write_bytes(metadata_of_chunks(1_000_000))
    for i in range(200):
        with open(place / f"__{i}_0.distcp", "wb") as file:
            file.truncate(64 * 5000)
    chunks = bench.measured("inspect", place)
    if chunks.status != 0 or "1,000,000 chunks" not in chunks.output:
        faults.append(f"10^6 chunks: status {chunks.status} {chunks.messages[-200:]}")
    if chunks.seconds > 2 or chunks.peak > 1 << 30:
        faults.append(f"10^6 chunks: {chunks.seconds:.1f} s and {chunks.peak >> 20} MiB, expected 2 and 1024")
    shutil.rmtree(place)
    return Outcome(f"50,000 missing files: {ran.seconds:.2f} s; 10^6 chunks: {chunks.seconds:.2f} s, "
                   f"{chunks.peak >> 20} MiB; {len(hostile)} hostile .metadata", faults)  # fmt: skip

