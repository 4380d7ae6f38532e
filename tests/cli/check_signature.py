#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_signature.py FOLDER KEY.pub: what OpenSSF's model_signing asks of FOLDER/model.sig, found by
other means than the program's: Python's hashlib and the openssl command."""
import base64
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

BESIDE = {"model.sig", ".git", ".gitattributes", ".github", ".gitignore"}


def main():
    folder, key = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    bundle = json.loads((folder / "model.sig").read_text())
    assert bundle["mediaType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    material = bundle["verificationMaterial"]
    assert material["tlogEntries"] == []
    assert material["publicKey"]["hint"] == hashlib.sha256(key.read_bytes()).hexdigest()
    envelope = bundle["dsseEnvelope"]
    payload = base64.b64decode(envelope["payload"], validate=True)
    kind = envelope["payloadType"]
    assert kind == "application/vnd.in-toto+json"
    (signature,) = envelope["signatures"]
    with tempfile.NamedTemporaryFile() as said, tempfile.NamedTemporaryFile() as sig:
        said.write(b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload))
        said.flush()
        sig.write(base64.b64decode(signature["sig"], validate=True))
        sig.flush()
        sha = sys.argv[3] if len(sys.argv) > 3 else "-sha256"
        command = ["openssl", "dgst", sha, "-verify", key, "-signature", sig.name, said.name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://model_signing/signature/v1.0"
    how = statement["predicate"]["serialization"]
    assert (how["method"], how["hash_type"], how["allow_symlinks"]) == ("files", "sha256", False)
    assert set(how["ignore_paths"]) == BESIDE
    listed = {one["name"]: one["digest"] for one in statement["predicate"]["resources"]}
    assert list(listed) == sorted(listed)
    found = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in BESIDE
    }
    assert listed == found, (listed, found)
    (subject,) = statement["subject"]
    assert subject["name"] == folder.name
    whole = hashlib.sha256(b"".join(bytes.fromhex(digest) for digest in listed.values()))
    assert subject["digest"] == {"sha256": whole.hexdigest()}
    print(f"{len(found)} files are signed: {', '.join(sorted(found))}")


main()
