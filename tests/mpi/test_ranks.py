#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Conversions by several processes: the same bytes as by one, and what they end with if one fails."""
import json
import pathlib
import re
import shutil
import tempfile
import unittest

import ranks

# The promise is 5 s; this machine may have more to do.
SECONDS_TO_END = 10
# Long enough for a busy machine to let every rank give a sign.
RANK_TIMEOUT = 4
TARGETS = {
    "torch_dist": ["--to", "torch_dist", "--tp", "2"],
    "legacy": ["--to", "legacy", "--tp", "2", "--pp", "3"],
    "hf": ["--to", "hf"],
}


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="shardwright-mpi-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        cls.source = cls.place / "in"
        ranks.make_llama(cls.source)

    def setUp(self):
        self.out = self.place / self.id().rsplit(".", 1)[-1]
        self.addCleanup(shutil.rmtree, self.out, ignore_errors=True)

    def leftovers(self):
        return sorted(self.place.glob(f".{self.out.name}.partial-*"))

    def convert(self, count, target="torch_dist", *more, **options):
        arguments = ["convert", self.source, self.out, *TARGETS[target], *more]
        return ranks.run_ranks(count, *arguments, **options)

    def expected(self, target):
        alone = self.place / ("alone-" + target)
        if not alone.exists():
            ranks.run_alone("convert", self.source, alone, *TARGETS[target])
        return ranks.contents(alone)


class SameBytes(Ranks):
    def test_with_any_number_of_ranks(self):
        for target, counts in (("torch_dist", (1, 2, 8)), ("legacy", (3, 8)), ("hf", (2, 3))):
            for count in counts:
                with self.subTest(target=target, ranks=count):
                    ended = self.convert(count, target)
                    self.assertEqual(ended.status, 0, ended.messages)
                    self.assertIn("wrote ", ended.output)
                    self.assertEqual(ended.output.count("wrote "), 1, "one rank tells")
                    self.assertEqual(ranks.contents(self.out), self.expected(target))
                    self.assertEqual(self.leftovers(), [])
                    shutil.rmtree(self.out)

    def test_report_is_of_all_ranks(self):
        ended = self.convert(3, "torch_dist", "--json")
        report = json.loads(ended.output)
        alone = json.loads(
            ranks.run_alone(
                "convert", self.source, self.place / "reported", *TARGETS["torch_dist"], "--json"
            )
        )
        for name in ("bytes_written", "files_written", "bytes_resumed", "notes"):
            self.assertEqual(report[name], alone[name], name)
        self.assertGreaterEqual(report["bytes_read"], alone["bytes_read"])

    def test_other_commands_are_of_rank_0(self):
        for command in ("hash", "verify"):
            ended = ranks.run_ranks(3, command, self.source)
            self.assertEqual(ended.status, 0, ended.messages)
            self.assertEqual(ended.output, ranks.run_alone(command, self.source))
        ended = ranks.run_ranks(2, "diff", self.source, self.source)
        self.assertEqual(ended.status, 0, ended.messages)
        ended = ranks.run_ranks(2, "inspect", self.source)
        self.assertEqual(ended.status, 2)
        self.assertIn("SW0900", ended.messages)

    def test_help_says_what_is_different(self):
        ended = ranks.run_ranks(2, "--help")
        self.assertEqual(ended.status, 0, ended.messages)
        self.assertEqual(ended.output.count("--rank-timeout SECONDS  "), 1)
        ended = ranks.run_ranks(2, "--version")
        self.assertEqual(ended.output, ranks.run_alone("--version"))


class Refusals(Ranks):
    def test_different_arguments(self):
        other = ["convert", self.source, self.place / "elsewhere", *TARGETS["torch_dist"]]
        ended = self.convert(2, other_rank=other)
        self.assertEqual(ended.status, 2, ended.messages)
        self.assertIn("error[SW0117]: rank 2 on ", ended.messages)
        self.assertFalse(self.out.exists() or (self.place / "elsewhere").exists())
        self.assertEqual(self.leftovers(), [])

    def test_parts_are_for_processes_without_mpi(self):
        plan = self.place / "saved.plan"
        ranks.run_alone("plan", self.source, self.out, *TARGETS["torch_dist"], "--save", plan)
        ended = ranks.run_ranks(2, "convert", "--plan", plan, "--part", "1/2")
        self.assertEqual(ended.status, 2, ended.messages)
        self.assertIn("error[SW0900]: --part is for processes without MPI", ended.messages)
        self.assertEqual(list(self.place.glob(f".{self.out.name}.*")), [])

    def test_an_ordinary_mistake_is_told_once(self):
        ended = ranks.run_ranks(3, "convert", self.place / "nowhere", self.out)
        self.assertEqual(ended.status, 2)
        self.assertEqual(len(re.findall(r"error\[SW\d+\]", ended.messages)), 1, ended.messages)


