# SPDX-License-Identifier: Apache-2.0
import math
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
for folder in (HERE, HERE / "tools"):  # the CPU stand-in for TE is in reach
    sys.path.insert(0, str(folder))

import warm  # noqa: E402

os.environ.update(warm.ENVIRONMENT)
os.environ.setdefault("SOURCE_DATE_EPOCH", "0")

import pytest  # noqa: E402


@pytest.fixture(scope="session")
def shardwright():
    """Runs the program: `shardwright("convert", source, target, "--to", "hf")`."""
    program = os.environ.get("SHARDWRIGHT_BIN")
    assert program, "SHARDWRIGHT_BIN must name the program under test"

    def run(*arguments, expect=0):
        command = [program, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == expect, (
            f"exit status {done.returncode}, expected {expect}: {' '.join(command)}\n"
            f"{done.stdout}\n{done.stderr}"
        )
        return done

    return run


@pytest.fixture(scope="session")
def megatron(tmp_path_factory):
    """The megatron_cpu module in a job of this one process."""
    import megatron_cpu

    megatron_cpu.start(store=tmp_path_factory.mktemp("job") / "store")
    return megatron_cpu


@pytest.fixture(scope="session")
def warm_folder(tmp_path_factory):
    """That of the warm process which serves all tests of a ctest, or else of one for these."""
    shared = os.environ.get("SHARDWRIGHT_WARM")
    if shared:
        yield shared
        return
    own = tmp_path_factory.mktemp("warm")
    warm.Server(own, os.getpid())
    yield own
    warm.Server.end(own)


@pytest.fixture(scope="session")
def ranks(tmp_path_factory, warm_folder):
    """Runs a function of a module on ranks that are forked from a process which has imported it."""
    import ranks as forked

    processes = {}

    def run(module, function, world, **arguments):
        path = os.pathsep.join([str(HERE), str(HERE / "tools"), os.environ.get("PYTHONPATH", "")])
        process = processes.get((module, path))
        if process is None or not process.is_open:
            process = forked.Ranks(module, {**os.environ, "PYTHONPATH": path}, warm_folder)
            processes[module, path] = process
        process.run(function, world, tmp_path_factory.mktemp("job") / "store", arguments)

    yield run
    for process in processes.values():
        process.close()


def put_in_front(patch, variable, part):
    """The Megatron-Core whose folder `variable` names, before the environment's own."""
    folder = os.environ.get(variable, "")
    assert pathlib.Path(folder, part).is_dir(), f"found no {part} in '{folder}'; './dev test' puts it there"
    path = os.pathsep.join([folder, str(HERE / "tools"), os.environ.get("PYTHONPATH", "")])
    patch.setenv("PYTHONPATH", path)


@pytest.fixture(scope="module")
def newer_ranks(ranks, monkeypatch_module):
    """As `ranks`, with the later Megatron-Core in front."""
    put_in_front(monkeypatch_module, "SHARDWRIGHT_NEWER_MEGATRON", "megatron/training")
    return ranks


@pytest.fixture(scope="module")
def older_ranks(ranks, monkeypatch_module):
    """As `ranks`, with an earlier Megatron-Core in front, and zarr beside it."""
    put_in_front(monkeypatch_module, "SHARDWRIGHT_OLDER_MEGATRON", "zarr")
    return ranks


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="session")
def megatron_job(ranks):
    """Saves or loads a golden family on ranks of Megatron, and fails if any of them does."""

    def run(action, family, folder, spec="te", strict="raise_all", **sizes):
        world = math.prod(sizes.values())
        ranks(
            "megatron_worker", action, world, family=family, folder=folder, spec=spec,
            strict=strict, sizes=sizes,
        )  # fmt: skip

    return run
