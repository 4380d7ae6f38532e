# SPDX-License-Identifier: Apache-2.0
"""Which lines and branches of the codecs tests and kept inputs reach, by clang's own counting.

`./dev coverage` builds what is run here and prints the table; R7 of the scorecard takes the figures.
"""
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "coverage"
# What decodes bytes of files.
FOLDERS = ("src/codec", "src/dcp")
PROGRAMS = ("codec_test", "dcp_test", "format_test", "fuzz_pickle", "fuzz_zip", "fuzz_safetensors",
            "fuzz_dcp_metadata")  # fmt: skip
LEAST_LINES, LEAST_BRANCHES = 95.0, 85.0


@dataclass
class Reached:
    """Lines and branches that there are and that were reached, of each file."""

    files: dict  # path -> (lines, reached lines, branches, reached branches)

    def percent(self, kind):
        """Of lines (0) or branches (1)."""
        total = sum(counts[2 * kind] for counts in self.files.values())
        return 100 * sum(counts[2 * kind + 1] for counts in self.files.values()) / total

    def text(self):
        return f"codecs: {self.percent(0):.1f} % of lines, {self.percent(1):.1f} % of branches"

    def faults(self):
        """Where the targets are missed: the figure, and the files that lack most."""
        faults = []
        for kind, name, least in ((0, "lines", LEAST_LINES), (1, "branches", LEAST_BRANCHES)):
            if self.percent(kind) < least:
                missed = sorted(self.files.items(), reverse=True,
                                key=lambda file: file[1][2 * kind] - file[1][2 * kind + 1])  # fmt: skip
                worst = ", ".join(Path(path).name for path, _ in missed[:3])
                faults.append(f"{self.percent(kind):.1f} % of {name}, expected {least:g}; most in {worst}")
        return faults


def is_built():
    return all((BUILD / name).exists() for name in PROGRAMS)


def run(folder):
    """Runs the programs; what they reached."""
    data = []
    for name in PROGRAMS:
        raw = folder / f"{name}.profraw"
        words = [BUILD / name]
        if name.startswith("fuzz_"):
            words.append(ROOT / "fuzz" / "corpus" / name)
        done = subprocess.run(words, cwd=ROOT, env={"LLVM_PROFILE_FILE": str(raw)}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)  # fmt: skip
        if done.returncode != 0:
            raise ValueError(f"{name} fails: {done.stdout[-300:]}")
        data.append(raw)
    merged = folder / "all.profdata"
    subprocess.run(["llvm-profdata-19", "merge", "-sparse", *data, "-o", merged], check=True)
    objects = [word for name in PROGRAMS[1:] for word in ("-object", BUILD / name)]
    exported = subprocess.run(
        ["llvm-cov-19", "export", "--summary-only", f"--instr-profile={merged}", BUILD / PROGRAMS[0],
         *objects, *(ROOT / name for name in FOLDERS)], check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    files = {}
    for file in json.loads(exported.stdout)["data"][0]["files"]:
        path = str(Path(file["filename"]).relative_to(ROOT))
        if path.endswith(("_test.cc", "_fixture.h", "_fixture.cc")):
            continue
        lines, branches = file["summary"]["lines"], file["summary"]["branches"]
        files[path] = (lines["count"], lines["covered"], branches["count"], branches["covered"])
    return Reached(files)


def measured(bench):
    """The same for a row. Errors: those of a program that is not installed."""
    bench.need("llvm-profdata-19", "llvm-cov-19")
    return run(bench.fresh("coverage"))


def main():
    """Prints a line for each file; with --programs only which programs are run."""
    if sys.argv[1:] == ["--programs"]:
        print("\n".join(PROGRAMS))
        return
    with tempfile.TemporaryDirectory() as name:
        reached = run(Path(name))
    for path, (lines, met, branches, taken) in sorted(reached.files.items()):
        print(f"{path:<40} {met:>6} of {lines:>6} lines {taken:>6} of {branches:>6} branches")
    print(reached.text())
    sys.exit(1 if reached.faults() else 0)


if __name__ == "__main__":
    main()