class Faults(Ranks):
    """Each of: who, at what, what happens. All ranks end, and nothing is published."""

    PLAN = {"CALL": "pread", "PATH": "model.safetensors", "AT": 1}
    WRITE = {"CALL": "pwrite", "PATH": ".partial-", "AT": 1}
    LATE = {"CALL": "pwrite", "PATH": ".partial-", "AT": 4}
    SYNC = {"CALL": "fdatasync", "PATH": ".partial-", "AT": 1}
    COMMIT = {"CALL": "rename", "PATH": ".partial-", "AT": 1}

    def end_with(self, rank, at, kind, *more):
        mark = self.place / (self.out.name + ".mark")
        for old in (mark, mark.with_name(mark.name + ".turn")):
            old.unlink(missing_ok=True)
        fault = {"RANK": rank, "KIND": kind, **at}
        with self.subTest(rank=rank, kind=kind, **at):
            ended = self.convert(3, "torch_dist", *more, fault=fault, mark=mark)
            self.assertIsNotNone(ended.since_fault, "it came to no fault: " + ended.messages)
            self.assertNotEqual(ended.status, 0)
            self.assertFalse(self.out.exists(), "it was published")
            timeout = RANK_TIMEOUT if kind == "stop" else 0
            self.assertLess(ended.since_fault, timeout + SECONDS_TO_END)
            # The launcher may end a moment before what it killed.
            self.assertEqual(ranks.living(str(self.out), within=SECONDS_TO_END), [])
        return ended

    def clear(self):
        for folder in self.leftovers():
            shutil.rmtree(folder)

    def test_a_full_disk_or_a_bad_one(self):
        for rank, at, kind, code in (
            (1, self.PLAN, "eio", "SW0103"),
            (1, self.WRITE, "enospc", "SW0105"),
            (2, self.LATE, "enospc", "SW0105"),
            (0, self.WRITE, "enospc", "SW0105"),
            (2, self.SYNC, "eio", "SW0103"),
            (0, self.COMMIT, "enospc", "SW0105"),
        ):
            ended = self.end_with(rank, at, kind)
            self.assertIn(f"error[{code}]: ", ended.messages)
            if rank > 0:
                self.assertIn(f"]: rank {rank} on ", ended.messages)
            self.assertEqual(self.leftovers(), [], ended.messages)

    def test_a_rank_that_dies(self):
        for rank, at, kind in (
            (1, self.PLAN, "kill"),
            (2, self.WRITE, "kill"),
            (1, self.SYNC, "kill"),
            (0, self.COMMIT, "kill"),
            (1, self.LATE, "exit"),
        ):
            ended = self.end_with(rank, at, kind)
            self.assertGreaterEqual(len(self.leftovers()), rank == 0)
            for left in self.leftovers():
                self.assertIn(f"remove {left} if it is left", ended.messages)
            self.clear()

    def test_a_rank_that_hangs(self):
        for rank, at in ((1, self.PLAN), (2, self.WRITE), (1, self.SYNC)):
            ended = self.end_with(rank, at, "stop", "--rank-timeout", RANK_TIMEOUT)
            self.assertRegex(ended.messages, rf"error\[SW0116\]: rank {rank} on .*no sign of life")
            self.assertEqual(self.leftovers(), [], ended.messages)
        ended = self.end_with(0, self.WRITE, "stop", "--rank-timeout", RANK_TIMEOUT)
        self.assertRegex(ended.messages, r"error\[SW0116\]: rank 0.*no sign of life")
        # Rank 0 wakes up when the job is ended, and may still remove it itself.
        self.assertRegex(ended.messages, r"remove \S+\.partial-\S+ if it is left")
        self.clear()

    def test_going_on_writes_only_what_is_missing(self):
        ended = self.end_with(1, {**self.WRITE, "AT": 6}, "kill", "--resume", "--threads", "1")
        self.assertEqual(len(self.leftovers()), 1, ended.messages)
        again = self.convert(2, "torch_dist", "--resume", "--json")
        self.assertEqual(again.status, 0, again.messages)
        report = json.loads(again.output)
        self.assertGreater(report["bytes_resumed"], 0)
        again_alone = ["convert", self.source, self.place / "counted", *TARGETS["torch_dist"]]
        alone = json.loads(ranks.run_alone(*again_alone, "--json"))
        written = report["bytes_resumed"] + report["bytes_written"]
        self.assertEqual(written, alone["bytes_written"])
        self.assertEqual(ranks.contents(self.out), self.expected("torch_dist"))
        self.assertEqual(self.leftovers(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
