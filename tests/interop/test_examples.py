# SPDX-License-Identifier: Apache-2.0
"""The scripts of examples/ run, and say what they promise."""
import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
SAID = {
    "megatron_to_hf": ["torch_dist, saved with {'tp': 2, 'pp': 2", "equal: True, 39 tensors"],
    "hf_to_megatron": ["legacy: mp_rank_00_000_000, mp_rank_00_001_000", "bytes of memory"],
    "look_inside": ["torch_dist: 9 tensors", "(4, 192, 64) (192, 64)", "0 NaN"],
    "resume_elsewhere": ["laid out for the job: 0 bytes"],
    "torch_dcp": ["39 tensors loaded from run", "saved and equal: True"],
}


def run(name, *arguments):
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments)],
        env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_an_example_does_what_it_says(name, tmp_path):
    done = run(name, tmp_path)
    assert done.returncode == 0, done.stderr
    for part in SAID[name]:
        assert part in done.stdout, done.stdout


def test_every_example_is_tried_and_listed():
    scripts = {path.stem for path in EXAMPLES.glob("*.py")} - {"tiny_models"}
    assert scripts == set(SAID)
    page = (EXAMPLES / "README.md").read_text()
    assert all(f"({name}.py)" in page for name in scripts)


def test_without_a_folder_nothing_is_left(tmp_path):
    os.environ["TMPDIR"] = str(tmp_path)
    try:
        assert run("look_inside").returncode == 0
    finally:
        del os.environ["TMPDIR"]
    assert list(tmp_path.iterdir()) == []
