# SPDX-License-Identifier: Apache-2.0
"""R15, R16, R17: what is altered is found, and what that costs."""
import functools
import hashlib
import json
import shutil
import time

import writers
from bench import LLAMA, ROOT
from row import Outcome

FORMS = {"hf": [], "torch_dist": ["--tp", "2"], "legacy": ["--tp", "2"], "dcp": ["--shards", "2"]}


def digested(bench, form):
    """A checkpoint with digests of its tensors and files beside it."""

    def make(folder):
        writers.convert(bench, LLAMA, folder, form, *FORMS[form], "--digests")

    return bench.made(f"digested-{form}", make)


@functools.cache
def pieces_of(root, name):
    """(first byte, end, tensor) of each piece of a tensor in a file, as the file of digests has them."""
    found, files = [], []
    (digests,) = root.rglob("shardwright-digests.jsonl")
    inner = str((root / name).relative_to(digests.parent)) if (root / name).is_relative_to(digests.parent) else ""
    for line in map(json.loads, digests.open()):
        files += [line["file"]] if "file" in line else []
        for file, offset, size, _ in line.get("chunks", []):
            if files[file] == inner:
                found.append((offset, offset + size, line["tensor"]))
    return found


def tensor_at(root, name, byte):
    """The tensor that a byte of a file is of, or ''."""
    return next((tensor for begin, end, tensor in pieces_of(root, name) if begin <= byte < end), "")


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
    tensor = tensor_at(digested(bench, form), name, at // 8)
    if not ran.crashed and tensor and tensor not in ran.output:
        return f"{form}: bit {at} of {name} was turned, and tensor {tensor} is not named"
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
    """R16: Megatron's integrity.json, by its rules; model.sig, by the published ones and, where it is
    installed, by OpenSSF's own tool, both ways."""
    faults = []
    root = bench.fresh("integrity") / "run"
    writers.convert(bench, LLAMA, root, "torch_dist", "--tp", "2", "--digests", "--sha256")
    folder = next(root.glob("iter_*"))
    document = json.loads((folder / "integrity.json").read_text())
    files = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    files -= {"integrity.json"}
    if document["algorithm"] != "sha256" or set(document["files"]) != files:
        faults.append("integrity.json does not list the iteration's files")
    for name, digest in document["files"].items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            faults.append(f"{name} has another digest")
    said, is_whole, more = measure_signing(bench)
    return Outcome(f"integrity.json of {len(files)} files is right; {said}", faults + more, not is_whole)


SIGNER = ROOT / "build" / "venv-signing" / "bin" / "model_signing"


def measure_signing(bench):
    """What was done, whether all of it, and the faults."""
    bench.need("openssl")
    work = bench.fresh("signing")
    key, public = work / "key.pem", work / "key.pub"
    bench.run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
    bench.run("openssl", "pkey", "-in", key, "-pubout", "-out", public)
    faults = []

    def expect(what, ran, status=0):
        if (ran.status == 0) != (status == 0):
            faults.append(f"{what}: status {ran.status}: {(ran.output + ran.messages)[-200:]}")

    ours = []
    for target, *words in (("hf",), ("torch_dist", "--tp", "2", "--sha256", "--digests"), ("legacy",)):
        out = work / target
        writers.convert(bench, LLAMA, out, target, "--sign", key, *words)
        ours.append(next(out.glob("iter_*"), out))
        checker = ROOT / "tests" / "cli" / "check_signature.py"
        expect(f"{target} by the rules", bench.run("python3", checker, ours[-1], public))
        expect(f"{target} by verify", bench.shardwright("verify", ours[-1], "--public-key", public))
    if not SIGNER.exists():
        return "model.sig by the published rules only: ./dev soak --write-docs fetches model_signing", False, faults
    by_key = ("--public_key", public)
    for folder in ours:
        accepts = [SIGNER, "verify", "key", folder, "--signature", folder / "model.sig", *by_key]
        expect(f"{folder.name} by model_signing", bench.run(*accepts))
    theirs = work / "theirs"
    shutil.copytree(LLAMA, theirs)
    bench.run(SIGNER, "sign", "key", theirs, "--signature", theirs / "model.sig", "--private_key", key)
    expect("theirs by verify", bench.shardwright("verify", theirs, "--public-key", public))
    # Whatever is wrong, both say so.
    wrong = {
        "altered": lambda at: (at / "config.json").write_text("{}"),
        "gone": lambda at: (at / "generation_config.json").unlink(),
        "added": lambda at: (at / "more.txt").write_text("x"),
    }
    for what, spoil in wrong.items():
        for source in (theirs, ours[0]):
            spoilt = work / f"{source.name}-{what}"
            shutil.copytree(source, spoilt)
            spoil(spoilt)
            refuses = [SIGNER, "verify", "key", spoilt, "--signature", spoilt / "model.sig", *by_key]
            expect(f"{spoilt.name} by model_signing", bench.run(*refuses), 1)
            expect(f"{spoilt.name} by verify", bench.shardwright("verify", spoilt, "--public-key", public), 1)
    by_certificate = measure_certificates(bench, expect)
    return (f"model_signing and verify agree on {len(ours)} outputs of ours, 1 of its own, 6 spoilt ones and "
            f"{by_certificate} signed with certificates"), True, faults  # fmt: skip


def measure_certificates(bench, expect):
    """What model_signing signs with certificates, sound and not: how many files both judge alike."""
    work = bench.fresh("certificates")
    names = {"authority": None, "office": "authority", "maker": "office", "stranger": None}
    uses = {"maker": "keyUsage=critical,digitalSignature"}
    for name, issuer in names.items():
        key, request, made = (work / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
        use = work / f"{name}.use"
        use.write_text(uses.get(name, "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign"))
        by = ("-CA", work / f"{issuer}.pem", "-CAkey", work / f"{issuer}.key", "-CAcreateserial") if issuer else (
            "-signkey", key)  # fmt: skip
        for words in (("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key),
                      ("req", "-new", "-key", key, "-subj", f"/CN={name}", "-out", request),
                      ("x509", "-req", "-in", request, *by, "-days", "9", "-extfile", use, "-out", made)):  # fmt: skip
            ran = bench.run("openssl", *words)
            assert ran.status == 0, ran.messages
    # The certificates that are put in, whose word is asked for, and whether both should believe it.
    cases = (
        ("maker", ["office"], "authority", 0),
        ("maker", ["stranger"], "authority", 1),  # whose word leads nowhere
        ("maker", ["office"], "stranger", 1),
        ("office", ["authority"], "authority", 1),  # it may vouch, and not sign
    )
    for number, (signer, chain, trusted, status) in enumerate(cases):
        model = work / f"m{number}"
        shutil.copytree(LLAMA, model)
        more = [word for name in chain for word in ("--certificate_chain", work / f"{name}.pem")]
        expect("signing", bench.run(SIGNER, "sign", "certificate", model, "--signature", model / "model.sig",
                                    "--private_key", work / f"{signer}.key", "--signing_certificate",
                                    work / f"{signer}.pem", *more))  # fmt: skip
        ca = work / f"{trusted}.pem"
        case = f"{signer} by {trusted} with {chain}"
        expect(f"{case}: model_signing", bench.run(SIGNER, "verify", "certificate", model, "--signature",
               model / "model.sig", "--certificate_chain", ca), status)  # fmt: skip
        expect(f"{case}: verify", bench.shardwright("verify", model, "--certificate-chain", ca), status)
        expect(f"{case}: verify without", bench.shardwright("verify", model))
    return len(cases)


# The least of so many runs each, in turns: disks are not alike from one second to the next.
RUNS = 9
SOURCE_BYTES = 256 << 20


def measure_cost(bench):
    """R17: a conversion with and without digests, the least seconds of several runs."""
    folder = bench.fresh("cost")
    header = json.dumps({"w": {"dtype": "U8", "shape": [SOURCE_BYTES], "data_offsets": [0, SOURCE_BYTES]}}).encode()
    source = folder / "in"
    source.mkdir()
    with open(source / "model.safetensors", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        block = bench.random.randbytes(1 << 20)
        for _ in range(SOURCE_BYTES >> 20):
            file.write(block)
    best = {}
    for flags in ((), ("--digests",), ("--sha256",)) * RUNS:
        started = time.monotonic()
        writers.convert(bench, source, folder / "out", "safetensors", *flags)
        seconds = time.monotonic() - started
        best[flags] = min(seconds, best.get(flags, seconds))
        shutil.rmtree(folder / "out")
    shutil.rmtree(folder)
    alone, digests, sha256 = best.values()
    more = digests / alone - 1
    faults = [f"{100 * more:.0f} % more time with digests"] if more > 0.05 else []
    return Outcome(f"256 MiB: {alone:.2f} s, {digests:.2f} s with digests ({100 * more:+.1f} %), "
                   f"{sha256:.2f} s with SHA-256 of files, which is asked for apart", faults)  # fmt: skip
