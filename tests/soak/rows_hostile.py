# SPDX-License-Identifier: Apache-2.0
"""R1, R3, R19, R20, R24: files made to do harm."""
import base64
import json
import os
import re
import shutil
import struct

from bench import GOLDEN, LLAMA
from pickles import malicious_pickles, metadata_with_path
from row import Outcome

MIB = 1 << 20


def measure_malicious(bench):
    """R1: nothing is run, every callable is named, sound files are not refused."""
    folder = bench.fresh("malicious")
    marker = folder / "ran"
    faults = []
    files = malicious_pickles(str(marker))
    for name, (stream, callables) in files.items():
        file = folder / f"{name}.pkl"
        file.write_bytes(stream)
        ran = bench.shardwright("inspect", file, "--json", cwd=folder)
        if ran.crashed:
            faults.append(f"{name}: crashed ({ran.status})")
        if marker.exists():
            faults.append(f"{name}: it was run")
            marker.unlink()
        said = ran.output + ran.messages
        if ran.status == 0 and not any(word in said for word in callables):
            faults.append(f"{name}: accepted, and {callables[0]} is not named")
    sound = sorted(GOLDEN.glob("torch_save/2*/*.pt")) + sorted(GOLDEN.glob("pickle/*.pkl"))
    # TorchScript is programs, and refused as that.
    sound = [file for file in sound if "torchscript" not in file.name]
    refused = [file.name for file in sound if bench.shardwright("inspect", file).status != 0]
    faults += [f"{name}: a sound file is refused" for name in refused]
    return Outcome(f"{len(files)} files, 0 run; {len(refused)} of {len(sound)} sound ones refused", faults)  # fmt: skip


def bombs():
    """Streams that would fill memory or time, by name."""
    long_tuple = b"(" * 1 + b"".join(b"K\x01" for _ in range(100_000)) + b"t."
    return {
        "memo_4g": b"\x80\x02]r\xff\xff\xff\xff.",
        "memo_256m": b"\x80\x02]r\x00\x00\x00\x10.",
        "text_memo": b"]p1000000000000000000000000000000\n.",
        "bytes8": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"x.",
        "bytearray8": b"\x80\x05\x96" + struct.pack("<Q", 1 << 33) + b"x.",
        "unicode8": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 63) + b"x.",
        "frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"N.",
        "long4": b"\x80\x02\x8b" + struct.pack("<i", -1) + b".",
        "long4_big": b"\x80\x02\x8b" + struct.pack("<i", (1 << 31) - 1) + b".",
        "int": b"I" + b"9" * 5000 + b"\n.",
        "nested_lists": b"\x80\x02" + b"]" * 1_000_000 + b"a" * 999_999 + b".",
        "nested_tuples": b"\x80\x02N" + b"\x85" * 1_000_000 + b".",
        "laughs_memo": b"\x80\x02]q\x00" + b"".join(
            b"(" + b"h" + bytes([i]) + b"h" + bytes([i]) + b"lq" + bytes([i + 1]) for i in range(60)
        ) + b".",
        "laughs_dup": b"\x80\x02N" + b"2\x86" * 60 + b".",
        "cycle": b"\x80\x02]q\x00h\x00a.",
        "surrogate": b"\x80\x02X\x03\x00\x00\x00\xed\xa0\x80.",
        "build_on_list": b"\x80\x02]}b.",
        "setitem_on_list": b"\x80\x02]K\x00K\x01s.",
        "left_on_stack": b"\x80\x02NN.",
        "bytes_behind": b"\x80\x02N.NNNN",
        "long_tuple": long_tuple,
        "many_marks": b"(" * 1_000_000 + b".",
    }  # fmt: skip


