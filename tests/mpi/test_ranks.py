#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Work of several processes: the same bytes and answers as of one, and what they end with if one
fails."""
import concurrent.futures
import itertools
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
# After which a rank that waits for its own abort ends.
SECONDS_TO_ABORT = 10
# Long enough for a busy machine to let every rank give a sign.
RANK_TIMEOUT = 4
# Jobs at once that mostly wait for a timeout.
AT_ONCE = 4
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

    def turn_of(self, rank, path):
        """Other ranks read no long piece of `path` before that one has read one."""
        fault = {"RANK": rank, "KIND": "none", "CALL": "pread", "PATH": path}
        mark = self.place / (self.id().rsplit(".", 1)[-1] + ".mark")
        return {"fault": {**fault, "LEAST": 30_000, "AT": 1}, "mark": mark}


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

    def test_a_rank_opens_the_files_that_it_copies(self):
        """Rank 0 opens all, to plan; no other one opens a file for its header."""
        source = self.place / "sharded"
        ranks.make_llama(source, files=8)
        shards = {file.name for file in source.glob("*.safetensors")}
        notes = self.place / "opens.notes"
        ended = ranks.run_ranks(
            3,
            *["convert", source, self.out, *TARGETS["torch_dist"], "--json"],
            notes=(notes, f"{source}/"),
        )
        self.assertEqual(ended.status, 0, ended.messages)
        ranks.run_alone("convert", source, self.place / "alone", *TARGETS["torch_dist"])
        self.assertEqual(ranks.contents(self.out), ranks.contents(self.place / "alone"))
        first, *others = (ranks.Notes(notes, rank) for rank in range(3))
        self.assertEqual({n: first.opens[n] for n in shards}, {n: 1 for n in shards})
        opens = len(shards)
        payload = sum((source / name).stat().st_size - self.head(source / name) for name in shards)
        read = sum(first.bytes_read[name] - self.head(source / name) for name in shards)
        for other in others:
            self.assertEqual(set(other.opens), set(other.bytes_read), "opened, and not read")
            self.assertEqual(set(other.opens.values()) - {1}, set())
            # config.json goes along as it is, and may be a piece of theirs.
            opens += len(shards & set(other.opens))
            read += sum(other.bytes_read.get(name, 0) for name in shards)
        self.assertEqual(read, payload, "each byte is read once, whoever does it")
        self.assertLessEqual(opens, json.loads(ended.output)["files_opened"])
        # Whatever work was taken from whom, hardly a file is everybody's.
        self.assertLess(opens, 3 * len(shards))

    def test_what_runs_left_is_looked_for_by_rank_0(self):
        left = self.place / ".other.partial-1-0"
        left.mkdir()
        notes = self.place / "left.notes"
        ended = self.convert(3, "torch_dist", notes=(notes, left.name))
        self.assertEqual(ended.status, 0, ended.messages)
        opens = [ranks.Notes(notes, rank).opens for rank in range(3)]
        self.assertIn(left.name, opens[0])
        self.assertEqual(opens[1:], [{}, {}])

    @staticmethod
    def head(file):
        """Bytes in front of the tensors of a safetensors file."""
        with file.open("rb") as opened:
            return 8 + int.from_bytes(opened.read(8), "little")

    def test_digests_are_made_of_what_passes_by(self):
        """By each rank of what it writes; only what lies between two ranks' pieces is read again."""
        alone = self.place / "digested"
        ranks.run_alone("convert", self.source, alone, *TARGETS["torch_dist"], "--digests")
        notes = self.place / "digests.notes"
        ended = self.convert(3, "torch_dist", "--digests", notes=(notes, ".partial-"))
        self.assertEqual(ended.status, 0, ended.messages)
        self.assertEqual(ranks.contents(self.out), ranks.contents(alone))
        self.assertIn("iter_0000000/shardwright-digests.jsonl", ranks.contents(alone))
        size = sum(file.stat().st_size for file in alone.rglob("*.distcp"))
        first, *others = [sum(ranks.Notes(notes, r).bytes_read.values()) for r in range(3)]
        self.assertEqual(others, [0, 0])
        self.assertLess(first, size / 2)

    def test_what_is_written_is_hashed_by_all(self):
        alone = self.place / "hashed"
        ranks.run_alone("convert", self.source, alone, *TARGETS["torch_dist"], "--sha256")
        notes = self.place / "hashes.notes"
        ended = self.convert(
            3, "torch_dist", "--sha256", notes=(notes, ".partial-"), **self.turn_of(1, ".partial-")
        )
        self.assertEqual(ended.status, 0, ended.messages)
        self.assertEqual(ranks.contents(self.out), ranks.contents(alone))
        files = [file for file in (alone / "iter_0000000").rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files if file.name != "integrity.json")
        # Without the journal, which is remembered while the output appears.
        read = [
            sum(n for path, n in ranks.Notes(notes, rank).bytes_read.items() if "journal" not in path)
            for rank in range(3)
        ]
        self.assertEqual(sum(read), size, read)
        self.assertGreater(sum(n > 0 for n in read), 1, read)

    def test_of_several_sources_and_in_other_forms(self):
        other = self.place / "other"
        ranks.make_llama(other, seed=21)
        ranks.run_alone("convert", other, self.place / "other-run", *TARGETS["torch_dist"])
        for name, command in {
            "average": ["average", self.source, other, "OUT", "--to", "torch_dist", "--tp", 2],
            "average-hf": ["average", self.source, self.place / "other-run", "OUT"],
            "extended": ["convert", self.source, "OUT", *TARGETS["legacy"], "--extend-vocab", 2176],
            "quantised": ["convert", self.source, "OUT", "--to", "hf", "--quantise", "fp8-block"],
        }.items():
            with self.subTest(command=name):
                self.check_alike(name, command, "--digests")

    def check_alike(self, name, command, *more):
        """One process, three ranks, and ranks that go on with what a killed one left."""
        outs = [self.place / f"{name}-{how}" for how in ("alone", "ranks", "resumed")]
        lines = [[out if word == "OUT" else word for word in command] + [*more] for out in outs]
        ranks.run_alone(*lines[0])
        expected = ranks.contents(outs[0])
        ended = ranks.run_ranks(3, *lines[1])
        self.assertEqual(ended.status, 0, ended.messages)
        self.assertEqual(ranks.contents(outs[1]), expected)
        mark = self.place / f"{name}.mark"
        fault = {"RANK": 1, "KIND": "kill", "CALL": "pwrite", "PATH": ".partial-", "AT": 4}
        line = [*lines[2], "--resume", "--threads", 1]
        ended = ranks.run_ranks(2, *line, fault=fault, mark=mark)
        self.assertNotEqual(ended.status, 0)
        self.assertTrue(mark.exists(), ended.messages)
        ended = ranks.run_ranks(3, *line, "--json")
        self.assertEqual(ended.status, 0, ended.messages)
        self.assertGreater(json.loads(ended.output)["bytes_resumed"], 0)
        self.assertEqual(ranks.contents(outs[2]), expected)

    def test_what_is_signed(self):
        key = self.place / "key.pem"
        subprocess.run(
            ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key],
            check=True,
        )
        public = self.place / "public.pem"
        subprocess.run(["openssl", "ec", "-in", key, "-pubout", "-out", public], check=True)
        ended = self.convert(3, "torch_dist", "--sign", key)
        self.assertEqual(ended.status, 0, ended.messages)
        ranks.run_alone("verify", self.out, "--public-key", public)
        written = ranks.contents(self.out)
        del written["iter_0000000/model.sig"]
        self.assertEqual(written, self.expected("torch_dist"))

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
        ended = self.convert(2, "torch_dist", "--dry-run")
        self.assertEqual(ended.status, 2)
        self.assertIn("--dry-run are for one process", ended.messages)

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

    # Of what rank 0 reads to plan, and of what others read of it for their pieces.
    PLAN = {"CALL": "pread", "PATH": "model.safetensors", "AT": 1}
    READ = {"CALL": "pread", "PATH": "model.safetensors", "AT": 1, "LEAST": 32_000}
    OPEN = {"CALL": "open", "PATH": "model.safetensors", "AT": 1}
    WRITE = {"CALL": "pwrite", "PATH": ".partial-", "AT": 1}
    LATE = {"CALL": "pwrite", "PATH": ".partial-", "AT": 4}
    SYNC = {"CALL": "fdatasync", "PATH": ".partial-", "AT": 1}
    FOLDER = {"CALL": "fsync", "PATH": ".partial-", "AT": 1}
    COMMIT = {"CALL": "rename", "PATH": ".partial-", "AT": 1}
    COMMITTED = {"CALL": "renamed", "PATH": ".partial-", "AT": 1}

    def setUp(self):
        super().setUp()
        self.numbers = itertools.count()

    def at_once(self, check, cases):
        """Several cases at a time: they mostly wait."""
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for done in [pool.submit(check, *case) for case in cases]:
                done.result()

    def end_with(self, rank, at, kind, *more, command=None):
        """How the job ends, and what it leaves. `command`: instead of a conversion."""
        out = self.out.with_name(f"{self.out.name}-{next(self.numbers)}")
        mark = out.with_name(out.name + ".mark")
        fault = {"RANK": rank, "KIND": kind, **at}
        case = str(fault)
        arguments = command or ["convert", self.source, out, *TARGETS["torch_dist"]]
        ended = ranks.run_ranks(3, *arguments, *more, fault=fault, mark=mark)
        self.assertIsNotNone(ended.since_fault, f"{case} came to no fault: {ended.messages}")
        self.assertNotIn(ended.status, (0, 1) if command else (0,), case)
        self.assertFalse(out.exists(), f"{case}: it was published")
        timeout = RANK_TIMEOUT if kind in ("stop", "hang") else 0
        self.assertLess(ended.since_fault, timeout + SECONDS_TO_END, case)
        # The launcher may end a moment before what it killed.
        if not command:
            self.assertEqual(ranks.living(str(out), within=SECONDS_TO_END), [], case)
        ended.case, ended.out = case, out
        ended.left = sorted(self.place.glob(f".{out.name}.partial-*"))
        return ended

    def assert_told(self, ended):
        """The message names everything that is left."""
        for left in ended.left:
            self.assertRegex(ended.messages, rf"remove what is left of .*{re.escape(str(left))}(?![-\w])", ended.case)

    def test_a_full_disk_or_a_bad_one(self):
        def check(rank, at, kind, code):
            ended = self.end_with(rank, at, kind)
            self.assertIn(f"error[{code}]: ", ended.messages, ended.case)
            if rank > 0:
                self.assertIn(f"]: rank {rank} on ", ended.messages, ended.case)
            self.assertEqual(ended.left, [], ended.messages)

        self.at_once(
            check,
            (
                (0, self.PLAN, "eio", "SW0103"),
                (1, self.READ, "eio", "SW0103"),
                (1, self.WRITE, "enospc", "SW0105"),
                (2, self.LATE, "enospc", "SW0105"),
                (0, self.WRITE, "enospc", "SW0105"),
                (2, self.SYNC, "eio", "SW0103"),
                (0, self.COMMIT, "enospc", "SW0105"),
            ),
        )

    def test_a_rank_that_dies(self):
        def check(rank, at, kind, leaves):
            ended = self.end_with(rank, at, kind)
            self.assertGreaterEqual(len(ended.left), leaves, ended.messages)
            self.assert_told(ended)

        self.at_once(
            check,
            (
                (0, self.PLAN, "kill", 0),
                (1, self.READ, "kill", 0),
                (2, self.WRITE, "kill", 0),
                (1, self.SYNC, "kill", 0),
                (0, self.COMMIT, "kill", 1),
                (1, self.LATE, "exit", 0),
            ),
        )

    def test_a_launcher_that_does_not_answer(self):
        """A rank that can't end the job ends itself: the launcher sees that."""
        out, mark = self.out, self.out.with_name("mark")
        fault = {"RANK": 1, "KIND": "stop", "ABORT": "hangs", **self.WRITE}
        words = ["convert", self.source, out, *TARGETS["torch_dist"], "--rank-timeout", RANK_TIMEOUT]
        ended = ranks.run_ranks(2, *words, fault=fault, mark=mark)
        self.assertRegex(ended.messages, r"error\[SW0116\]: rank 1.*no sign of life")
        self.assertNotEqual(ended.status, 0)
        self.assertFalse(out.exists())
        self.assertLess(ended.since_fault, RANK_TIMEOUT + SECONDS_TO_ABORT + SECONDS_TO_END)
        self.assertEqual(ranks.living(str(out), within=SECONDS_TO_END), [])

    def test_a_rank_that_hangs(self):
        def check(rank, at):
            ended = self.end_with(rank, at, "stop", "--rank-timeout", RANK_TIMEOUT)
            self.assertRegex(ended.messages, rf"error\[SW0116\]: rank {rank}.*no sign of life")
            if rank > 0:
                self.assertEqual(ended.left, [], ended.messages)
            elif at is not self.PLAN:
                self.assertRegex(ended.messages, r"remove what is left of \S+\.partial-\S+")
                # Rank 0 wakes up when the job is ended, and finds it no more
                # where all have begun. The launcher may kill it before it has
                # removed its journals, which lie beside by then.
                if at in (self.COMMIT, self.COMMITTED):
                    outputs = [one for one in ended.left if not one.name.endswith("-journals")]
                    self.assertEqual(len(outputs), 1, f"{ended.case}: {ended.messages}")
                    self.assert_told(ended)

        self.at_once(
            check,
            (
                (0, self.PLAN),
                (1, self.READ),
                (2, self.WRITE),
                (1, self.SYNC),
                (0, self.WRITE),
                (0, self.FOLDER),
                (0, self.COMMIT),
                (0, self.COMMITTED),
            ),
        )

    def end_while_removing(self, kind, *more):
        """How a job ends that has replaced a checkpoint and is about to remove the old one's third
        file: the new one is in its place, whole."""
        out = self.out
        ranks.run_alone("convert", self.source, out, *TARGETS["torch_dist"])
        (index,) = out.glob("iter_*/.metadata")
        old, files = index.stat().st_ino, sorted(ranks.contents(out))
        fault = {"RANK": 0, "CALL": "unlink", "PATH": ".partial-", "AT": 3, "KIND": kind}
        ended = ranks.run_ranks(
            2, "convert", self.source, out, *TARGETS["torch_dist"], "--overwrite", *more,
            fault=fault, mark=out.with_name(out.name + ".mark"),
        )
        self.assertIsNotNone(ended.since_fault, ended.messages)
        self.assertNotEqual(ended.status, 0)
        self.assertNotEqual(index.stat().st_ino, old, ended.messages)
        self.assertEqual(sorted(ranks.contents(out)), files, ended.messages)
        ranks.run_alone("verify", out)
        self.assertLess(ended.since_fault, RANK_TIMEOUT + SECONDS_TO_END)
        ended.case, ended.left = "removing", sorted(self.place.glob(f".{out.name}.partial-*"))
        self.assert_told(ended)
        return ended

    def test_a_rank_that_hangs_when_it_has_replaced(self):
        """What was there before is half removed: it is not brought back."""
        ended = self.end_while_removing("stop", "--rank-timeout", RANK_TIMEOUT)
        self.assertRegex(ended.messages, r"error\[SW0116\]: rank 0.*no sign of life")

    def test_a_call_that_hangs(self):
        def check(rank, at, call):
            ended = self.end_with(rank, at, "hang", "--io-timeout", RANK_TIMEOUT)
            self.assertRegex(
                ended.messages,
                rf"error\[SW0116\]: .*{call} has not returned for {RANK_TIMEOUT} s",
                ended.case,
            )

        self.at_once(
            check,
            (
                (0, self.PLAN, "a read"),
                (1, self.READ, "a read"),
                (1, self.OPEN, "a call to open it"),
                (2, {**self.OPEN, "PATH": ".partial-"}, "a call to open this folder"),
                (2, {**self.OPEN, "PATH": ".distcp"}, "a call to open it"),
                (0, {**self.OPEN, "PATH": ".distcp"}, "a call to make it"),
                (2, self.WRITE, "a write"),
                (0, self.WRITE, "a write"),
                (1, self.SYNC, "a sync"),
                (0, self.FOLDER, "a sync of this folder"),
                (0, self.COMMIT, "a rename"),
            ),
        )

    def test_a_removal_that_hangs(self):
        """Of what was there before, once the new output is in its place."""
        ended = self.end_while_removing("hang", "--io-timeout", RANK_TIMEOUT)
        self.assertRegex(
            ended.messages,
            r"error\[SW0116\]: .*a removal of what is in this folder has not returned",
        )
        self.assertIn("the new output is complete and in its place", ended.messages)

    def test_what_only_reads(self):
        """verify: at its beginning, and in the midst of the records."""
        checkpoint = self.place / "read"
        ranks.run_alone("convert", self.source, checkpoint, *TARGETS["torch_dist"])
        early = {"CALL": "pread", "PATH": ".metadata", "AT": 1}
        late = {"CALL": "pread", "PATH": ".distcp", "LEAST": 100_000, "AT": 2}

        def check(rank, at, kind):
            more = ["--rank-timeout", RANK_TIMEOUT] if kind == "stop" else []
            command = ["verify", checkpoint, "--threads", 1]
            ended = self.end_with(rank, at, kind, *more, command=command)
            self.assertEqual(ended.output, "", "a verdict without all of the reading")
            if kind == "eio":
                who = f"rank {rank} on " if rank > 0 else ""
                self.assertIn(f"error[SW0103]: {who}", ended.messages, ended.case)
            if kind == "stop":
                self.assertRegex(ended.messages, rf"error\[SW0116\]: rank {rank} on ")

        self.at_once(
            check,
            (
                (0, early, "eio"),
                (2, late, "eio"),
                (1, late, "kill"),
                (0, late, "exit"),
                (1, late, "stop"),
            ),
        )
        self.assertEqual(ranks.living(str(checkpoint), within=SECONDS_TO_END), [])

    def test_what_one_rank_alone_cannot_read(self):
        """It is no finding of rank 0's, which prints them: the ranks differ."""
        checkpoint = self.place / "read_by_one"
        ranks.run_alone("convert", self.source, checkpoint, *TARGETS["torch_dist"])
        mark = self.place / "read_by_one.mark"
        fault = {"RANK": 0, "KIND": "eio", "CALL": "pread", "PATH": "common.pt", "AT": 3}
        ended = ranks.run_ranks(2, "verify", checkpoint, fault=fault, mark=mark)
        self.assertTrue(mark.exists(), ended.messages)
        self.assertNotIn(ended.status, (0, 1))
        self.assertEqual(ended.output, "")
        self.assertIn("error[SW0117]: ", ended.messages)

    def test_going_on_writes_only_what_is_missing(self):
        ended = self.end_with(1, {**self.WRITE, "AT": 10}, "kill", "--resume", "--threads", "1")
        self.assertEqual(len(ended.left), 1, ended.messages)
        notes = self.place / "going-on.notes"
        arguments = ["convert", self.source, ended.out, *TARGETS["torch_dist"]]
        again = ranks.run_ranks(
            2,
            *[*arguments, "--resume", "--json", "--threads", "1"],
            notes=(notes, ".partial-"),
            **self.turn_of(1, ".partial-"),
        )
        self.assertEqual(again.status, 0, again.messages)
        report = json.loads(again.output)
        self.assertGreater(report["bytes_resumed"], 0)
        again_alone = ["convert", self.source, self.place / "counted", *TARGETS["torch_dist"]]
        alone = json.loads(ranks.run_alone(*again_alone, "--json"))
        written = report["bytes_resumed"] + report["bytes_written"]
        self.assertEqual(written, alone["bytes_written"])
        self.assertEqual(ranks.contents(ended.out), self.expected("torch_dist"))
        self.assertEqual(sorted(self.place.glob(f".{ended.out.name}.partial-*")), [])
        # Both read back what was there, each something else.
        read = [
            sum(n for name, n in ranks.Notes(notes, rank).bytes_read.items() if "journal" not in name)
            for rank in range(2)
        ]
        self.assertEqual(sum(read), report["bytes_resumed"], read)
        self.assertTrue(all(read), read)


if __name__ == "__main__":
    unittest.main(verbosity=2)
