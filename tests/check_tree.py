#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that neither the compiler nor clang-tidy knows.

check_tree.py [ROOT] prints what breaks them, one line each, and exits with 1 if anything does.
Includes point downwards between the layers below, a format's folder is its own, every .cc is built,
every file names its licence, an error's number and a type's name mean one thing, and nothing names
the machine that it was written on.
"""
import pathlib
import re
import sys

# From the bottom up: a layer may use those before it, less those named here.
LAYERS = {
    "base": "", "comm": "", "tensor": "comm", "io": "comm", "codec": "comm", "remote": "comm",
    "layout": "io codec remote comm", "model": "io remote comm",
    "plan": "io codec remote comm",
    "exec": "layout model remote comm", "dcp": "model plan exec comm", "state": "plan exec dcp remote comm",
    "format": "exec comm", "compare": "comm", "canonical": "comm", "convert": "", "diagnose": "",
    "merge": "diagnose", "verify": "merge", "report": "merge",
    "language": "comm tensor io codec remote layout model plan exec dcp state format compare canonical "
    "convert diagnose merge verify report",
    "cli": "", "mpi": "", "python": "merge mpi",
}  # fmt: skip
# Public headers, by the layer whose types they declare.
PUBLIC = {
    "error": "base", "tensor": "tensor", "catalog": "tensor", "quantised": "tensor",
    "quantising": "tensor", "versioned_names": "tensor", "storage": "io", "format": "format",
    "checkpoint": "io", "layout": "layout", "parallel": "layout",
    "mapping": "model", "plan": "plan", "execute": "exec", "convert_request": "format",
    "prepared_conversion": "format", "convert": "convert", "parts": "convert", "verify": "verify", "merge": "merge",
    "diagnose": "layout", "reader": "verify",
}  # fmt: skip
# Where dialects meet: the files above `format` that still include headers of a format's own folder.
# All others ask traits, SourceFormat, ModelForm and Target. The list may only become shorter.
MEETINGS = {
    "src/canonical/adapter_updates.cc": "peft",  # what merging takes from an adapter's files
    "src/canonical/adapter_updates.h": "peft",
    "src/canonical/mlite_naming.cc": "mlite",  # Megatron's names come of a family's
    "src/convert/peft_drafts.cc": "peft",
    "src/diagnose/diagnose_arguments.h": "legacy",  # a diagnosis of pickles of some ranks
    "src/diagnose/diagnose_legacy.cc": "legacy",
    "src/verify/adapter_settings.cc": "peft",
}  # fmt: skip
FOR_TESTS = re.compile(r"_test\.cc$|golden|fixture|^tests/")
BANNED = {"regex": "cli", "iostream": "cli", "mpi.h": "mpi"}  # and the one layer that may
# Cut in two, or this file would find itself.
TRACES = ["/wo" "rk/", "/ro" "ot/", "pypi" ".org", "python" "hosted", "deb." "debian", "/tmp/ba" "sh_"]
LEFTOVERS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")


def layer_of(path):
    parts = path.split("/")
    if parts[0] == "include":
        return PUBLIC.get(parts[-1].removesuffix(".h"))
    return "python" if parts[0] == "python" else parts[1] if parts[0] == "src" else None


def arrows(path, text):
    """Includes that point upwards, or to no layer at all."""
    layer = layer_of(path)
    order = list(LAYERS)
    if layer not in LAYERS and layer != "testing":
        yield f"{path}: belongs to no layer"
        return
    for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.M):
        beside = path.startswith("python/") and "/" not in name
        place = "include/" if name.startswith("shardwright/") and not beside else "src/"
        to = layer if beside else layer_of(place + name)
        if to == layer or (to == "testing" and FOR_TESTS.search(path)):
            continue
        if to not in LAYERS and to != "testing":
            yield f'{path}: "{name}" belongs to no layer; write its path from src/'
        elif to == "testing" or order.index(to) > order.index(layer) or to in LAYERS[layer].split():
            yield f'{path}: {layer} may not use {to} ("{name}")'
    for name in re.findall(r"^\s*#\s*include\s*<([^>]+)>", text, re.M):
        if name in BANNED and layer != BANNED[name]:
            yield f"{path}: <{name}> has no place in the library"
        if path.endswith(".h") and re.match(r"yaml-cpp/|CLI/|nlohmann/json\.hpp", name):
            yield f"{path}: <{name}> belongs in .cc files only"


def format_folders(tree, meetings):
    """Includes of a format's folder above `format`, less `meetings`; and meetings that are over."""
    order = list(LAYERS)
    above = order[order.index("format") + 1 :]
    allowed = {(path, folder) for path, folders in meetings.items() for folder in folders.split()}
    met = set()
    for path, text in sorted(tree.items()):
        if not path.endswith((".cc", ".h")) or layer_of(path) not in above or FOR_TESTS.search(path):
            continue
        for folder in re.findall(r'^\s*#\s*include\s*"format/([^/"]+)/', text, re.M):
            if (path, folder) not in allowed | met:
                yield f"{path}: may not include format/{folder}/; ask traits or the SourceFormat"
            met.add((path, folder))
    for path, folder in sorted(allowed - met):
        yield f"{path}: needs format/{folder}/ no longer; take it from MEETINGS in tests/check_tree.py"