def measure_bombs(bench):
    """R3."""
    folder = bench.fresh("bombs")
    faults = []
    worst = slowest = 0
    for name, stream in bombs().items():
        file = folder / f"{name}.pkl"
        file.write_bytes(stream)
        for words in (["inspect", file], ["inspect", file, "--json"]):
            ran = bench.measured(*words, limit=512 * MIB)
            worst, slowest = max(worst, ran.peak), max(slowest, ran.seconds)
            most = 64 * MIB + 16 * len(stream)
            if ran.crashed:
                faults.append(f"{name}: crashed ({ran.status}) {ran.messages[-100:]}")
            elif ran.peak > most:
                faults.append(f"{name}: {ran.peak / MIB:.0f} MiB, expected {most / MIB:.0f}")
            elif ran.seconds > 1:
                faults.append(f"{name}: {ran.seconds:.1f} s")
    return Outcome(
        f"{2 * len(bombs())} runs, at most {worst / MIB:.0f} MiB and {slowest:.2f} s", faults
    )


HOSTILE_NAMES = [
    "../secret", "../../secret", "/etc/passwd", "a/../../secret", "./../secret", "..", ".", "",
    "x/../../../../../../etc/passwd", "link/secret", "//etc/passwd", "..\\secret", "a\x00b",
    "\x1b]0;x\x07", "x" * 300, "a/./../../secret", "~/secret", "C:\\x", "../in/../secret", "secret/",
]  # fmt: skip


def outside(log, root):
    """Files that were opened, beside the root, and are not the system's own."""
    found = set()
    calls = re.findall(r'open(?:at2?)?\((\w+), "((?:[^"\\]|\\.)*)"', log)
    for where, name in calls:
        plain = os.path.normpath(name)
        if where == "AT_FDCWD" and not plain.startswith("/"):
            plain = os.path.normpath(os.path.join(root, plain))
        if where != "AT_FDCWD" and not plain.startswith(("/", "..")):
            continue
        leads_out = plain == ".." or plain.startswith(("../", "/"))
        if leads_out and ("secret" in plain or "passwd" in plain):
            found.add(name)
    return found


