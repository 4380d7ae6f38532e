# SPDX-License-Identifier: Apache-2.0
"""The command line where it is not typed: completions in a shell, and `python -m shardwright`."""
import re
import signal
import subprocess
import sys

import pytest
from checkpoints import GOLDEN

LLAMA = GOLDEN / "hf" / "llama3" / "hf"


@pytest.fixture(scope="module")
def commands(shardwright):
    overview = shardwright("--help").stdout.split("Commands:")[1].split("\n\n")[0]
    return re.findall(r"^  ([\w-]+) ", overview, re.MULTILINE)


@pytest.fixture(scope="module")
def flags(shardwright, commands):
    """By command: what its help shows, `--quiet` and `-q`."""
    found = {}
    for command in commands:
        rows = re.findall(r"^  (-\S+)", shardwright(command, "--help").stdout, re.MULTILINE)
        found[command] = {name for row in rows for name in row.split(",")}
    return found


@pytest.fixture(scope="module")
def complete(shardwright, tmp_path_factory):
    script = tmp_path_factory.mktemp("bash") / "shardwright"
    script.write_text(shardwright("completion", "bash").stdout)

    def complete(*lines):
        """What bash offers for the last word of each command line."""
        program = f"source {script}\n"
        for line in lines:
            words = " ".join(f"'{word}'" for word in ("shardwright", *line))
            program += f"COMP_WORDS=({words}); COMP_CWORD={len(line)}; _shardwright\n"
            program += 'echo "${COMPREPLY[*]}"\n'
        done = subprocess.run(
            ["bash", "-euc", program], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0 and not done.stderr, done.stderr
        return [set(line.split()) for line in done.stdout.splitlines()]

    return complete


def test_bash_offers_every_command_and_flag(complete, commands, flags):
    assert len(commands) == 22
    assert complete([""]) == [{*commands, "--help", "--version"}]
    assert complete(["d"]) == [{"diagnose", "diff", "demo"}]
    offered = complete(*([command, "--"] for command in commands))
    for command, found in zip(commands, offered):
        assert found == {name for name in flags[command] if name.startswith("--")}, command


def test_bash_offers_the_words_of_values(complete):
    found = complete(
        ["convert", "a", "b", "--dtype", ""],
        ["convert", "a", "b", "--to", "t"],
        ["diagnose", "--lang", ""],
        ["hash", "--progress", "j"],
        ["map", ""],
        ["completion", ""],
        ["convert", "a", "b", "--hf-config", ""],
    )
    assert found == [
        {"keep", "bfloat16", "float16", "float32"}, {"torch_dist"}, {"en", "zh"}, {"json"},
        {"check", "list"}, {"bash", "zsh", "fish"}, set(),
    ]  # fmt: skip


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_every_flag(shardwright, shell, flags):
    script = shardwright("completion", shell).stdout
    for command, names in flags.items():
        if shell == "zsh":
            part = re.search(rf"^    {command}\)\n(.*?)^      ;;", script, re.MULTILINE | re.DOTALL)
            offered = set(re.findall(r"'\*(-[\w-]+)\[", part[1]))
        else:
            lines = [one for one in script.splitlines() if f"subcommand_from {command}'" in one]
            offered = {"--" + name for line in lines for name in re.findall(r" -l (\S+)", line)}
            offered |= {"-" + name for line in lines for name in re.findall(r" -s (\S)", line)}
        assert offered == names, command


def test_the_manual_has_every_flag(shardwright, flags):
    page = shardwright("man").stdout.replace("\\-", "-")
    for command, names in flags.items():
        section = page.split(f'.SH "{command.upper()}"\n')[1].split("\n.SH ")[0]
        shown = set(re.findall(r"^\\fB(.*?)\\fR", section, re.MULTILINE))
        assert {name for one in shown for name in one.split(", ") if name[0] == "-"} == names


def run_module(*words, **more):
    return subprocess.run(
        [sys.executable, "-m", "shardwright", *map(str, words)],
        capture_output=True, text=True, timeout=120, **more,
    )  # fmt: skip


def test_the_module_is_the_program(shardwright, tmp_path):
    for words in (["--version"], ["--help"], ["explain", "L07", "--json"], ["hash", LLAMA]):
        done = run_module(*words)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == shardwright(*words).stdout
    assert run_module("verify").returncode == 2
    assert run_module("diff", LLAMA, GOLDEN / "hf" / "mistral" / "hf").returncode == 1
    assert "not one bit is different" in run_module("demo", cwd=tmp_path).stdout


def test_ctrl_c_ends_the_module_at_once():
    """Also where no command watches for it: Python would wait until the command is done."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import shardwright.__main__ as m, sys, signal;"
         "m._core.program = lambda words: print('ready', flush=True) or signal.pause();"
         "sys.exit(m.main())"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)
    # Not even a traceback: it was not Python that ended.
    assert process.returncode == -signal.SIGINT and said == (b"", b"")
