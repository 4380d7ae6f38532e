# SPDX-License-Identifier: Apache-2.0
"""The package reads boxes of checkpoints on servers: a web server, a Hub and a bucket on loopback."""
import _thread
import importlib.util
import pathlib
import threading
import time

import numpy
import pytest
import torch
import torch.distributed.checkpoint as dcp
from checkpoints import GOLDEN, assert_same, load_dcp, load_hf

import shardwright
from shardwright.torch import StorageReader

MODEL = GOLDEN / "hf" / "llama3" / "hf"
RUN = GOLDEN / "mcore" / "dense_te" / "v0.16.1" / "tp2pp2-torch_dist-full"
PLACE = pathlib.Path(__file__).parents[1] / "remote" / "server.py"


@pytest.fixture(scope="module")
def server():
    spec = importlib.util.spec_from_file_location("remote_server", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def serve(server, monkeypatch, tmp_path):
    """A server of `folder`'s files below m/, and its addresses by what they are."""
    running = []

    def start(folder):
        files = {
            str(pathlib.Path("m", path.relative_to(folder))): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        one = server.Server(files)
        running.append(one)
        # The client of the process has read its own settings when the first of these tests began.
        for name, value in {
            "HOME": str(tmp_path), "HF_ENDPOINT": f"{one.url}/hub", "HF_TOKEN": "",
            "AWS_ENDPOINT_URL": f"{one.url}/s3", "AWS_ACCESS_KEY_ID": server.KEY,
            "AWS_SECRET_ACCESS_KEY": server.SECRET, "AWS_SESSION_TOKEN": server.SESSION,
            "AWS_REGION": server.REGION, "AWS_PROFILE": "", "SHARDWRIGHT_REMOTE_TRIES": "2",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        return one, {"web": f"{one.url}/m", "hub": "hf://org/model/m", "bucket": "s3://bucket/m"}

    yield start
    for one in running:
        one.close()


def all_of(path, **options):
    with shardwright.open(path, framework="pt", **options) as checkpoint:
        return {name: checkpoint.get_tensor(name) for name in checkpoint.keys()}


@pytest.mark.parametrize("kind", ["web", "hub", "bucket"])
def test_open_reads_what_a_local_copy_has(kind, serve):
    one, paths = serve(MODEL)
    assert_same(all_of(paths[kind]), load_hf(MODEL))
    assert one.requests and one.refused == []


@pytest.mark.parametrize("kind", ["web", "hub", "bucket"])
def test_runs_of_megatron_and_other_names(kind, serve):
    _, paths = serve(RUN)
    assert_same(all_of(paths[kind]), load_dcp(RUN))
    named = all_of(paths[kind], names="megatron")
    assert_same(named, all_of(RUN, names="megatron"))


def test_a_slice_takes_no_more_than_its_blocks(serve):
    one, paths = serve(MODEL)
    name = "model.embed_tokens.weight"
    expected = load_hf(MODEL)[name]
    with shardwright.open(paths["web"], framework="pt") as checkpoint:
        one.requests.clear()
        part = checkpoint.get_slice(name)[3:5]
        assert torch.equal(part, expected[3:5])
        asked = [headers["Range"] for _, path, headers in one.requests if "Range" in headers]
        assert len(asked) <= 1, asked
        assert torch.equal(checkpoint.get_slice(name)[3:5, 7], expected[3:5, 7])


@pytest.mark.parametrize("kind", ["web", "hub", "bucket"])
def test_storage_reader_loads_a_model(kind, serve):
    _, paths = serve(RUN)
    expected = {n: t for n, t in load_dcp(RUN).items() if not n.startswith("optimizer")}
    state = {name: torch.full_like(tensor, 7) for name, tensor in expected.items()}
    dcp.load(state, storage_reader=StorageReader(paths[kind]), no_dist=True)
    assert_same(state, expected)


def test_storage_reader_under_other_names(serve):
    _, paths = serve(MODEL)
    expected = all_of(MODEL, names="megatron")
    state = {name: torch.empty_like(tensor) for name, tensor in expected.items()}
    dcp.load(state, storage_reader=StorageReader(paths["bucket"], names="megatron"), no_dist=True)
    assert_same(state, expected)


def test_what_goes_wrong_is_an_exception_with_a_code(serve, server):
    one, paths = serve(MODEL)
    with pytest.raises(FileNotFoundError) as missing:
        shardwright.open("s3://bucket/none")
    assert missing.value.code == "SW0101"
    with pytest.raises(ValueError, match="SW0900"):
        shardwright.open("hf://org")
    one.gated = True
    with pytest.raises(PermissionError) as refused:
        shardwright.open(paths["hub"])
    assert refused.value.code == "SW0102" and "HF_TOKEN" in str(refused.value)
    assert not StorageReader.validate_checkpoint_id(paths["hub"])
    assert StorageReader.validate_checkpoint_id(paths["web"])
    one.faults = [server.fault(server.status(503), "model.safetensors", -1, "GET")]
    with pytest.raises(OSError) as ill:
        all_of(paths["web"])
    assert ill.value.code == "SW0119" and "503" in str(ill.value)


def test_a_file_that_changes_while_it_is_open(serve):
    one, paths = serve(MODEL)
    name = "m/model.safetensors"
    checkpoint = shardwright.open(paths["bucket"])
    one.files[name] = one.files[name][:-1] + b"\x7f"
    with pytest.raises(OSError) as changed:
        for tensor in checkpoint.keys():
            numpy.asarray(checkpoint.get_tensor(tensor))
        checkpoint.check_unchanged()
    assert changed.value.code == "SW0111"


@pytest.fixture
def silent(serve):
    """A server that is interrupted for: each request is Ctrl-C, and gets no answer."""
    over = threading.Event()

    def interrupt(handler):
        _thread.interrupt_main()
        return over.wait(60)

    one, paths = serve(MODEL)
    one.interrupt = interrupt
    yield one, paths["web"]
    over.set()


def is_interrupted(call):
    since = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        call()
        time.sleep(1)
    assert time.monotonic() - since < 10  # about a second, on a machine at rest


def test_ctrl_c_ends_what_waits_for_a_server(silent, tmp_path):
    one, url = silent
    one.faults = [one.interrupt]
    for call in (
        lambda: shardwright.open(url),
        lambda: shardwright.open(MODEL, names="megatron", hf_config=url),
        lambda: shardwright.convert(url, tmp_path / "x", to="torch_dist"),
        lambda: shardwright.plan(url, tmp_path / "x", to="torch_dist"),
        lambda: shardwright.verify(url),
        lambda: shardwright.diff(MODEL, url),
        lambda: shardwright.inspect(url),
        lambda: shardwright.diagnose(url),
        lambda: StorageReader(url).read_metadata(),
    ):
        is_interrupted(call)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_is_no_other_error(silent):
    """It comes with an answer that is one: the handler may run where the exception is made."""
    one, url = silent

    def refuse(handler):
        _thread.interrupt_main()
        handler.answer(403)
        return True

    one.faults = [refuse]
    for _ in range(5):
        is_interrupted(lambda: shardwright.open(url))


def test_ctrl_c_while_weights_are_read(silent, tmp_path):
    one, url = silent
    ill = [lambda handler: "Range" in handler.headers and one.interrupt(handler)]
    one.faults = ill
    is_interrupted(lambda: shardwright.convert(url, tmp_path / "x", to="torch_dist"))
    assert list(tmp_path.iterdir()) == []
    name, expected = "model.layers.1.mlp.up_proj.weight", load_hf(MODEL)
    one.faults = []
    with shardwright.open(url, framework="pt") as checkpoint:
        one.faults = ill
        is_interrupted(lambda: checkpoint.get_tensor(name))
        one.faults = []
        assert torch.equal(checkpoint.get_tensor(name), expected[name])


def test_ctrl_c_of_another_threads_work_is_the_main_ones(silent):
    """Only the main thread runs handlers: the other one goes on until its server answers."""
    one, url = silent
    found = []

    def slow(handler):
        _thread.interrupt_main()
        time.sleep(0.5)
        return False

    one.faults = [slow]
    other = threading.Thread(target=lambda: found.append(shardwright.verify(url).proven))
    is_interrupted(lambda: other.start() or other.join())
    one.faults = []
    while other.is_alive():
        try:
            other.join()
        except KeyboardInterrupt:
            pass
    assert found == [True]


def test_what_a_callback_calls_can_wait_for_servers_too(serve, tmp_path):
    """The main thread's work is done beside it; what it does meanwhile is done by itself."""
    _, paths = serve(MODEL)
    threads, proven = set(), []

    def progress(done, total):
        threads.add(threading.current_thread())
        proven.append(shardwright.verify(paths["web"]).proven)

    shardwright.convert(paths["web"], tmp_path / "x", to="torch_dist", progress=progress)
    assert threads == {threading.main_thread()} and proven and all(proven)
