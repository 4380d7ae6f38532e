# SPDX-License-Identifier: Apache-2.0
"""Arguments, results and truth of the package's functions."""
import contextlib
import copy
import gc
import json
import os
import pathlib
import pickle
import re
import shutil
import struct

import numpy
import pytest
import torch
from checkpoints import GOLDEN
from safetensors.torch import save_file

import shardwright
from shardwright import megatron
from shardwright.torch import StorageReader, StorageWriter

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


def put_sparse(folder, size):
    """A model of so many bytes, which takes no disk."""
    folder.mkdir()
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)


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
    run, out, huge = LLAMA / "hf", tmp_path / "out", tmp_path / "huge"
    put_sparse(huge, 8 << 40)  # for which no disk has room
    pairs += [
        (shardwright.plan(run, out, to="hf"), ["plan", run, out, "--to", "hf"]),
        (shardwright.plan(huge, out, to="dcp"), ["plan", huge, out, "--to", "dcp"]),
        (shardwright.inspect(run, tensors="*norm*"), ["inspect", run, "--tensors", "*norm*"]),
        (shardwright.inspect(run, tensors="zzz"), ["inspect", run, "--tensors", "zzz"]),
    ]
    truths = []
    for result, words in pairs:
        truths.append(bool(result))
        shardwright_program(*words, expect=0 if result else 1)
    assert truths == [True, False] * 5


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


def open_files(folder):
    links = pathlib.Path("/proc/self/fd")
    found = []
    for link in links.iterdir():
        with contextlib.suppress(OSError):  # that of the list itself
            found.append(os.readlink(link))
    return [file for file in found if file.startswith(str(folder))]


