# SPDX-License-Identifier: Apache-2.0
"""What the installed wheel must do without torch: `./dev wheel` runs this in its environment."""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy

import shardwright

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden" / "hf" / "llama3"
PROGRAM = pathlib.Path(sys.executable).parent / "shardwright"


def program(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def raw_tensors(file):
    """Bytes by name, read without any library."""
    data = file.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    ranges = {name: entry["data_offsets"] for name, entry in header.items()}
    return {name: data[end + a : end + b] for name, (a, b) in ranges.items()}


def main():
    assert importlib.util.find_spec("torch") is None, "this environment is not bare"
    package = pathlib.Path(shardwright.__file__).parent
    assert package.is_relative_to(sys.prefix), package
    found = {str(file.relative_to(package)) for file in package.rglob("*") if file.is_file()}
    expected = {"__init__.py", "__init__.pyi", "torch/__init__.py", "torch/__init__.pyi", "py.typed"}
    assert expected <= found and not any(name.endswith((".cc", ".h")) for name in found), found
    assert program("--version").split()[-1] == shardwright.__version__
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        program("convert", GOLDEN / "hf", out / "mcore", "--to", "torch_dist", "--tp", "2")
        done = shardwright.convert(out / "mcore", out / "hf", to="hf")
        assert done.family == "llama" and shardwright.verify(out / "mcore")
        assert shardwright.diff(GOLDEN / "hf", out / "hf").equal
        compared = 0
        with shardwright.open(out / "hf") as checkpoint:
            for file in (GOLDEN / "hf").glob("*.safetensors"):
                for name, bytes_ in raw_tensors(file).items():
                    shape = checkpoint.shape_of(name)
                    buffer = numpy.empty(len(bytes_), dtype=numpy.uint8)
                    checkpoint.read_into(name, [0] * len(shape), shape, buffer)
                    assert buffer.tobytes() == bytes_, name
                    compared += 1
        assert compared > 20, compared
    print(program("demo", "--help").splitlines()[0])
    print(f"shardwright {shardwright.__version__} works without torch: {compared} tensors compared")


if __name__ == "__main__":
    main()
