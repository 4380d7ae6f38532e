# SPDX-License-Identifier: Apache-2.0
"""The process that tests are forked from: what it forks is as good as a process of its own."""
import os
import pathlib
import signal
import subprocess
import time

import pytest
import warm


@pytest.fixture
def fork(warm_folder, tmp_path):
    """Runs code in a forked process; its exit status and what it printed."""

    def run(code, server=warm_folder, **environment):
        with (tmp_path / "printed").open("w+") as printed:
            forked = warm.Fork(
                server, "builtins.exec", [code], folder=tmp_path, environment=environment,
                files=[0, printed.fileno(), printed.fileno()],
            )  # fmt: skip
            status = forked.wait()
            printed.seek(0)
            return status, printed.read()

    return run


def ends(process):
    """Whether it is gone, or about to be collected, within some seconds."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            if pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    "code, status",
    [
        ("pass", 0),
        ("raise SystemExit(7)", 7),
        ("raise SystemExit('in words')", 1),
        ("raise ValueError('as it was asked to')", 1),
        ("import os; os.abort()", -signal.SIGABRT),
    ],
)
def test_the_exit_status_is_the_process(fork, code, status):
    found, printed = fork(code)
    assert found == status
    assert ("as it was asked to" in printed) == ("ValueError" in code)


def test_environment_and_paths_are_those_asked_for(fork, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "only_here.py").write_text("place = 'more'")
    code = """if True:
        import atexit, os, sys
        assert "torch" in sys.modules and "megatron" not in sys.modules
        atexit.register(print, "at the end")
        import only_here
        print(os.getcwd(), sorted(os.environ), only_here.place, sys.path[:2])
    """
    more = str(tmp_path / "more")
    status, printed = fork(code, PYTHONPATH=more, HOME="/")
    assert status == 0, printed
    own = ["HOME", "PYTHONPATH"]
    assert printed == f"{tmp_path} {own} more {[str(tmp_path), more]}\nat the end\n"
    status, printed = fork(code)
    assert status == 1 and "No module named 'only_here'" in printed


def test_who_goes_away_takes_along_what_was_forked(warm_folder, tmp_path):
    code = """if True:
        import os, subprocess
        other = subprocess.Popen(["sleep", "1000"])
        with open("pids.new", "w") as file:
            print(os.getpid(), other.pid, file=file)
        os.rename("pids.new", "pids")
        other.wait()
    """
    forked = warm.Fork(
        warm_folder, "builtins.exec", [code], folder=tmp_path, environment=dict(os.environ),
        files=[0, 1, 2],
    )  # fmt: skip
    end = time.monotonic() + 60
    while not (tmp_path / "pids").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    forked.close()
    assert [pid for pid in (tmp_path / "pids").read_text().split() if not ends(int(pid))] == []


@pytest.mark.parametrize("is_told", [True, False])
def test_it_ends_when_told_and_with_its_owner(fork, tmp_path, is_told):
    owner = subprocess.Popen(["sleep", "1000"])
    server = tmp_path / "warm"
    try:
        warm.Server(server, owner.pid, imported=["json"])
        status, process = fork("import os; print(os.getppid())", server)
        assert status == 0, process
        if is_told:
            warm.Server.end(server)
    finally:
        owner.kill()
        owner.wait()
    assert ends(int(process))
    with pytest.raises(OSError):
        warm.connect(server)
