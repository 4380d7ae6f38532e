# SPDX-License-Identifier: Apache-2.0
"""A process that has imported PyTorch and transformers, and forks what goes on from there.

    python warm.py start FOLDER        starts it; it ends with the process that asked for that
    python warm.py pytest FOLDER ...   pytest, in a process forked from it, as if it were this one
    python warm.py end FOLDER

A request is one message over the socket in FOLDER: what to call, in which folder and environment,
with the descriptors that become its input, output and errors. The answer is its exit status; if who
asks goes away, what was forked is killed. Importing takes seconds, forking none.
"""
import array
import atexit
import gc
import importlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

SOCKET, LOG = "socket", "log"
# All that takes long and that nothing here depends on the absence of. Megatron is not among it: there
# are two of them, and what stands in for Transformer Engine comes before either.
IMPORTED = (
    "pytest",
    "numpy",
    "torch",
    "torch.distributed.checkpoint",
    "torch.distributed.tensor",
    "torch.distributed.fsdp",
    "torch._dynamo",  # as the first DTensor of a process would
    "safetensors.torch",
    "transformers.modeling_utils",
    "transformers.models.auto.modeling_auto",
)
# Before torch is imported anywhere: one thread a process, nothing compiled for models this small.
ENVIRONMENT = dict(OMP_NUM_THREADS="1", TORCHDYNAMO_DISABLE="1", HF_HUB_OFFLINE="1")


def connect(folder):
    """A connection to the process of `folder`; an OSError where there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:  # a socket's path has to be short
        connection.connect(f"/proc/self/fd/{held}/{SOCKET}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(held)
    return connection


class Server:
    """Starts such a process, which ends with the process `owner` at the latest."""

    def __init__(self, folder, owner, imported=IMPORTED, seconds=120):
        self._folder = pathlib.Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / SOCKET).unlink(missing_ok=True)
        environment = {**os.environ, **ENVIRONMENT}
        environment.pop("PYTHONPATH", None)  # each has its own
        with open(self._folder / LOG, "w") as log:
            process = subprocess.Popen(
                [sys.executable, __file__, "serve", folder, str(owner), *imported],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        end = time.monotonic() + seconds
        while True:
            try:
                connect(folder).close()
                return
            except OSError:
                ended = process.poll() is not None or time.monotonic() > end
                assert not ended, f"it did not start:\n{(self._folder / LOG).read_text()}"
                time.sleep(0.02)

    @staticmethod
    def end(folder):
        with connect(folder) as connection:
            connection.send(b"{}")
            connection.recv(1)  # which says that it has ended


class Fork:
    """A process that calls `function` ("module.name") with `arguments`, in `folder` and `environment`,
    with `files` for input, output and errors. It is killed, with all of its group, by `close`."""

    def __init__(self, server, function, arguments, *, folder, environment, files):
        request = dict(
            function=function, arguments=arguments, folder=str(folder), environment=environment
        )
        self._connection = connect(server)
        message = json.dumps(request).encode()
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))
        self._connection.sendmsg([message], [rights])

    def wait(self):
        """Its exit status, negative where a signal ended it."""
        answer = self._connection.recv(64)
        assert answer, "the process that forks is gone"
        return int(answer)

    def close(self):
        self._connection.close()


class Requests:
    """What the warm process does until it is told to end."""

    def __init__(self, listener, owner):
        self._listener, self._owner = listener, owner
        self._children = {}  # by connection
        self._pipe = os.pipe()
        self._ended = self._pipe[0]
        for end in self._pipe:
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._pipe[1])
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self):
        """Gives None at the end of serving; in each process that is forked, what it is to run."""
        while True:
            waiting = [self._listener, self._ended, *self._children]
            ready, _, _ = select.select(waiting, [], [], 1)
            if not ready and not is_alive(self._owner):
                return self._end()
            for one in ready:
                if one is self._listener:
                    connection, _ = self._listener.accept()
                    self._children[connection] = None
                elif one == self._ended:
                    os.read(self._ended, 1000)
                    self._reap()
                elif one in self._children and self._children[one] is not None:
                    self._kill(one)  # nobody says anything twice: who asked is gone
                elif one in self._children:
                    message, files, _, _ = socket.recv_fds(one, 1 << 20, 3)
                    if message == b"{}":
                        return self._end()
                    if not message:
                        self._forget(one)
                        continue
                    child = os.fork()
                    if child == 0:
                        self._leave()
                        return json.loads(message), files
                    for file in files:
                        os.close(file)
                    self._children[one] = child

    def _reap(self):
        by_child = {child: connection for connection, child in self._children.items()}
        while True:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if child == 0:
                return
            connection = by_child.get(child)
            if connection is None:
                continue  # it was killed
            try:
                connection.send(str(os.waitstatus_to_exitcode(status)).encode())
            except OSError:
                pass  # who asked is gone too
            self._forget(connection)

    def _kill(self, connection):
        try:
            os.killpg(self._children[connection], signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._forget(connection)

    def _forget(self, connection):
        del self._children[connection]
        connection.close()

    def _end(self):
        for connection, child in list(self._children.items()):
            if child is not None:
                self._kill(connection)

    def _leave(self):
        """In a process that was forked: nothing of the server's is left in it."""
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for own in self._pipe:
            os.close(own)
        for connection in (self._listener, *self._children):
            connection.close()


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def run(request, files, path):
    """What a Python that was started for it would do; `path` is that of modules without PYTHONPATH."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    more = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.path[:] = [request["folder"], *more, *path]
    importlib.invalidate_caches()
    module, _, name = request["function"].rpartition(".")
    status = 1
    try:
        status = getattr(importlib.import_module(module), name)(*request["arguments"])
    except SystemExit as error:
        status = error.code
    except BaseException:
        traceback.print_exc()
    # As at the end of a Python, without taking apart what was imported.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 0 if status is None else 1)


def run_pytest(arguments):
    import pytest

    return int(pytest.main(arguments))


def serve(folder, owner, imported):
    path = sys.path[1:]
    for name in imported:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what was imported is no garbage: nobody need look at it, or copy its pages
    os.chdir(folder)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(SOCKET)
    listener.listen(64)
    job = Requests(listener, owner).serve()
    if job:
        run(*job, path)
    os._exit(0)


def main(action, folder, *words):
    folder = os.path.abspath(folder)
    if action == "start":
        Server(folder, os.getppid())
    elif action == "end":
        Server.end(folder)
    elif action == "serve":
        serve(folder, int(words[0]), words[1:])
    elif action == "pytest":
        fork = Fork(
            folder, "warm.run_pytest", [list(words)], folder=os.getcwd(),
            environment=dict(os.environ), files=[0, 1, 2],
        )  # fmt: skip
        status = fork.wait()
        if status < 0:
            print(f"pytest was ended by {signal.Signals(-status).name}", file=sys.stderr)
        sys.exit(status % 256)


if __name__ == "__main__":
    main(*sys.argv[1:])
