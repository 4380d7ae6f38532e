#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""With --lang zh no error speaks English: typical failures of each layer, one after the other.

chinese_errors.py PROGRAM GOLDEN runs commands that fail, in a fresh folder. Each must fail with the
code beside it and be told in Chinese: apart from what is quoted, from paths, flags and names, no four
English words stand in a row.
"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|shardwright [a-z-]+(?: [^ ；，。）]+)*|--[\w-]+(?:[ =][\w/.,=-]+)*|[\w.*/@$-]*[/._=][\w.*/@=-]*")
ENGLISH = re.compile(r"\b[A-Za-z][A-Za-z']*(?: +[A-Za-z][A-Za-z']*){3,}")
CHINESE = re.compile("[\u4e00-\u9fff]")


def prepare(golden):
    """Broken inputs, each with one fault."""
    llama = golden / "hf/llama3/hf"
    for name in ("cut", "nojson", "noconfig", "unknown", "odd", "twice", "pointer", "heads"):
        shutil.copytree(llama, name)
    weights = next(pathlib.Path("cut").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-100])
    pathlib.Path("nojson/config.json").write_text("[1, 2")
    pathlib.Path("noconfig/config.json").unlink()
    config = json.loads((llama / "config.json").read_text())
    pathlib.Path("unknown/config.json").write_text(json.dumps(config | {"architectures": ["Nothing"], "model_type": "nothing"}))
    pathlib.Path("odd/config.json").write_text(json.dumps(config | {"hidden_size": config["hidden_size"] + 2}))
    pathlib.Path("heads/config.json").write_text(json.dumps(config | {"num_hidden_layers": config["num_hidden_layers"] + 1}))
    twice = next(pathlib.Path("twice").glob("*.safetensors"))
    shutil.copy(twice, twice.with_name("more.safetensors"))
    next(pathlib.Path("pointer").glob("*.safetensors")).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    pathlib.Path("empty").mkdir()
    pathlib.Path("link").symlink_to("nothing")
    pathlib.Path("map.json").write_text('{"family": "x", "abstract": 7}')
    header = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}}'
    pathlib.Path("bad.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    pathlib.Path("bad.pkl").write_bytes(b"\x80\x02}q\x00(X\x01")
    pathlib.Path("text.txt").write_text("hello\n")


def commands(golden):
    llama = golden / "hf/llama3/hf"
    moe = golden / "hf/qwen3_moe/legacy_tp2pp2ep2etp1"
    vl = golden / "hf/qwen35_vl/hf"
    return [
        # what is given on the command line
        ("inspect", "SW0900"),
        ("inspect --tensor x " + str(llama), "SW0900"),
        ("nonsense", "SW0900"),
        (f"inspect {llama} {llama}", "SW0900"),
        (f"plan {llama} x --to nothing", "SW0900"),
        (f"plan {llama} x --to torch_dist --tp 0", "SW0900"),
        (f"plan {llama} x --to torch_dist --tp", "SW0900"),
        (f"plan {llama} x --to hf --optimizer keep", "SW0900"),
        (f"plan {llama} x --to torch_dist --vpp 2", "SW0900"),
        (f"plan {llama} x --to torch_dist --include nowhere.*", "SW0900"),
        (f"plan {llama} x --to torch_dist --mtp from=", "SW0900"),
        (f"average {llama} x", "SW0900"),
        (f"average {llama} {llama} x --weights 1,2", "SW0900"),
        ("explain SW9999", "SW0900"),
        (f"show {llama} nothing", "SW0900"),
        (f"plan {llama} x --to torch_dist --upcycle experts=0", "SW0900"),
        # files
        ("inspect /nowhere", "SW0101"),
        ("inspect link", "SW0101"),
        (f"convert {llama} {llama}/x --to hf", "SW0110"),
        (f"convert {llama} empty/.. --to hf --overwrite", "SW0107"),
        ("inspect text.txt", "SW0300"),
        ("inspect empty", "SW0300"),
        # codecs
        ("verify cut", "SW0230"),
        ("inspect pointer", "SW0230"),
        ("inspect bad.safetensors", "SW0230"),
        ("inspect bad.pkl", "SW0220"),
        ("plan nojson x --to torch_dist", "SW0240"),
        # formats, families, layouts
        ("plan noconfig x --to torch_dist", "SW0406"),
        ("plan unknown x --to torch_dist", "SW0400"),
        ("plan odd x --to torch_dist", "SW0405"),
        ("plan heads x --to torch_dist", "SW0404"),
        ("plan twice x --to torch_dist", "SW0310"),
        (f"plan {llama} x --to torch_dist --tp 3", "SW0408"),
        (f"plan {llama} x --to torch_dist --pp 7", "SW0407"),
        (f"plan {moe} x --to torch_dist --ep 3", "SW0407"),
        (f"plan {vl} x --to mimo --component language=tp=3 --component images=tp=1", "SW0412"),
        (f"plan {vl} x --to mimo --component images=tp=1", "SW0412"),
        (f"map check map.json --hf {llama}", "SW0402"),
        (f"split {llama} parts", "SW0400"),
        (f"merge-adapter {llama} empty x", "SW0406"),
        (f"plan {llama} x --to torch_dist --quantise fp8-block", "SW0900"),
        ("publish text.txt", "SW0240"),
        # a server that there is not
        ("inspect hf://x", "SW0900"),
        (f"convert {llama} gs://bucket/x --to hf", "SW0900"),
    ]


def main():
    program, golden = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "AWS_"))} | {"NO_COLOR": "1"}
    faults = []

    def run(command, **more):
        done = subprocess.run([program, *command.split()], env=env | more, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        prepare(golden)
        for command, code in commands(golden):
            status, told = run(command + " --lang zh")
            error = [line for line in told.split("\n") if f"[{code}]" in line]
            if status == 0 or not error:
                faults.append(f"{command}: expected {code}, found exit status {status} and {told}")
            for line in told.split("\n"):
                english = ENGLISH.search(QUOTED.sub(" ~ ", line))
                if english:
                    faults.append(f"{command}: '{english[0]}' in: {line}")
            for line in error:
                sentence = line.partition(": ")[2]
                if not CHINESE.search(sentence):
                    faults.append(f"{command}: not Chinese: {line}")
        for locale, is_chinese in (("zh_CN.UTF-8", True), ("zh_TW.UTF-8", False), ("C.UTF-8", False)):
            told = run("inspect /nowhere", LANG=locale)[1]
            if bool(CHINESE.search(told)) != is_chinese:
                faults.append(f"LANG={locale}: {told}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
