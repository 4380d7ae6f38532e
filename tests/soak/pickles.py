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


PARTS_OF_METADATA = [
    (b"ctorch.distributed.checkpoint.metadata\nChunkStorageMetadata\n", "Chunk"),
    (b"ctorch.distributed.checkpoint.metadata\nMetadataIndex\n", "Index"),
    (b"ctorch.distributed.checkpoint.filesystem\n_StorageInfo\n", "Info"),
    (b"ctorch\nSize\n", "Size"),
    *((text(word), word) for word in ("offsets", "sizes", "fqn", "w", "offset", "index", "relative_path",
                                      "length")),
]  # fmt: skip


def metadata_of_chunks(count):
    """A `.metadata` of one tensor of `count` elements, each a chunk of its own, in 200 files."""
    known = {name: b"h" + bytes([i]) for i, (_, name) in enumerate(PARTS_OF_METADATA)}
    files = [b"h" + bytes([i]) for i in range(len(known), len(known) + 200)]
    made = [b"\x80\x04"]
    for i, (opcodes, _) in enumerate(PARTS_OF_METADATA):
        made.append(opcodes + b"q" + bytes([i]) + b"0")
    for i in range(len(files)):
        made.append(text(f"__{i}_0.distcp") + b"q" + bytes([len(known) + i]) + b"0")

    def size_of(number):
        return known["Size"] + b"J" + struct.pack("<i", number) + b"\x85\x85R"

    module = b"ctorch.distributed.checkpoint.metadata\n"
    made += [
        module, b"Metadata\n)\x81}(", text("state_dict_metadata"), b"}(", known["w"],
        module, b"TensorStorageMetadata\n)\x81}(", text("properties"), module, b"TensorProperties\n)\x81(",
        b"ctorch\nfloat32\n", b"ctorch.serialization\n_get_layout\n", text("torch.strided"), b"\x85R\x89",
        module, b"_MEM_FORMAT_ENCODING\nK\x00\x85R\x89tb", text("size"), size_of(count),
        text("chunks"), b"](",
    ]  # fmt: skip
    one = size_of(1)
    for i in range(count):
        made += [known["Chunk"], b")\x81}(", known["offsets"], size_of(i), known["sizes"], one, b"ub"]
    made += [b"eubu", text("planner_data"), b"N", text("storage_data"), b"}("]
    for i in range(count):
        where = struct.pack("<i", i // len(files) * 64)
        made += [
            known["Index"], b")\x81}(", known["fqn"], known["w"], known["offset"], size_of(i),
            known["index"], b"J", struct.pack("<i", i), b"ub", known["Info"], b")\x81}(", known["relative_path"],
            files[i % len(files)], known["offset"], b"J", where, known["length"], b"K\x40ub",
        ]  # fmt: skip
    made.append(b"uub.")
    return b"".join(made)
