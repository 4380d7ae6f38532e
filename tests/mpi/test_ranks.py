#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Work of several processes: the same bytes and answers as of one, and what they end with if one
fails."""
import json
import pathlib
import re
import shutil
import subprocess
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

    def test_other_commands_are_refused(self):
        ended = ranks.run_ranks(2, "inspect", self.source)
        self.assertEqual(ended.status, 2)
        self.assertIn("SW0900", ended.messages)

    def test_help_says_what_is_different(self):
        ended = ranks.run_ranks(2, "--help")
        self.assertEqual(ended.status, 0, ended.messages)
        self.assertEqual(ended.output.count("--rank-timeout SECONDS  "), 1)
        ended = ranks.run_ranks(2, "--version")
        self.assertEqual(ended.output, ranks.run_alone("--version"))


class SameAnswers(Ranks):
    """verify, diff and hash, which all ranks do."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for target, flags in TARGETS.items():
            ranks.run_alone("convert", cls.source, cls.place / target, *flags)
        cls.damaged = cls.place / "damaged"
        shutil.copytree(cls.place / "torch_dist", cls.damaged)
        largest = max(cls.damaged.rglob("*.distcp"), key=lambda file: file.stat().st_size)
        data = bytearray(largest.read_bytes())
        for at in range(len(data) // 8, len(data), len(data) // 4):
            data[at] ^= 1
        largest.write_bytes(data)
        cls.changed = cls.place / "changed"
        shutil.copytree(cls.source, cls.changed)
        weights = cls.changed / "model.safetensors"
        data = bytearray(weights.read_bytes())
        data[-1] ^= 1
        data[len(data) // 2] ^= 1
        weights.write_bytes(data)
        cls.manifest = cls.place / "manifest.json"
        ranks.run_alone("hash", cls.source, "--manifest", cls.manifest)

    def same(self, counts, *arguments, status=0):
        command = [ranks.PROGRAM, *map(str, arguments)]
        alone = subprocess.run(command, capture_output=True, text=True, env=ranks.PLAIN)
        self.assertEqual(alone.returncode, status, alone.stderr)
        for count in counts:
            with self.subTest(arguments=arguments, ranks=count):
                ended = ranks.run_ranks(count, *arguments)
                self.assertEqual(ended.status, status, ended.messages)
                self.assertEqual(ended.output, alone.stdout)
                told = [line for line in ended.messages.splitlines() if line.startswith("note: ")]
                expected = [line for line in alone.stderr.splitlines() if line.startswith("note: ")]
                self.assertEqual(told, expected)

    def test_hash(self):
        self.same((1, 2, 3), "hash", self.place / "torch_dist", "--json")
        self.same((2,), "hash", self.place / "legacy")

    def test_a_manifest_is_written_once(self):
        path = self.place / "by-ranks.json"
        ended = ranks.run_ranks(3, "hash", self.source, "--manifest", path)
        self.assertEqual(ended.status, 0, ended.messages)
        self.assertEqual(path.read_text(), self.manifest.read_text())

    def test_verify(self):
        self.same((1, 2, 3), "verify", self.place / "torch_dist", "--json")
        self.same((3,), "verify", self.place / "legacy")
        self.same((2,), "verify", self.source, "--against", self.manifest)
        self.same((2,), "verify", self.changed, "--against", self.place / "hf", status=1)

    def test_what_is_damaged_is_told_alike(self):
        self.same((1, 3), "verify", self.damaged, "--json", status=1)

    def test_diff(self):
        self.same((1, 2, 3), "diff", self.source, self.changed, "--json", status=1)
        self.same((3,), "diff", self.source, self.place / "torch_dist")

    def test_an_error_of_one_rank_ends_all(self):
        ended = ranks.run_ranks(2, "hash", self.damaged)
        self.assertEqual(ended.status, 2)
        self.assertIn("error[SW0314]: ", ended.messages)
        self.assertEqual(ended.output, "")


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
            timeout = RANK_TIMEOUT if kind in ("stop", "hang") else 0
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

    def test_a_call_that_hangs(self):
        for rank, at in ((1, self.PLAN), (2, self.WRITE), (1, self.SYNC), (0, self.WRITE)):
            ended = self.end_with(rank, at, "hang", "--io-timeout", RANK_TIMEOUT)
            call = {"pread": "read", "pwrite": "write", "fdatasync": "sync"}[at["CALL"]]
            self.assertRegex(
                ended.messages, rf"error\[SW0116\]: .*a {call} has not returned for {RANK_TIMEOUT} s"
            )
            self.clear()

    def test_what_only_reads(self):
        """verify: at its beginning, and in the midst of the records."""
        checkpoint = self.place / "read"
        if not checkpoint.exists():
            ranks.run_alone("convert", self.source, checkpoint, *TARGETS["torch_dist"])
        early = {"CALL": "pread", "PATH": ".metadata", "AT": 1}
        late = {"CALL": "pread", "PATH": ".distcp", "LEAST": 100_000, "AT": 2}
        for rank, at, kind in (
            (1, early, "eio"),
            (2, late, "eio"),
            (1, late, "kill"),
            (0, late, "exit"),
            (1, late, "stop"),
        ):
            mark = self.place / "read.mark"
            for old in (mark, mark.with_name("read.mark.turn")):
                old.unlink(missing_ok=True)
            fault = {"RANK": rank, "KIND": kind, **at}
            with self.subTest(**fault):
                more = ["--rank-timeout", RANK_TIMEOUT] if kind == "stop" else []
                ended = ranks.run_ranks(
                    3, "verify", checkpoint, "--threads", 1, *more, fault=fault, mark=mark
                )
                self.assertIsNotNone(ended.since_fault, "it came to no fault: " + ended.messages)
                self.assertNotIn(ended.status, (0, 1))
                self.assertEqual(ended.output, "", "a verdict without all of the reading")
                timeout = RANK_TIMEOUT if kind == "stop" else 0
                self.assertLess(ended.since_fault, timeout + SECONDS_TO_END)
                if kind == "eio":
                    self.assertIn(f"error[SW0103]: rank {rank} on ", ended.messages)
                if kind == "stop":
                    self.assertRegex(ended.messages, rf"error\[SW0116\]: rank {rank} on ")
                self.assertEqual(ranks.living(str(checkpoint), within=SECONDS_TO_END), [])

    def test_what_one_rank_alone_cannot_read(self):
        """It is no finding of rank 0's, which prints them: the ranks differ."""
        checkpoint = self.place / "read_by_one"
        ranks.run_alone("convert", self.source, checkpoint, *TARGETS["torch_dist"])
        mark = self.place / "read_by_one.mark"
        fault = {"RANK": 1, "KIND": "eio", "CALL": "pread", "PATH": "common.pt", "AT": 3}
        ended = ranks.run_ranks(2, "verify", checkpoint, fault=fault, mark=mark)
        self.assertTrue(mark.exists(), ended.messages)
        self.assertNotIn(ended.status, (0, 1))
        self.assertEqual(ended.output, "")
        self.assertIn("error[SW0117]: ", ended.messages)

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
