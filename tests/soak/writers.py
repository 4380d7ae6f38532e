# SPDX-License-Identifier: Apache-2.0
"""Everything that writes: what it is given, what it leaves, and what must still be there."""
import shutil
from dataclasses import dataclass
from pathlib import Path

from bench import GOLDEN, LLAMA, tree_digest

VISION = GOLDEN / "hf" / "qwen3_vl" / "hf"
PARTS = ("language", "images", "adapter")


@dataclass
class Stage:
    """A folder in which a writer can run: its words, what it makes, and what it must not touch."""

    folder: Path
    words: list
    target: Path
    again: list  # of words: what makes the target once this was disturbed
    before: frozenset  # names in the folder before it runs

    def others(self):
        """Names in the folder beside what was there before and the target."""
        known = self.before | {self.target.name}
        found = [entry.name for entry in self.folder.iterdir() if entry.name not in known]
        if self.target.is_dir():
            names = [entry.name for entry in self.target.iterdir()]
            found += [name for name in names if any(part in name for part in BESIDE)]
        return found

    def digest(self):
        """What the target is, but for what lies in it beside its files."""
        return tree_digest(self.target, BESIDE)


# What an index is replaced by and what it was, in the folder itself.
BESIDE = (".partial-", ".bak")
# Of a conversion in parts.
PLAN = "saved.plan"


class Writer:
    """`words` are the program's; `in` is what it reads, `out` what it makes, in the stage's folder.

    `before` fills the folder with an old target, where there is one, or with what is taken up.
    `again` are the words of the runs that mend what a disturbed one left, if not the same once more.
    """

    def __init__(self, name, words, source, before=None, target="out", again=None):
        self.name = name
        self.words = words
        self.source = source
        self.before = before
        self.target = target
        self.again = again or [words]
        self.old = ""
        self.new = ""

    def stage(self, bench):
        """A fresh folder, ready to run in."""
        folder = bench.fresh(self.name)
        (folder / "in").symlink_to(self.source(bench))
        if self.before:
            self.before(bench, folder)
        names = frozenset(entry.name for entry in folder.iterdir())
        return Stage(folder, self.words, folder / self.target, self.again, names)

    def prepare(self, bench):
        """Learns what the target is before and after a run that nothing disturbs."""
        stage = self.stage(bench)
        self.old = stage.digest()
        ran = bench.shardwright(*stage.words, cwd=stage.folder)
        assert ran.status == 0, f"{self.name}: {ran.messages}"
        self.new = stage.digest()
        assert self.new != self.old, self.name
        shutil.rmtree(stage.folder)


def torch_dist(bench):
    """A torch_dist checkpoint of the small model."""
    return bench.made("torch_dist", lambda folder: convert(bench, LLAMA, folder, "torch_dist"))


def convert(bench, source, folder, form, *flags):
    """Converts; a failure is an error."""
    ran = bench.shardwright("convert", source, folder, "--to", form, *flags)
    assert ran.status == 0, ran.messages


def parts(bench):
    """A multimodal model, taken apart."""

    def make(folder):
        assert bench.shardwright("split", VISION, folder).status == 0

    return bench.made("parts", make)


def llama(_):
    return LLAMA


def vision(_):
    return VISION


def old_model(_, folder):
    shutil.copytree(LLAMA, folder / "out")


def old_run(bench, folder):
    """A run of Megatron's with a later iteration, which stays where another one is added."""
    shutil.copytree(torch_dist(bench), folder / "out")


def stale_index(_, folder):
    """A model whose index is wrong, in place of a target."""
    shutil.copytree(LLAMA, folder / "out")
    (folder / "out" / "model.safetensors.index.json").write_text('{"weight_map": {}}')


def finished_parts(bench, folder):
    """A conversion whose parts are all written; only their publication is missing."""
    for words in (["plan", "in", "out", "--to", "torch_dist", "--tp", "2", "--save", PLAN],
                  *(part_words(number) for number in (1, 2))):  # fmt: skip
        ran = bench.shardwright(*words, cwd=folder)
        assert ran.status == 0, ran.messages


def part_words(number):
    return ["convert", "--plan", PLAN, "--part", f"{number}/2"]


def merge_words():
    words = ["merge", "out"]
    for part in PARTS:
        words += ["--component", f"{part}=in/{part}"]
    return [*words, "--config", "in/model"]


def all_writers():
    """Every writer of the program, and each way to replace what was there."""
    into = ["convert", "in", "out", "--to"]
    return [
        Writer("hf", [*into, "hf"], torch_dist),
        Writer("torch_dist", [*into, "torch_dist", "--tp", "2"], llama),
        Writer("legacy", [*into, "legacy", "--tp", "2"], llama),
        Writer("dcp", [*into, "dcp", "--shards", "2"], llama),
        Writer("fsdp_dtensor", [*into, "fsdp_dtensor", "--shards", "2"], llama),
        Writer("safetensors", [*into, "safetensors"], torch_dist),
        Writer("replace_model", [*into, "torch_dist", "--overwrite"], llama, old_model),
        Writer("replace_run", [*into, "torch_dist", "--tp", "2", "--overwrite"], llama, old_run),
        Writer("index", ["index", "rebuild", "out"], llama, stale_index),
        Writer("merge", merge_words(), parts),
        Writer("split", ["split", "in", "out"], vision),
        Writer("digests", [*into, "hf", "--digests", "--sha256"], llama),
        Writer("manifest", ["hash", "in", "--manifest", "out"], llama),
        # What it takes up is gone a moment before the target is there: then parts are written again.
        Writer("publish", ["publish", PLAN], llama, finished_parts,
               again=[part_words(1), part_words(2), ["publish", PLAN]]),  # fmt: skip
    ]


def prepared(bench):
    """The writers, each run once."""
    writers = all_writers()
    for writer in writers:
        writer.prepare(bench)
    return writers
