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


MODULE = b"ctorch.distributed.checkpoint.metadata\n"
CLASSES = {
    "Chunk": MODULE + b"ChunkStorageMetadata\n",
    "Index": MODULE + b"MetadataIndex\n",
    "Info": b"ctorch.distributed.checkpoint.filesystem\n_StorageInfo\n",
    "Size": b"ctorch\nSize\n",
}


BATCH = 1000  # as CPython's pickler puts many into a list or a dictionary


class Memo:
    """What a pickle names again and again: written once, and fetched by number from then on."""

    def __init__(self):
        self._numbers = {}

    def __call__(self, name):
        if name in self._numbers:
            return b"h" + bytes([self._numbers[name]])
        self._numbers[name] = len(self._numbers)
        return CLASSES.get(name, text(name)) + b"q" + bytes([self._numbers[name]])


def metadata_of_chunks(count):
    """A `.metadata` of one tensor of `count` elements, each a chunk of its own, in 200 files."""
    use = Memo()
    files = [f"__{i}_0.distcp" for i in range(200)]

    def size_of(number):
        return use("Size") + b"J" + struct.pack("<i", number) + b"\x85\x85R"

    made = [
        b"\x80\x04", MODULE, b"Metadata\n)\x81}(", text("state_dict_metadata"), b"}(", use("w"),
        MODULE, b"TensorStorageMetadata\n)\x81}(", text("properties"), MODULE, b"TensorProperties\n)\x81(",
        b"ctorch\nfloat32\n", b"ctorch.serialization\n_get_layout\n", text("torch.strided"), b"\x85R\x89",
        MODULE, b"_MEM_FORMAT_ENCODING\nK\x00\x85R\x89tb", text("size"), size_of(count),
        text("chunks"), b"](",
    ]  # fmt: skip
    for i in range(count):
        made += [b"e("] if i % BATCH == BATCH - 1 else []
        made += [use("Chunk"), b")\x81}(", use("offsets"), size_of(i), use("sizes"), size_of(1), b"ub"]
    made += [b"eubu", text("planner_data"), b"N", text("storage_data"), b"}("]
    for i in range(count):
        made += [b"u("] if i % BATCH == BATCH - 1 else []
        where = struct.pack("<i", i // len(files) * 64)
        made += [
            use("Index"), b")\x81}(", use("fqn"), use("w"), use("offset"), size_of(i), use("index"), b"J",
            struct.pack("<i", i), b"ub", use("Info"), b")\x81}(", use("relative_path"), use(files[i % len(files)]),
            use("offset"), b"J", where, use("length"), b"K\x40ub",
        ]  # fmt: skip
    made.append(b"uub.")
    return b"".join(made)
