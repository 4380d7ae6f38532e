# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Before torch is imported anywhere: one thread a process, and the CPU stand-in for TE in reach.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
for folder in (HERE, HERE / "tools"):
    sys.path.insert(0, str(folder))

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
def ranks(tmp_path_factory):
    """Runs a function of a module on forked ranks of a fresh process, and fails if one does."""

    def run(module, function, world, **arguments):
        store = tmp_path_factory.mktemp("job") / "store"
        words = [module, function, str(world), str(store), json.dumps(arguments, default=str)]
        path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, str(HERE / "ranks.py"), *words],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert done.returncode == 0, done.stderr[-6000:]

    return run


@pytest.fixture(scope="session")
def megatron_job(tmp_path_factory):
    """Runs megatron_worker.py in several processes and fails if any of them does."""

    def run(action, family, folder, spec="te", strict="raise_all", **sizes):
        world = 1
        for size in sizes.values():
            world *= size
        store = tmp_path_factory.mktemp("job") / "store"
        command = [sys.executable, str(HERE / "megatron_worker.py"), action, family, str(folder)]
        command += ["--store", str(store), "--world", str(world), "--spec", spec, "--strict", strict]
        for name, size in sizes.items():
            command += [f"--{name}", str(size)]
        path = os.pathsep.join([str(HERE), str(HERE / "tools")])
        environment = {**os.environ, "PYTHONPATH": path}
        ranks = [
            subprocess.Popen(
                [*command, "--rank", str(rank)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(world)
        ]
        try:
            outputs = [rank.communicate(timeout=240)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        failed = [i for i, rank in enumerate(ranks) if rank.returncode != 0]
        assert not failed, f"ranks {failed} failed:\n" + "\n".join(outputs[i][-4000:] for i in failed)

    return run
