# SPDX-License-Identifier: Apache-2.0
"""The Python package against safetensors, torch and the program's own answers."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import threading
import time

import ml_dtypes
import numpy
import pytest
import torch
import torch.distributed.checkpoint as dcp
from checkpoints import GOLDEN, assert_same, filled_with_garbage, load_dcp, load_hf, same_bits, truth
from python_jobs import Unwritable
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from torch.distributed.checkpoint.state_dict_loader import (
    _load_state_dict,
    _load_state_dict_from_keys,
)

import shardwright
from shardwright.torch import StorageReader, StorageWriter

LLAMA = GOLDEN / "hf" / "llama3"
MCORE = GOLDEN / "mcore" / "dense_te" / "v0.16.1" / "tp2pp2-torch_dist-full"
DTYPES = [
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
    "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
    "float8_e5m2fnuz", "float8_e8m0fnu", "complex64",
]  # fmt: skip
TORCH_ONLY = ["complex128", "complex32", "float4_e2m1fn_x2"]


def random_tensor(name, *shape):
    """Bytes that make every type a different value; no bool is neither 0 nor 1."""
    dtype = getattr(torch, name)
    if dtype is torch.bool:
        return torch.arange(numpy.prod(shape)).reshape(shape) % 3 == 0
    raw = torch.randint(0, 256, (*shape[:-1], shape[-1] * dtype.itemsize), dtype=torch.uint8)
    return raw.view(dtype)


def all_of(path):
    with shardwright.open(path, framework="pt") as checkpoint:
        return {name: checkpoint.get_tensor(name) for name in checkpoint.keys()}


@pytest.fixture
def every_dtype(tmp_path):
    tensors = {name: random_tensor(name, 3, 4) for name in DTYPES}
    (tmp_path / "st").mkdir()
    save_file(tensors, tmp_path / "st" / "model.safetensors")
    return tmp_path / "st", tensors


def test_memory_that_cannot_be_read_into_is_refused():
    """Not a copy of it is filled instead."""
    checkpoint = shardwright.open(LLAMA / "hf")
    name = "model.norm.weight"
    (width,) = checkpoint.shape_of(name)
    whole = numpy.zeros(2 * width, numpy.uint8)
    checkpoint.read_into(name, (0,), (width,), whole)
    assert whole.tobytes() == load_hf(LLAMA / "hf")[name].view(torch.uint8).numpy().tobytes()
    for memory in (
        numpy.zeros(4 * width, numpy.uint8)[::2], numpy.zeros(2 * width, numpy.int8),
        numpy.zeros(2 * width, numpy.float32), numpy.zeros((2, width), numpy.uint8),
        torch.zeros(4 * width, dtype=torch.uint8)[::2], bytes(2 * width), [0] * (2 * width),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="read_into: found .*, expected memory that may be written"):
            checkpoint.read_into(name, (0,), (width,), memory)


def test_reads_hugging_face_as_safetensors_does():
    path = LLAMA / "hf"
    assert_same(all_of(path), load_hf(path))


def test_reads_torch_dist_as_torch_does():
    assert_same(all_of(MCORE), load_dcp(MCORE))


def test_reads_plain_dcp_as_torch_does():
    path = GOLDEN / "dcp" / "mlite_sound"
    assert_same(all_of(path), load_dcp(path))


@pytest.mark.parametrize("name", ["fsdp2_uneven", "safetensors_items", "zstd_twice"])
def test_reads_what_torch_can_write(name):
    path = GOLDEN / "dcp" / name
    assert_same(all_of(path / "ckpt"), load_file(path / "truth.safetensors"))


def test_boxes_that_torch_described_wrong_are_mended_and_told():
    path = GOLDEN / "dcp" / "strided_rows7"
    expected = load_file(path / "truth.safetensors")
    loaded = {name: filled_with_garbage(t.shape, t.dtype) for name, t in expected.items()}
    with pytest.warns(UserWarning, match="tensor rows7"):
        dcp.load(loaded, storage_reader=StorageReader(path / "ckpt"), no_dist=True)
    assert_same(loaded, expected)


def test_reads_legacy_as_the_program_converts_it(tmp_path):
    path = LLAMA / "legacy_tp2pp2ep1"
    shardwright.convert(path, tmp_path / "st", to="safetensors")
    legacy = all_of(path)
    assert len(legacy) > 10
    assert_same(legacy, load_hf(tmp_path / "st"))
    named = truth("llama3")
    assert same_bits(legacy["embedding.word_embeddings.weight"][:500],
                     named["embedding.word_embeddings.weight"][:500])  # fmt: skip


def test_numpy_has_every_dtype(every_dtype):
    path, tensors = every_dtype
    with shardwright.open(path) as checkpoint:
        assert len(checkpoint) == len(DTYPES) and "bool" in checkpoint
        for name, tensor in tensors.items():
            array = checkpoint.get_tensor(name)
            own = hasattr(numpy, name) or name == "bool"
            assert array.dtype == numpy.dtype(name if own else getattr(ml_dtypes, name))
            assert array.shape == (3, 4)
            assert array.tobytes() == tensor.view(torch.uint8).numpy().tobytes()


def test_torch_has_the_dtypes_that_numpy_lacks(tmp_path):
    tensors = {name: random_tensor(name, 3, 4) for name in TORCH_ONLY + DTYPES}
    dcp.save(tensors, storage_writer=StorageWriter(tmp_path / "ckpt"), no_dist=True)
    assert_same(all_of(tmp_path / "ckpt"), tensors)
    with shardwright.open(tmp_path / "ckpt") as checkpoint:
        assert checkpoint.get_tensor("complex128").dtype == numpy.complex128
        for name in ("complex32", "float4_e2m1fn_x2"):
            with pytest.raises(TypeError, match="framework='pt'"):
                checkpoint.get_tensor(name)


def test_without_ml_dtypes_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with shardwright.open(LLAMA / "hf") as checkpoint:
        with pytest.raises(TypeError, match="install ml_dtypes"):
            checkpoint.get_tensor("model.norm.weight")


def test_torch_is_imported_only_when_asked_for():
    code = (
        "import sys, shardwright\n"
        f"shardwright.open({str(MCORE)!r}).get_tensor('embedding.word_embeddings.weight')\n"
        "assert 'torch' not in sys.modules\n"
        f"shardwright.open({str(MCORE)!r}, 'pt').get_tensor('embedding.word_embeddings.weight')\n"
        "assert 'torch' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("framework", ["np", "pt"])
def test_slices_are_those_of_safetensors(every_dtype, framework):
    path, _ = every_dtype
    with safe_open(path / "model.safetensors", framework) as theirs:
        with shardwright.open(path, framework) as ours:
            for name in ("float32", "int16", "bool"):
                one, other = theirs.get_slice(name), ours.get_slice(name)
                assert other.get_shape() == one.get_shape()
                assert other.get_dtype() == one.get_dtype()
                for index in (
                    slice(1, 3), (slice(None), slice(1, 2)), (1, slice(0, 3)), (Ellipsis, 2),
                    slice(2, 2), (0, 0),
                ):  # fmt: skip
                    expected, found = numpy.asarray(one[index]), numpy.asarray(other[index])
                    assert found.shape == expected.shape, index
                    assert found.tobytes() == expected.tobytes(), index


def test_slices_cross_stored_pieces_and_take_steps():
    name = "embedding.word_embeddings.weight"
    whole = load_dcp(MCORE)[name]
    with shardwright.open(MCORE, "pt") as checkpoint:
        part = checkpoint.get_slice(name)
        rows = whole.shape[0]
        middle = slice(rows // 2 - 3, rows // 2 + 5)
        assert same_bits(part[middle, 1:7], whole[middle, 1:7])
        assert same_bits(part[1::5, -1], whole[1::5, -1])
        assert same_bits(part[-3:, -4:-1], whole[-3:, -4:-1])
        with pytest.raises(IndexError, match="outside"):
            part[rows]
        with pytest.raises(IndexError, match="positive"):
            part[::-1]
        with pytest.raises(IndexError, match="3 indices"):
            part[0, 0, 0]
        for other in (True, None, 1.0, [0, 1]):  # numpy's meaning is another, or none
            with pytest.raises(TypeError, match="axis 0: .* is no whole number, slice or '...'"):
                part[other]


def test_metadata_says_what_was_opened():
    with shardwright.open(MCORE) as checkpoint:
        assert checkpoint.metadata() == {
            "format": "torch_dist",
            "container": "torch_dist",
            "path": str(MCORE / "iter_0000010"),
            "iteration": "10",
        }
    with pytest.raises(ValueError, match="closed"):
        checkpoint.get_tensor("embedding.word_embeddings.weight")


def test_many_threads_may_read():
    expected = load_dcp(MCORE)
    found, threads = {}, []
    with shardwright.open(MCORE, "pt") as checkpoint:
        for part in range(4):
            names = checkpoint.keys()[part::4]

            def work(names=names):
                for name in names:
                    found[name] = checkpoint.get_tensor(name)

            threads.append(threading.Thread(target=work))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert_same(found, expected)


def test_errors_mirror_the_codes(tmp_path):
    with pytest.raises(shardwright.StorageError) as caught:
        shardwright.open(tmp_path / "nothing")
    assert caught.value.code == "SW0101" and "nothing" in caught.value.message
    with pytest.raises(shardwright.FormatError) as caught:
        shardwright.verify(tmp_path)
    assert caught.value.code == "SW0300"
    with pytest.raises(shardwright.UsageError) as caught:
        shardwright.convert(LLAMA / "hf", tmp_path / "x", to="nonsense")
    assert caught.value.code == "SW0900"
    with pytest.raises(shardwright.UsageError, match="help"):
        shardwright.verify(LLAMA / "hf", help=True)
    with pytest.raises(shardwright.UsageError, match="no such name"):
        shardwright.open(LLAMA / "hf").get_tensor("model.nrom.weight")
    with pytest.raises(shardwright.UsageError, match="framework"):
        shardwright.open(LLAMA / "hf", "jax")


def test_damage_is_an_error_when_it_is_read(tmp_path):
    folder = tmp_path / "st"
    folder.mkdir()
    save_file({"a": torch.arange(1000)}, folder / "model.safetensors")
    checkpoint = shardwright.open(folder)
    os.truncate(folder / "model.safetensors", 4000)
    with pytest.raises(shardwright.StorageError) as caught:
        checkpoint.get_tensor("a")
    assert caught.value.code == "SW0104"
    # Whatever was read of it before, it is another file now.
    with pytest.raises(shardwright.StorageError) as caught:
        with checkpoint:
            pass
    assert caught.value.code == "SW0111"


def test_convert_plan_verify_diff_hash_and_diagnose(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source, target = LLAMA / "hf", pathlib.Path("-megatron")
    plan = shardwright.plan(source, target, to="torch_dist", tp=2)
    assert not target.exists()
    assert plan.family == "llama" and plan.target["parallel"]["tp"] == 2
    assert any("lm_head.weight" in rename.source for rename in plan.renames)
    job = shardwright.plan(source, target, to="torch_dist", tp=2, dp=4, for_="replicas").target
    assert (job["tp_replicas"], job["dp"], job["for"]) == ("expand", 4, "replicas")
    with pytest.raises(shardwright.UsageError, match='for_="stock" needs dp='):
        shardwright.plan(source, target, to="torch_dist", tp_replicas="expand", for_="stock")
    told = []
    done = shardwright.convert(
        source, target, to="torch_dist", tp=2, progress=lambda *step: told.append(step)
    )
    assert done.output == str(target) and done.bytes_written == plan.cost["bytes_written"]
    assert told and told[-1][0] == told[-1][1] > 0
    with pytest.raises(shardwright.StorageError) as caught:
        shardwright.convert(source, target, to="torch_dist")
    assert caught.value.code == "SW0107"
    assert shardwright.convert(source, target, to="torch_dist", overwrite=True).format == "torch_dist"
    proof = shardwright.verify(target)
    assert proof and proof.findings == [] and proof.elements == 158144
    assert shardwright.diff(source, target).equal
    one, other = shardwright.hash(source), shardwright.hash(target)
    assert one.digest == other.digest and one.tensors[0].name == other.tensors[0].name
    said = shardwright.diagnose(LLAMA / "legacy_tp2pp2ep1", lang="en")
    assert said.sizes["pp"] == 2 and said.findings[0].code == "L12"
    for result in (plan, done, proof, one, said):
        assert result.to_dict()["schema"].startswith("shardwright/")
        assert "<table>" in result._repr_html_()


def test_findings_are_results(tmp_path):
    kept = shardwright.convert(LLAMA / "hf", tmp_path / "a", to="hf", exclude=["*norm*", "lm_head*"])
    assert kept.files_written > 0
    difference = shardwright.diff(LLAMA / "hf", tmp_path / "a", own_names=True)
    assert not difference.equal
    assert {"lm_head.weight", "model.norm.weight"} <= set(difference.missing_right)
    proof = shardwright.verify(tmp_path / "a")
    assert not proof and proof.findings and proof.findings[0].code.startswith("SW")


def test_html_is_escaped(tmp_path):
    folder = tmp_path / "<b>"
    folder.mkdir()
    save_file({"a": torch.arange(3)}, folder / "model.safetensors")
    page = shardwright.verify(folder)._repr_html_()
    assert "<b>" not in page and "&lt;b&gt;" in page


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_the_callback_raises_stops_and_leaves_nothing(tmp_path, error):
    def progress(done, total):
        raise error("enough")

    with pytest.raises(error, match="enough"):
        shardwright.convert(LLAMA / "hf", tmp_path / "out", to="torch_dist", progress=progress)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def large(tmp_path_factory):
    """Takes no disk, but a third of a second at least to convert."""
    folder, size = tmp_path_factory.mktemp("large"), 1 << 30
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)
    return folder


def test_a_signal_stops_and_leaves_nothing(large, tmp_path):
    """It arrives while the conversion runs; its handler raises, as that of Ctrl-C does."""
    def handler(*unused):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            shardwright.convert(large, tmp_path / "out", to="dcp")
            time.sleep(1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert list(tmp_path.iterdir()) == []


def test_other_threads_run_meanwhile(tmp_path):
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.0005)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = counted[0]
        shardwright.convert(LLAMA / "hf", tmp_path / "out", to="torch_dist")
        during = counted[0] - before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert during > 2


@pytest.mark.parametrize(
    "path",
    [LLAMA / "hf", MCORE, LLAMA / "legacy_tp2pp2ep1", GOLDEN / "dcp" / "mlite_sound"],
    ids=["hf", "torch_dist", "legacy", "dcp"],
)
def test_dcp_load_reads_any_format(path):
    expected = all_of(path)
    loaded = {name: filled_with_garbage(t.shape, t.dtype) for name, t in expected.items()}
    dcp.load(loaded, storage_reader=StorageReader(path), no_dist=True)
    assert_same(loaded, expected)


def test_dcp_load_names_what_is_missing():
    with pytest.raises(CheckpointException, match="not_there"):
        dcp.load({"not_there": torch.zeros(3)}, storage_reader=StorageReader(LLAMA / "hf"), no_dist=True)


def test_dcp_load_refuses_objects():
    state = {"a": 1}
    with pytest.raises(CheckpointException, match="a"):
        dcp.load(state, storage_reader=StorageReader(LLAMA / "hf"), no_dist=True)


def state_of(step):
    return {"model": {"w": torch.randn(7, 5), "b": torch.randn(5).bfloat16()}, "step": step}


def test_dcp_save_is_read_by_torch_and_by_us(tmp_path):
    state, path = state_of(3), tmp_path / "run" / "step_3"
    path.parent.mkdir()
    dcp.save(state, storage_writer=StorageWriter(path), no_dist=True)
    assert sorted(os.listdir(path)) == [".metadata", "__0_0.distcp"]
    assert os.listdir(path.parent) == ["step_3"]
    loaded = {"model": {"w": torch.zeros(7, 5), "b": torch.zeros(5).bfloat16()}, "step": 0}
    dcp.load(loaded, checkpoint_id=path, no_dist=True)
    assert loaded["step"] == 3
    assert_same(loaded["model"], state["model"])
    assert_same(all_of(path), {f"model.{name}": t for name, t in state["model"].items()})
    assert shardwright.verify(path).proven


def test_strides_of_one_element_or_none_say_nothing(tmp_path):
    """torch calls all of these contiguous."""
    wide = torch.arange(12.0).reshape(1, 12)
    state = {
        "column": wide[:, 3],
        "step": torch.arange(2.0)[::2],
        "square": wide[:, 5:6].t(),
        "scalar": torch.tensor(1.0).expand(1),
        "empty": torch.arange(8.0).reshape(2, 4)[:0, 2],
    }
    assert all(tensor.is_contiguous() for tensor in state.values())
    path = tmp_path / "step"
    dcp.save(state, storage_writer=StorageWriter(path), no_dist=True)
    for reader in (dcp.FileSystemReader(path), StorageReader(path), StorageReader(path, locality=True)):
        into = {
            name: torch.zeros(24).as_strided(tensor.shape, tensor.stride())
            for name, tensor in state.items()
        }
        dcp.load(into, storage_reader=reader, no_dist=True)
        assert all(torch.equal(into[name], state[name]) for name in state)


def test_a_nested_state_dict_comes_back_nested(tmp_path):
    state = {**state_of(3), "optim": {"param_groups": [{"lr": 0.1}], "state": {"w": torch.ones(2)}}}
    path = tmp_path / "step"
    dcp.save(state, storage_writer=StorageWriter(path), no_dist=True)
    loaded = {}
    planner = _EmptyStateDictLoadPlanner()
    _load_state_dict(loaded, storage_reader=StorageReader(path), planner=planner, no_dist=True)
    assert loaded["optim"]["param_groups"] == [{"lr": 0.1}] and loaded["step"] == 3
    assert_same(loaded["model"], state["model"])
    part = _load_state_dict_from_keys({"optim"}, storage_reader=StorageReader(path))
    assert part.keys() == {"optim"} and torch.equal(part["optim"]["state"]["w"], torch.ones(2))
    told = dcp.FileSystemReader(path).read_metadata().planner_data
    assert told and StorageReader(path).read_metadata().planner_data == told


def test_what_is_flat_or_seen_under_other_names_has_no_places(tmp_path):
    path = tmp_path / "step"
    state = {"model": load_hf(LLAMA / "hf")}
    dcp.save(state, storage_writer=StorageWriter(path), no_dist=True)
    (path / "config.json").write_bytes((LLAMA / "hf" / "config.json").read_bytes())
    assert StorageReader(path).read_metadata().planner_data
    for reader in (StorageReader(LLAMA / "hf"), StorageReader(MCORE),
                   StorageReader(path, names="hf")):  # fmt: skip
        assert reader.read_metadata().planner_data is None


def test_addresses_are_no_folders_to_save_into(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    address = "s3://bucket/run/step_3"
    with pytest.raises(ValueError, match="SW0900.*found an address, expected a folder"):
        StorageWriter(address)
    with pytest.raises(ValueError, match="SW0900.*the path is empty"):
        StorageWriter("")
    with pytest.raises(TypeError, match="not NoneType"):
        StorageReader(None)
    writer = StorageWriter(tmp_path / "step")
    with pytest.raises(ValueError, match="SW0900.*found an address"):
        dcp.save({"x": torch.ones(1)}, storage_writer=writer, checkpoint_id=address, no_dist=True)
    assert not list(tmp_path.iterdir())


def test_dcp_save_refuses_or_replaces_what_is_there(tmp_path, monkeypatch):
    path = tmp_path / "step"
    dcp.save(state_of(1), storage_writer=StorageWriter(path), no_dist=True)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(StorageWriter, "write_data", None)  # refused before anything is written
        with pytest.raises(CheckpointException, match="SW0107"):
            dcp.save(state_of(2), storage_writer=StorageWriter(path), no_dist=True)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    state = state_of(2)
    # What a killed save left.
    (tmp_path / ".step.old").mkdir()
    (tmp_path / ".step.old" / ".metadata").write_text("old")
    dcp.save(state, storage_writer=StorageWriter(path, overwrite=True), no_dist=True)
    assert os.listdir(tmp_path) == ["step"]
    assert same_bits(all_of(path)["model.w"], state["model"]["w"])


def test_a_failing_save_leaves_nothing(tmp_path):
    with pytest.raises(CheckpointException, match="cannot be written"):
        dcp.save({"w": torch.zeros(3), "x": Unwritable()},
                 storage_writer=StorageWriter(tmp_path / "step"), no_dist=True)  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_fails_at_the_end_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "step"
    writer = StorageWriter(path)
    real = torch.distributed.checkpoint.FileSystemWriter.finish

    def somebody_came_first(self, metadata, results):
        real(self, metadata, results)
        path.mkdir()

    monkeypatch.setattr(torch.distributed.checkpoint.FileSystemWriter, "finish", somebody_came_first)
    with pytest.raises(CheckpointException, match="SW0107"):
        dcp.save(state_of(1), storage_writer=writer, no_dist=True)
    assert os.listdir(tmp_path) == ["step"] and os.listdir(path) == []


def test_the_package_is_typed():
    folder = pathlib.Path(shardwright.__file__).parent
    assert (folder / "py.typed").exists()
    stub = (folder / "__init__.pyi").read_text()
    for name in shardwright.__all__:
        assert f"def {name}(" in stub or f"class {name}" in stub, name


def test_two_ranks_save_one_checkpoint_and_load_other_shards(ranks, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    ranks("python_jobs", "save_and_load", 2, path=folder / "step")
    assert sorted(os.listdir(folder / "step")) == [".metadata", "__0_0.distcp", "__1_0.distcp"]
    assert os.listdir(folder) == ["step"]
    with shardwright.open(folder / "step") as checkpoint:
        whole = numpy.arange(21, dtype="float32").reshape(7, 3)
        assert numpy.array_equal(checkpoint.get_tensor("w"), whole)


def test_a_rank_that_fails_publishes_nothing(ranks, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    ranks("python_jobs", "save_what_a_rank_cannot_write", 2, path=folder / "step")
    assert not (folder / "step").exists()