@pytest.fixture
def without_cycles():
    """What is dropped here has to go by its counts of references alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_what_nobody_has_any_more_has_no_open_files(without_cycles, tmp_path):
    save_file({"w": torch.arange(4.0)}, tmp_path / "model.safetensors")
    checkpoint = shardwright.open(tmp_path)
    assert "nope" not in checkpoint  # of no family: why is told where it is asked for
    with pytest.raises(shardwright.UnknownNameError, match="Megatron's names are not known here"):
        checkpoint.get_tensor("nope")
    checkpoint.get_tensor("w")
    assert open_files(tmp_path)
    del checkpoint
    assert not open_files(tmp_path)


@pytest.mark.parametrize("name", ["model.norm.weight", "decoder.final_layernorm.weight"])
def test_leaving_the_block_closes_the_files(without_cycles, name):
    folder = LLAMA / "hf"
    with shardwright.open(folder) as checkpoint:
        part = checkpoint.get_slice(name)
        part[:]
        assert open_files(folder)
    assert not open_files(folder)
    assert len(checkpoint.keys()) == len(checkpoint) == 30 and name in checkpoint
    assert checkpoint.shape_of(name) == tuple(part.get_shape()) == (64,)
    buffer = numpy.zeros(2, numpy.uint8)
    for use in (
        lambda: part[:],
        lambda: checkpoint.get_tensor(name),
        lambda: checkpoint.read_into(name, [0], [1], buffer),
        lambda: list(checkpoint.items()),
        lambda: "nope" in checkpoint,
        checkpoint.document_keys,
        checkpoint.check_unchanged,
    ):
        with pytest.raises(ValueError, match="the checkpoint is closed"):
            use()


def test_a_box_says_what_is_wrong_with_it():
    checkpoint, name = shardwright.open(LLAMA / "hf"), "model.norm.weight"
    buffer = numpy.zeros(2, numpy.uint8)

    def read(*box):
        for call in (checkpoint.read_box, lambda *given: checkpoint.read_into(*given, buffer)):
            try:
                call(name, *box)
            except (TypeError, shardwright.Error) as caught:
                yield str(caught)

    for origin in (("a",), (0.5,), None, 3):
        assert ["origin: found" in text for text in read(origin, (1,))] == [True, True], origin
        assert ["shape: found" in text for text in read((0,), origin)] == [True, True], origin
    for box in (((2**63,), (1,)), ((0,), (2**63,)), ((64,), (1,)), ((-1,), (1,)), ((0, 0), (1, 1)), ((3,), (-1,))):
        for text in read(*box):
            assert "SW0309" in text and "does not lie inside (64,)" in text
        assert len(list(read(*box))) == 2, box
    assert checkpoint.read_box(name, numpy.array([64]), torch.Size([0])).shape == (0,)
    with pytest.raises(TypeError, match="read_into: found NoneType, expected memory"):
        checkpoint.read_into(name, [0], [1], None)


def test_what_is_no_name_is_told(tmp_path):
    checkpoint, half = shardwright.open(LLAMA / "hf"), "\udc80"
    assert half not in checkpoint and ["model.norm.weight"] not in checkpoint
    for name in (half, ["model.norm.weight"]):
        with pytest.raises(shardwright.UnknownNameError, match="no such name") as caught:
            checkpoint.get_tensor(name)
        str(caught.value).encode()
    with pytest.raises(shardwright.UnknownNameError, match="no such name") as caught:
        checkpoint.get_object(half)
    str(caught.value).encode()
    with pytest.raises(TypeError, match="get_object: found list, expected a name"):
        checkpoint.get_object(["x"])
    with pytest.raises(TypeError, match="get_document: found int, expected a name"):
        checkpoint.get_document(1)
    for name in ("nothing", half):
        with pytest.raises(shardwright.MissingError, match="SW0101"):
            checkpoint.get_document(name)


def test_locality_counts_who_reads_what():
    found = shardwright.locality(GOLDEN / "replica" / "diverged", tp=2, dp=2)
    assert found.ranks == 4 and found.rules["per_chunk"]["foreign_opens"] == 0
    assert found.rules["per_name"]["foreign_bytes"] == 168060
    with pytest.raises(shardwright.ModelError):
        shardwright.locality(GOLDEN / "replica" / "diverged", tp=3)


@pytest.mark.parametrize("call, kind, words", [
    (lambda: StorageWriter("x", thread_count="a"), TypeError, "thread_count: found 'a', expected a whole"),
    (lambda: StorageWriter("x", thread_count=1.5), TypeError, "thread_count: found 1.5"),
    (lambda: StorageWriter("x", thread_count=-1), shardwright.UsageError, "of 0 or more"),
    (lambda: StorageWriter("x", replicas=3), TypeError, "replicas: found 3, expected a process group"),
    (lambda: StorageReader("x", replicas=True), TypeError, "replicas: found True"),
    (lambda: StorageReader("x", as_=5), TypeError, "as_: found 5"),
    (lambda: shardwright.open(LLAMA / "hf", as_=5), TypeError, "as_: found 5, expected a word"),
    (lambda: shardwright.open(LLAMA / "hf", names="hf", family=3), TypeError, "family: found 3"),
    (lambda: shardwright.open(LLAMA / "hf", names="hf", mtp=0), TypeError, "mtp: found 0"),
    (lambda: megatron.SaveStrategy(max_staging_bytes="16GiB"), TypeError, "max_staging_bytes: found '16GiB'"),
    (lambda: megatron.SaveStrategy(max_staging_bytes=-1), shardwright.UsageError, "of 0 or more"),
    (lambda: megatron.SaveStrategy(threads=True), TypeError, "threads: found True"),
    (lambda: megatron.LoadStrategy(round_bytes=0), shardwright.UsageError, "round_bytes: found 0"),
    (lambda: megatron.LoadStrategy(round_bytes="1MiB"), TypeError, "round_bytes: found '1MiB'"),
    (lambda: megatron.LoadStrategy(sent_price=-1), shardwright.UsageError, "from 0 to 1000"),
    (lambda: megatron.LoadStrategy(read_price=1001), shardwright.UsageError, "read_price: found 1001"),
])  # fmt: skip
def test_odd_arguments_are_told_when_they_are_given(call, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        call()


def test_what_megatron_offers_is_listed():
    assert set(megatron.__all__) <= set(dir(megatron))


def test_a_slice_takes_no_truths_for_numbers():
    with shardwright.open(LLAMA / "hf", framework="pt") as checkpoint:
        part = checkpoint.get_slice("model.norm.weight")
        for truth in (True, numpy.bool_(True), numpy.array(True), torch.tensor(True)):
            with pytest.raises(TypeError, match="is no whole number"):
                part[truth]
        assert part[torch.tensor(1)] == part[numpy.int8(1)] == part[1]


def test_a_closed_checkpoint_still_has_its_names(tmp_path):
    save_file({"b": torch.zeros(3), "a": torch.zeros(1)}, tmp_path / "model.safetensors")
    with shardwright.open(tmp_path) as checkpoint:
        pass
    assert checkpoint.keys() == ["a", "b"]
    with shardwright.open(tmp_path) as again:
        assert checkpoint.offset_keys() == again.offset_keys()
    assert sorted(checkpoint.offset_keys()) == ["a", "b"]
