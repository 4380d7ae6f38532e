# SPDX-License-Identifier: Apache-2.0
"""Runs the command line as several ranks on this machine, without a network."""
import json
import os
import pathlib
import random
import shlex
import signal
import struct
import subprocess
import tempfile
import time

PROGRAM = os.environ["SHARDWRIGHT_BIN"]
RANKED = os.environ["SHARDWRIGHT_MPI_BIN"]
FAULT = os.environ["SHARDWRIGHT_MPI_FAULT"]

MPI = {
    "OMPI_MCA_btl": "self,vader",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_plm": "isolated",
    "OMPI_MCA_oob_tcp_if_include": "lo",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PMIX_MCA_gds": "hash",
    "LC_ALL": "C",
    "NO_COLOR": "1",  # mpirun makes a terminal of the ranks' output
}
PLAIN = dict(os.environ, LC_ALL="C", NO_COLOR="1")
# Tensors of 18 MB together, the larger ones several pieces of work.
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "dtype": "bfloat16",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "vocab_size": 2048,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
}


# Of the byte with a number's sign and most of its exponent: numbers about 1.
FINITE = bytes(byte & 0x80 | 0x3F for byte in range(256))


def llama_shapes():
    hidden, inner, vocabulary = 512, 1024, 2048
    yield "model.embed_tokens.weight", (vocabulary, hidden)
    yield "lm_head.weight", (vocabulary, hidden)
    yield "model.norm.weight", (hidden,)
    for layer in range(CONFIG["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        yield prefix + "input_layernorm.weight", (hidden,)
        yield prefix + "post_attention_layernorm.weight", (hidden,)
        for name, rows in (("q", 512), ("k", 256), ("v", 256), ("o", 512)):
            yield f"{prefix}self_attn.{name}_proj.weight", (rows, hidden)
        yield prefix + "mlp.gate_proj.weight", (inner, hidden)
        yield prefix + "mlp.up_proj.weight", (inner, hidden)
        yield prefix + "mlp.down_proj.weight", (hidden, inner)


def make_llama(folder, files=1, seed=20):
    """A Hugging Face checkpoint of 18 MB in one file or several, of random numbers."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    numbers = random.Random(seed)
    shapes = list(llama_shapes())
    names = ["model.safetensors"]
    if files > 1:
        names = [f"model-{i + 1:05}-of-{files:05}.safetensors" for i in range(files)]
    place = {}
    for number, name in enumerate(names):
        begin, end = (len(shapes) * i // files for i in (number, number + 1))
        write_safetensors(folder / name, shapes[begin:end], numbers)
        place |= {tensor: name for tensor, _ in shapes[begin:end]}
    if files > 1:
        index = {"metadata": {}, "weight_map": place}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def write_safetensors(path, shapes, numbers):
    """BF16 tensors, no element of which is infinite or no number."""
    head, end = {}, 0
    for name, shape in shapes:
        size = 2 * (shape[0] * shape[1] if len(shape) == 2 else shape[0])
        head[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    data = bytearray(numbers.randbytes(end))
    data[1::2] = data[1::2].translate(FINITE)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def contents(folder):
    """Every file below a folder, as bytes."""
    files = pathlib.Path(folder).rglob("*")
    return {str(f.relative_to(folder)): f.read_bytes() for f in files if f.is_file()}


def run_alone(*arguments):
    """The ordinary program; its standard output."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Ended:
    """How a job ended: exit status, both streams, seconds since it began and since its fault."""

    def __init__(self, status, output, messages, seconds, since_fault):
        self.status, self.output, self.messages = status, output, messages
        self.seconds, self.since_fault = seconds, since_fault


def run_ranks(ranks, *arguments, fault=None, mark=None, other_rank=None, notes=None):
    """The program as `ranks` processes. `fault`: FAULT_* of fault.cc by their last words; `mark`: a
    file that says when it came. `other_rank`: the arguments of one more rank, the last. `notes`: a
    file that each rank's notes lie beside, and what the paths of noted files contain."""
    environment = dict(os.environ, **MPI)
    if notes:
        environment |= {"LD_PRELOAD": FAULT, "NOTE_FILE": str(notes[0]), "NOTE_PATH": notes[1]}
    if fault:
        environment |= {"FAULT_" + name: str(value) for name, value in fault.items()}
        environment |= {"LD_PRELOAD": FAULT, "FAULT_MARK": str(mark)}
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]
    command += [RANKED, *map(str, arguments)]
    if other_rank:
        command += [":", "-n", "1", RANKED, *map(str, other_rank)]
    # Jobs that share a folder for their sockets make and remove it under one another's feet.
    with tempfile.TemporaryDirectory(prefix="mpi", ignore_cleanup_errors=True) as sockets:
        environment["OMPI_MCA_orte_tmpdir_base"] = sockets
        begin = time.time()
        status, output, messages, end = _end_of(command, environment, pathlib.Path(sockets))
    came = bool(mark and mark.exists())
    if status is None:
        raise AssertionError(
            f"{shlex.join(command)} has not ended, "
            f"{'its fault came' if came else 'no fault came'} ({fault}): {messages}"
        )
    since = end - mark.stat().st_mtime if came else None
    return Ended(status, output, messages, end - begin, since)


# A job's, and how long mpirun may go on when its last rank has ended. The mpirun of Debian 12 may
# wait for itself for ever then (src/mpi/mpi_communicator.cc): rarely, so not more often than this.
SECONDS_OF_JOB, SECONDS_OF_LAUNCHER, HUNG_LAUNCHERS = 100, 20, 2
_hung_launchers = []


def _end_of(command, environment, folder):
    """Of a job: its exit status, None where it has not ended, both streams, and when it ended."""
    with open(folder / "out", "w+") as output, open(folder / "err", "w+") as messages:
        job = subprocess.Popen(command, env=environment, stdout=output, stderr=messages)
        last_rank = deadline = time.time() + SECONDS_OF_JOB
        while job.poll() is None and time.time() < min(deadline, last_rank + SECONDS_OF_LAUNCHER):
            if _has_ranks(job.pid):
                last_rank = time.time()
            time.sleep(0.02)
        status, end = job.poll(), time.time()
        if status is None:
            job.kill()
            job.wait()
            if end < deadline:
                status, end = -signal.SIGKILL, last_rank
                _hung_launchers.append(shlex.join(command))
                print(f"mpirun hung when its ranks had ended: {_hung_launchers[-1]}", flush=True)
                assert len(_hung_launchers) <= HUNG_LAUNCHERS, _hung_launchers
        for stream in (output, messages):
            stream.seek(0)
        return status, output.read(), messages.read(), end


def _has_ranks(launcher):
    """Whether a process that mpirun has begun is left, but as what it would have to wait for."""
    children = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children")
    for child in children.read_text().split() if children.exists() else []:
        try:
            state = pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            return True
    return False


class Notes:
    """What a rank did with files, by their names: opens, and bytes read."""

    def __init__(self, file, rank):
        self.opens, self.bytes_read = {}, {}
        path = file.with_name(f"{file.name}.{rank}")
        for line in path.read_text().splitlines() if path.exists() else []:
            call, size, of = line.split(" ", 2)
            name = of.rsplit("/", 1)[-1]
            counts = self.opens if call == "open" else self.bytes_read
            counts[name] = counts.get(name, 0) + (1 if call == "open" else int(size))


def living(text, within):
    """The ranks whose command line has `text` in it and that don't end within so many seconds."""
    deadline = time.monotonic() + within
    while found := _ranks_with(text):
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return found


def _ranks_with(text):
    found = []
    for line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = line.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"shardwright-mpi") and any(text.encode() in word for word in words):
            found.append(line.parent.name)
    return found
