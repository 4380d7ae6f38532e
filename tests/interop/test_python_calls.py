# SPDX-License-Identifier: Apache-2.0
"""Arguments, results and truth of the package's functions."""
import copy
import os
import pathlib
import pickle
import shutil

import numpy
import pytest
from checkpoints import GOLDEN

import shardwright

LLAMA = GOLDEN / "hf" / "llama3"
SOURCES = {
    "hf": LLAMA / "hf",
    "legacy": LLAMA / "legacy_tp2pp2ep1",
    "torch_dist": GOLDEN / "mcore" / "dense_te" / "v0.16.1" / "tp2pp2-torch_dist-full",
    "dcp": GOLDEN / "dcp" / "mlite_sound",
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("to", ["safetensors", "dcp"])
def test_a_dry_run_is_a_plan(tmp_path, source, to):
    out = tmp_path / "out"
    plan = shardwright.convert(source, out, to=to, dry_run=True)
    assert isinstance(plan, shardwright.Plan) and not out.exists()
    expected = shardwright.plan(source, out, to=to)
    assert plan.cost["bytes_written"] == expected.cost["bytes_written"] > 0
    done = shardwright.convert(source, out, to=to, dry_run=False)
    assert isinstance(done, shardwright.Conversion)
    assert done.bytes_written == plan.cost["bytes_written"]


def test_results_are_true_where_the_program_succeeds(tmp_path, shardwright_program):
    shardwright.convert(LLAMA / "hf", tmp_path / "same", to="safetensors")
    shardwright.convert(LLAMA / "hf", tmp_path / "less", to="hf", exclude="*norm*")
    pairs = [
        (shardwright.diff(LLAMA / "hf", tmp_path / "same"), ["diff", LLAMA / "hf", tmp_path / "same"]),
        (
            shardwright.diff(LLAMA / "hf", tmp_path / "less", own_names=True),
            ["diff", LLAMA / "hf", tmp_path / "less", "--own-names"],
        ),
        (shardwright.verify(LLAMA / "hf"), ["verify", LLAMA / "hf"]),
        (shardwright.verify(tmp_path / "less"), ["verify", tmp_path / "less"]),
        (shardwright.diagnose(SOURCES["legacy"]), ["diagnose", SOURCES["legacy"]]),
        (shardwright.diagnose(SOURCES["legacy"], tp=8), ["diagnose", SOURCES["legacy"], "--tp", "8"]),
    ]
    truths = []
    for result, words in pairs:
        truths.append(bool(result))
        shardwright_program(*words, expect=0 if result else 1)
    assert truths == [True, False] * 3


@pytest.fixture
def shardwright_program(request):
    return request.getfixturevalue("shardwright")


@pytest.mark.parametrize("kind", [str, os.fsencode, pathlib.Path], ids=["str", "bytes", "path"])
def test_paths_of_every_kind(tmp_path, kind):
    source, out = kind(str(LLAMA / "hf")), kind(str(tmp_path / "out"))
    assert shardwright.convert(source, out, to="hf", hf_config=source).output == str(tmp_path / "out")
    assert shardwright.diff(source, out) and shardwright.verify(out) and shardwright.diagnose(out)
    assert shardwright.hash(out, manifest=kind(str(tmp_path / "m.json"))).digest
    assert shardwright.verify(out, against=kind(str(tmp_path / "m.json")))
    with shardwright.open(out) as checkpoint:
        assert checkpoint.metadata()["path"] == str(tmp_path / "out")


def test_names_of_files_that_are_no_text(tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xff-\xfe"
    shutil.copytree(os.fsencode(LLAMA / "hf"), folder)
    with shardwright.open(folder) as checkpoint:
        assert os.fsencode(checkpoint.metadata()["path"]) == folder
    assert shardwright.verify(os.fsdecode(folder))
    shardwright.convert(folder, folder + b"-out", to="safetensors")
    assert shardwright.diff(folder, folder + b"-out")
    for call in (shardwright.open, shardwright.verify):
        with pytest.raises(shardwright.StorageError, match="SW0101"):
            call(folder + b"-none")


def test_what_is_no_path():
    for call in (shardwright.open, shardwright.verify, shardwright.hash, shardwright.diagnose):
        with pytest.raises(ValueError, match="null byte"):
            call("a\0b")
        for nothing in (None, 3):
            with pytest.raises(TypeError):
                call(nothing)
        with pytest.raises(shardwright.Error):
            call("")


def test_flags_of_every_kind(tmp_path):
    source, out = LLAMA / "hf", tmp_path / "out"
    shardwright.convert(source, out, to="torch_dist", tp=numpy.int64(2), pp="1", threads=None)
    shardwright.convert(source, out, to="HF", overwrite=numpy.bool_(True), dtype="bf16", include=[])
    shardwright.convert(source, out, to="hf", overwrite=True, exclude=("*norm*", b"lm_head*"))
    assert shardwright.diff(source, source, tolerance=numpy.float32(1e-6))
    for wrong in ({"overwite": True}, {"tp": True}, {"tp": 0}, {"dtype": "int3"}, {"help": True}):
        with pytest.raises(shardwright.UsageError) as caught:
            shardwright.convert(source, tmp_path / "no", to="torch_dist", **wrong)
        assert "'--'" not in caught.value.message
    assert not (tmp_path / "no").exists()


def test_results_are_values(tmp_path):
    result = shardwright.hash(LLAMA / "hf")
    assert copy.deepcopy(result) == result == pickle.loads(pickle.dumps(result))
    assert result.to_dict() == pickle.loads(pickle.dumps(result)).to_dict()
    assert repr(result).startswith("Digests(algorithm=") and len(repr(result)) < 2000
    assert f"{len(result.tensors) - 5} more]" in repr(result)
    with pytest.raises(shardwright.Error) as caught:
        shardwright.open(tmp_path / "nothing")
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value) and str(again) == str(caught.value)


def test_what_is_open_says_so():
    with shardwright.open(LLAMA / "hf") as checkpoint:
        assert repr(checkpoint) == f"<shardwright.Checkpoint {str(LLAMA / 'hf')!r}: hf, 30 tensors>"
        part = checkpoint.get_slice("model.norm.weight")
        assert "model.norm.weight" in repr(part) and "BF16" in repr(part)
        assert 3 not in checkpoint and None not in checkpoint
    assert "closed" in repr(checkpoint)
    for use in (checkpoint.metadata, lambda: part[:]):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_locality_counts_who_reads_what():
    found = shardwright.locality(GOLDEN / "replica" / "diverged", tp=2, dp=2)
    assert found.ranks == 4 and found.rules["per_chunk"]["foreign_opens"] == 0
    assert found.rules["per_name"]["foreign_bytes"] == 168060
    with pytest.raises(shardwright.ModelError):
        shardwright.locality(GOLDEN / "replica" / "diverged", tp=3)