def hostile_places(bench, name):
    """Checkpoints in which a name leads out: (what, folder)."""
    root = bench.fresh("hostile")
    (root / "secret").write_text("secret")
    hf = root / "hf"
    shutil.copytree(LLAMA, hf)
    os.symlink(root, hf / "link")
    weights = {"model.norm.weight": name}
    (hf / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    yield "weight_map", root, hf
    listed = root / "listed"
    shutil.copytree(LLAMA, listed)
    (listed / "integrity.json").write_text(
        json.dumps({"algorithm": "sha256", "files": {name: "0" * 64}})
    )
    yield "integrity.json", root, listed
    signed = root / "signed"
    shutil.copytree(LLAMA, signed)
    said = {
        "_type": "https://in-toto.io/Statement/v1",
        "predicateType": "https://model_signing/Digests/v0.1",
        "subject": [{"name": name, "digest": {"sha256": "0" * 64}}],
    }
    payload = base64.b64encode(json.dumps(said).encode()).decode()
    envelope = {"payloadType": "application/vnd.in-toto+json", "payload": payload}
    (signed / "model.sig").write_text(json.dumps({"dsseEnvelope": envelope}))
    yield "model.sig", root, signed
    run = root / "run"
    run.mkdir()
    (run / "latest_checkpointed_iteration.txt").write_text(name)
    yield "tracker", root, run
    if "\x00" not in name and len(name) < 250:
        dcp = root / "dcp"
        shutil.copytree(GOLDEN / "dcp" / "hf_scalar", dcp, dirs_exist_ok=True)
        source = next(GOLDEN.glob("dcp/fsdp2_uneven/**/.metadata"))
        shutil.copytree(source.parent, dcp, dirs_exist_ok=True)
        (dcp / ".metadata").write_bytes(metadata_with_path(source.read_bytes(), name))
        yield "relative_path", root, dcp


def measure_paths(bench):
    """R19."""
    bench.need("strace")
    faults = []
    runs = 0
    for name in HOSTILE_NAMES:
        for what, root, place in hostile_places(bench, name):
            for command in (["verify", place], ["convert", place, root / "out", "--to", "safetensors"]):
                log = root / "opens"
                ran = bench.run("strace", "-f", "-qq", "-s", "4096", "-e", "trace=open,openat,openat2",
                                "-o", log, bench.program, *command, cwd=root)  # fmt: skip
                runs += 1
                opened = outside(log.read_text(errors="replace"), root)
                if opened:
                    faults.append(f"{what} {name!r}, {command[0]}: opened {sorted(opened)[0]}")
                if ran.crashed:
                    faults.append(f"{what} {name!r}, {command[0]}: crashed ({ran.status})")
        shutil.rmtree(root)
    return Outcome(f"{len(HOSTILE_NAMES)} names, {runs} runs, {len(faults)} opens outside", faults)


def measure_special(bench):
    """R20: a FIFO, devices, links and folders for files, with every command."""
    faults = []
    slowest = 0
    runs = 0
    makers = {
        "fifo": os.mkfifo,
        "folder": os.mkdir,
        "loop": lambda path: os.symlink(os.path.basename(path), path),
        "dangling": lambda path: os.symlink("nowhere", path),
        "zero": lambda path: os.symlink("/dev/zero", path),
        "tty": lambda path: os.symlink("/dev/tty", path),
    }
    for kind, make in makers.items():
        for name in ("model.safetensors", "config.json", "tokenizer.json"):
            root = bench.fresh("special")
            shutil.copytree(LLAMA, root / "m")
            (root / "m" / name).unlink(missing_ok=True)
            make(root / "m" / name)
            for words in (["verify", "m"], ["inspect", "m"], ["convert", "m", "o", "--to", "hf"]):
                ran = bench.shardwright(*words, cwd=root, timeout=20)
                runs += 1
                slowest = max(slowest, ran.seconds)
                if ran.crashed or ran.seconds > 2:
                    faults.append(f"{kind} as {name}, {words[0]}: {ran.status}, {ran.seconds:.1f} s")
                # Folders beside the weights are nobody's business, whatever their names.
                is_beside = kind == "folder" and name == "tokenizer.json"
                if words[0] == "convert" and ran.status == 0 and not is_beside:
                    faults.append(f"{kind} as {name}: converted")
            shutil.rmtree(root)
    return Outcome(f"{runs} runs, slowest {slowest:.2f} s; two writers: cli.clean", faults)


def measure_terminals(bench):
    """R24: control and bidi characters in names of tensors never reach the terminal."""
    folder = bench.fresh("names")
    names = ["\x1b]0;x\x07", "a\u202eb", "a\rb", "a\x9bb", "a\u2066b", "tab\tname", "\u200fx", "a\x7fb"]
    header = {}
    for i, name in enumerate(names):
        header[name] = {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]}
    text = json.dumps(header).encode()
    file = struct.pack("<Q", len(text)) + text + bytes(len(names))
    (folder / "model.safetensors").write_bytes(file)
    (folder / "config.json").write_text('{"architectures": ["\x1b[31m"]}'.replace("\x1b", "\\u001b"))
    raw = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
    faults = []
    runs = [["inspect", folder], ["inspect", folder / "model.safetensors"], ["verify", folder],
            ["diagnose", folder], ["hash", folder, "--own-names"], ["diff", folder, LLAMA],
            ["show", folder, names[0]], ["convert", folder, "o", "--to", "hf"],
            ["inspect", folder, "--tree"]]  # fmt: skip
    for words in runs:
        for more in ([], ["--json"]):
            if "--tree" in words and more:
                continue
            ran = bench.shardwright(*words, *more, cwd=folder)
            found = raw.search(ran.messages if more else ran.output + ran.messages)
            if found:
                faults.append(f"{words[0]} {more}: printed {found.group()!r}")
            if more:
                json.loads(ran.output)
    return Outcome(f"{2 * len(runs) - 1} runs, {len(faults)} raw characters", faults)

