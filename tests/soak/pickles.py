# SPDX-License-Identifier: Apache-2.0
"""Pickles that call things, and `.metadata` whose paths lead out. They are only ever written here."""
import pickletools
import struct

CALLABLES = [
    "os system", "posix system", "subprocess Popen", "subprocess check_output", "builtins eval",
    "builtins exec", "builtins __import__", "builtins getattr", "builtins open", "runpy run_path",
    "pip main", "webbrowser open", "pty spawn", "ctypes CDLL", "operator attrgetter",
    "operator methodcaller", "functools partial", "pkgutil resolve_name", "pydoc locate",
    "code interact", "importlib import_module", "shutil rmtree", "socket socket",
    "torch.hub load", "torch.utils.collect_env run", "torch.storage _load_from_bytes",
    "numpy.f2py.crackfortran getlincoef", "uuid _get_command_stdout", "marshal loads",
]  # fmt: skip


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def forms(module, name, command):
    """Every way in which a pickle has a callable called, by name."""
    target = b"c" + f"{module}\n{name}\n".encode()
    stacked = text(module) + text(name) + b"\x93"
    args = text(command)
    return {
        "reduce": b"\x80\x02" + target + args + b"\x85R.",
        "stack_global": b"\x80\x04" + stacked + args + b"\x85R.",
        "inst": b"(" + args + f"i{module}\n{name}\n".encode() + b".",
        "obj": b"\x80\x02(" + target + args + b"o.",
        "newobj": b"\x80\x02" + target + args + b"\x85\x81.",
        "popped": b"\x80\x02" + target + args + b"\x85R0N.",
        "build": b"\x80\x02" + target + b")R" + args + b"b.",
    }


def malicious_pickles(marker):
    """By name: the stream, and words of which one must be told. All would touch `marker`."""
    files = {}
    for entry in CALLABLES:
        module, name = entry.split()
        for form, stream in forms(module, name, f"touch {marker}").items():
            label = f"{module}.{name}.{form}".replace("/", "_")
            files[label] = (stream, [name, f"{module}.{name}"])
    return files


def metadata_with_path(stream, path):
    """A `.metadata` whose chunks all lie in the file `path`; frames are left out."""
    made = bytearray()
    ops = list(pickletools.genops(stream))
    for i, (op, argument, at) in enumerate(ops):
        end = ops[i + 1][2] if i + 1 < len(ops) else len(stream)
        if op.name == "FRAME":
            continue
        if isinstance(argument, str) and argument.endswith(".distcp"):
            made += text(path)
        else:
            made += stream[at:end]
    return bytes(made)
