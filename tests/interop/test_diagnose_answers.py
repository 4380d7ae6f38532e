# SPDX-License-Identifier: Apache-2.0
"""What `diagnose` answers for each of some 150 checkpoints written by the real software.

The checkpoints are outlines (see outlines.py). Answers are pinned in full; beyond that, what a
folder's name says of its layout must be what `diagnose` finds inside. After a deliberate change:

    SHARDWRIGHT_BIN=… python test_diagnose_answers.py    writes the pinned answers anew
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile

import pytest

import outlines

OUTLINES = pathlib.Path(__file__).resolve().parent.parent / "golden" / "outlines"
PINNED = OUTLINES / "answers.jsonl"
AXES = ("tp", "pp", "vpp", "ep", "etp")
# Said in words that name folders and commands, which other tests pin.
UNPINNED = ("schema", "path", "reason", "evidence", "next", "findings")


def unpack(folder):
    with tarfile.open(OUTLINES / "outlines.tar.xz") as archive:
        archive.extractall(folder)
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix in (".pt", ".distcp"):
            sealed = outlines.sealed(path.read_bytes())
            path.write_bytes(sealed)
    folders = json.loads((OUTLINES / "folders.json").read_text())
    for name in folders:  # an empty folder has no entry
        (folder / name).mkdir(parents=True, exist_ok=True)
    return folders


def named_sizes(name):
    """{"tp": 2, "pp": 2} of "hf/llama3/legacy_tp2pp2"; MIMO folders name components, not axes."""
    layout = "" if name.startswith("mimo/") else name.split("/")[-1]
    found = re.search(r"tp\d+(?:[a-z]+\d+)*", layout)
    return {axis: int(size) for axis, size in re.findall(r"([a-z]+)(\d+)", found[0])} if found else {}


def ask(program, root, name, sizes=None):
    command = [program, "diagnose", name, "--json"]
    for axis, size in (sizes or {}).items():
        if axis in AXES:
            command += [f"--{axis}", str(size)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), f"{command}: exit status {done.returncode}\n{done.stderr}"
    answer = json.loads(done.stdout)
    findings = [f"{found['code']} {found['severity']}" for found in answer["findings"]]
    for key in UNPINNED:
        del answer[key]
    return {"exit": done.returncode, **answer, "findings": findings}


def ask_all(program, root, folders):
    """Two answers a folder: without arguments, and with those that its name says are right."""
    for name in folders:
        yield name, [], ask(program, root, name)
        if sizes := named_sizes(name):
            yield name, [f"{axis}={size}" for axis, size in sizes.items()], ask(program, root, name, sizes)


def line(name, sizes, answer):
    return json.dumps({"folder": name, "given": sizes, "answer": answer})


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    root = tmp_path_factory.mktemp("outlines")
    program = os.environ["SHARDWRIGHT_BIN"]
    return list(ask_all(program, root, unpack(root)))


def test_each_answer_is_the_pinned_one(answers):
    assert [line(*answer) for answer in answers] == PINNED.read_text().splitlines()


def test_sizes_are_those_that_the_folder_was_saved_with(answers):
    checked = 0
    for name, given, answer in answers:
        for axis, size in named_sizes(name).items():
            if answer["sizes"][axis] is not None:
                assert answer["sizes"][axis] == size, f"{name} {given}: {axis}"
                checked += 1
    assert checked >= 150


def test_a_legacy_folder_has_the_arity_that_megatron_gives_it(answers):
    legacy = [(name, answer) for name, _, answer in answers if answer["container"] == "legacy"]
    assert len(legacy) >= 20
    for name, answer in legacy:
        sizes = named_sizes(name)
        expected = ["tp"] + [axis for axis in ("pp", "ep") if sizes.get(axis, 1) > 1]
        assert answer["coordinates"] == expected, name


def test_right_arguments_are_never_contradicted(answers):
    def errors(answer):
        return {finding for finding in answer["findings"] if finding.endswith(" error")}

    # What is wrong without arguments is wrong with them: a run's own may contradict its tensors.
    alone = {name: errors(answer) for name, given, answer in answers if not given}
    checked = 0
    for name, given, answer in answers:
        if given:
            checked += 1
            assert errors(answer) <= alone[name], f"{name} {given}: {answer['findings']}"
    assert checked >= 20


def refuses_drifted(source, target):
    """Whether a conversion finds replicas that differ; it finds nothing else, and writes nothing then."""
    command = [os.environ["SHARDWRIGHT_BIN"], "convert", source, target, "--to", "torch_dist"]
    done = subprocess.run([*command, "--check-replicas", "all"], capture_output=True, text=True)
    if done.returncode == 0:
        shutil.rmtree(target)
        return False
    assert "SW0411" in done.stderr and not target.exists()
    return True


def test_shadows_of_tensors_are_their_replicas(shardwright, tmp_path):
    """Megatron-LM's PR 4628 keeps pieces under `__shadow_RANK__NAME`; no other file here has them."""
    unpack(tmp_path)
    source = tmp_path / "replica/dense/v0.20.0pr4628/tp2pp1dp2-none-shadow"
    done = shardwright("convert", source, tmp_path / "out", "--to", "torch_dist", "--check-replicas", "all")
    assert "9 replicas are equal to what they repeat" in done.stdout
    assert b"__shadow_" not in (tmp_path / "out/iter_0000010/.metadata").read_bytes()

    drifted = 0
    for file in sorted((source / "iter_0000010").glob("*.distcp")):
        whole = file.read_bytes()
        for start, end in outlines.archives_in(whole):
            for at, _ in outlines.storages_in(whole, start, end):
                file.write_bytes(outlines.sealed(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]))
                drifted += refuses_drifted(source, tmp_path / "bad")
        file.write_bytes(whole)
    assert drifted == 18  # nine replicas, and the nine pieces that they repeat


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        found = ask_all(os.environ["SHARDWRIGHT_BIN"], root, unpack(root))
        PINNED.write_text("".join(line(*answer) + "\n" for answer in found))