def licence(path, text):
    mark = "//" if path.endswith((".cc", ".h")) else "#"
    lines = text.split("\n")[:2]
    if f"{mark} SPDX-License-Identifier: Apache-2.0" not in lines[: 2 if lines[0][:2] == "#!" else 1]:
        yield f"{path}: does not begin with its licence, '{mark} SPDX-License-Identifier: Apache-2.0'"


def unbuilt(path, cmake):
    name = path.rsplit("/", 1)[-1]
    kind = re.match(r"(fuzz|bench)_(\w+)\.cc", name)
    listed = re.escape(name) if not kind else rf"sw_{kind[1]}\({kind[2]}\b|{re.escape(name)}"
    if not re.search(rf"(?<![\w-])({listed})", cmake):
        yield f"{path}: is in no CMakeLists.txt, so nothing builds it"


def codes(text):
    seen = {}
    for name, number in re.findall(r"^\s*(k\w+) = (\d+),", text, re.M):
        if number in seen:
            yield f"include/shardwright/error.h: {seen[number]} and {name} are both {number}"
        seen[number] = name
    if not seen:
        yield "include/shardwright/error.h: has no codes"


def types_of(text):
    """Every class, struct, union or enum that a file defines where others see it, by its full name."""
    spaces = []
    pattern = (
        r"^namespace(?: (?P<space>[\w:]+))? \{|^(?P<end>\}  // namespace)"
        r"|^(?:class|struct|union|enum class)(?: \[\[\w+\]\])? (?P<type>[\w:]+)(?: final)?(?: : [^;{]+)? \{"
    )
    for found in re.finditer(pattern, text, re.M):
        if found["end"]:
            del spaces[-1:]
        elif found["type"]:
            if "" not in spaces:
                yield "::".join([*spaces, found["type"]])
        else:
            spaces.append(found["space"] or "")


def twice_named(tree):
    """Two types of one name: the linker keeps one's functions for both, and no compiler says so."""
    seen = {}
    for path, text in sorted(tree.items()):
        for name in types_of(text) if path.endswith((".cc", ".h")) else ():
            if name in seen:
                yield f"{path}: {name} is another type in {seen[name]}; name one of them otherwise"
            seen.setdefault(name, path)


def broken_rules(tree, meetings):
    """tree: path -> text. What is wrong, a line each."""
    cmake = "".join(re.sub(r"#.*", "", t) for p, t in tree.items() if "cmake" in p.lower())
    yield from twice_named(tree)
    yield from format_folders(tree, meetings)
    for path, text in sorted(tree.items()):
        is_cxx = path.endswith((".cc", ".h"))
        if is_cxx and path.startswith(("src/", "include/", "python/")):
            yield from arrows(path, text)
        if is_cxx or path.endswith((".py", ".sh")) or path in ("dev", ".ci/run"):
            yield from licence(path, text)
        if path.endswith(".cc"):
            yield from unbuilt(path, cmake)
        if path == "include/shardwright/error.h":
            yield from codes(text)
        for trace in TRACES:
            if trace in text:
                yield f"{path}: names '{trace}', a place of one machine or a registry"
        for word in LEFTOVERS.findall(text):
            yield f"{path}: has a {word}; do it or open an issue"


def read_tree(root):
    skipped = re.compile(r"^(build|tests/golden|\.git|\.venv)(/|$)|/__pycache__/|^tests/interop/tools/")
    tree = {}
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        if skipped.search(name) or path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" not in data:
            tree[name] = data.decode("utf-8", "replace")
    return tree


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    broken = list(broken_rules(read_tree(root), MEETINGS))
    print("\n".join(broken) or "the tree keeps its rules")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
