#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each source of a build folder but tests by itself, and each header that none begins with.

    compile_alone.py BUILD [--jobs N] [--turn K/N]

A build compiles several sources together, where one's includes hide that another lacks its own. A
source begins with its header, so that one is compiled alone with it. Sources of tests would double the
time and hide nothing from users. Nothing is written: the build's compiler looks at the syntax and
types, with warnings as errors. All of them take longer than a build: with --turn only every Nth is
compiled, from the Kth on, where 0 is the first. Exit status 1 where a file fails, 2 where there is
nothing to compile.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# What writes files or names the file to compile; each takes the next word along.
OUTPUT = {"-o", "-MF", "-MT", "-MQ", "-include"}
DROPPED = {"-c", "-MD", "-MMD", "-Winvalid-pch"}


def flags_of(command):
    """The compiler, and the words of its command that say how, neither what nor where to."""
    words = iter(shlex.split(command)[:-1])
    flags = []
    for word in words:
        if word in OUTPUT:
            next(words, None)
        elif word not in DROPPED:
            flags.append(word)
    return flags


def sources_of(file):
    """The sources that a compilation holds: itself, or those that it puts together."""
    if "Unity" not in file.parts:
        return [file]
    return [pathlib.Path(name) for name in INCLUDE.findall(file.read_text(encoding="utf-8"))]


def compilations(build, root):
    """(file, flags, folder) of all that is to be compiled, sources before headers."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    found, first_headers, flags_by_folder, seen = [], set(), {}, set()
    for command in commands:
        flags = flags_of(command["command"])
        for source in sources_of(pathlib.Path(command["file"])):
            if not source.is_relative_to(root) or source.is_relative_to(build) or source in seen:
                continue
            if source.stem.endswith("_test"):
                continue
            seen.add(source)
            found.append((source, flags, command["directory"]))
            flags_by_folder.setdefault(source.parent, (flags, command["directory"]))
            first = INCLUDE.search(source.read_text(encoding="utf-8"))
            for folder in (root / "src", source.parent):
                if first and (folder / first[1]).is_file():
                    first_headers.add(folder / first[1])
    headers = [*root.glob("src/**/*.h"), *root.glob("include/**/*.h")]
    for header in sorted(headers):
        if header in first_headers:
            continue
        flags, directory = flags_by_folder.get(header.parent) or flags_by_folder[root / "src" / "cli"]
        found.append((header, flags, directory))
    return found


def compile_alone(compilation):
    file, flags, directory = compilation
    command = [*flags, "-Werror", "-fsyntax-only", "-x", "c++", str(file)]
    if file.suffix == ".h":
        # As an include of an empty source: a header that is compiled itself is told so by a warning.
        command = [*command[:-1], "-include", str(file), os.devnull]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def turn_of(text):
    """K and N of `K/N`."""
    turn, turns = (int(number) for number in text.split("/"))
    if not 0 <= turn < turns:
        raise ValueError(text)
    return turn, turns


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--turn", type=turn_of, default=(0, 1), metavar="K/N")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    turn, turns = arguments.turn
    todo = compilations(arguments.build.resolve(), root)[turn::turns]
    if not todo:
        print(f"{arguments.build}: nothing to compile", file=sys.stderr)
        return 2
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for done in pool.map(compile_alone, todo):
            if done.returncode:
                failed += 1
                print(done.stderr, file=sys.stderr)
    print(f"{len(todo) - failed} of {len(todo)} files compile alone")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
