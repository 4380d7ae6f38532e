# SPDX-License-Identifier: Apache-2.0
"""The scorecard must be able to fail: a row that misses its target, lacks something or breaks off."""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import pickle_streams
import rows_build
import soak
import sync_model
import table
from bench import Bench, tree_digest
from pickles import metadata_with_path
from row import Lacking, Outcome, Row
from scorecard import ROWS
from scorecard_zh import TEXTS


def lacking(_):
    raise Lacking("a disk is missing")


def breaking(_):
    raise OSError("no more")


class Soak(unittest.TestCase):
    def status(self, measure, missing=""):
        row = Row("R99", "title", "target", measure, missing=missing)
        return soak.measure(row, Bench("/bin/true", "/"), 1)[:2]

    def test_only_what_was_met_passes(self):
        self.assertEqual(self.status(lambda _: Outcome("fine"))[0], "pass")
        self.assertEqual(self.status(lambda _: Outcome("some", partly=True))[0], "part")
        self.assertEqual(self.status(lambda _: Outcome("bad", ["one"], True))[0], "fail")
        status, outcome = self.status(lacking)
        self.assertEqual((status, outcome.measured), ("lacking", "a disk is missing"))
        status, outcome = self.status(breaking)
        self.assertEqual((status, outcome.faults), ("fail", ["OSError: no more"]))
        self.assertEqual(self.status(None, "no MPI")[0], "not measured")

    def test_every_row_is_listed_once_and_in_order(self):
        self.assertEqual([row.name for row in ROWS], [f"R{i}" for i in range(1, 25)])
        for row in ROWS:
            self.assertTrue(row.measure, row.name)
            self.assertTrue(row.target, row.name)
        self.assertEqual(list(TEXTS), [row.name for row in ROWS])

    def test_sanitizers_pass_only_with_every_program_that_there_is(self):
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            built = {"release": ["a_test", "io_test"], "asan": ["a_test"], "tsan": list(rows_build.THREADED)}
            for build, programs in built.items():
                (root / "build" / build).mkdir(parents=True)
                (root / "build" / build / "CTestTestfile.cmake").touch()
                for program in programs:
                    file = root / "build" / build / program
                    file.write_text("#!/bin/sh\necho 3 tests from 1 test suite ran\n")
                    file.chmod(0o755)
            bench = Bench(root / "build" / "release" / "shardwright", root)
            with mock.patch.object(rows_build, "ROOT", root):
                outcome = rows_build.measure_sanitizers(bench)
                self.assertTrue(outcome.partly)
                self.assertIn("not built: asan io_test", outcome.measured)
                shutil.copy(root / "build" / "asan" / "a_test", root / "build" / "asan" / "io_test")
                outcome = rows_build.measure_sanitizers(bench)
                self.assertFalse(outcome.partly)
                self.assertIn("asan: 6 tests, tsan: 15 tests, of 7 of 7 programs", outcome.measured)
                (root / "build" / "tsan" / "io_test").write_text("#!/bin/sh\nexit 66\n")
                self.assertEqual(len(rows_build.measure_sanitizers(bench).faults), 1)

    def test_rows_are_chosen_by_name(self):
        self.assertEqual([row.name for row in soak.chosen(["r11,R2"])], ["R2", "R11"])
        with self.assertRaises(SystemExit):
            soak.chosen(["R25"])

    def test_the_document_has_every_row(self):
        result = table.Result(ROWS[0], "fail", Outcome("x", ["a|b"]), 1.0)
        document = table.document([result], 1, 2)
        self.assertEqual(document["rows"][0]["faults"], ["a|b"])
        self.assertIn("a\\|b", table.rows_of([result], table.MARK))

    def test_rows_measured_apart_are_of_one_commit_and_machine(self):
        at = {"commit": "0123456789", "machine": "2 cores, Linux 6"}
        sound = {"row": "R8", "status": "part", "measured": "some", "faults": [], "seconds": 3.5}

        def kept(*documents):
            with tempfile.TemporaryDirectory() as name:
                files = []
                for i, document in enumerate(documents):
                    files.append(Path(name) / f"{i}.json")
                    files[-1].write_text(json.dumps({"schema": "shardwright/soak/1", **at, **document}))
                with mock.patch.multiple(table, commit=lambda: at["commit"], machine=lambda: at["machine"]):
                    return table.kept_results(files)

        found = kept({"rows": [sound]}, {"rows": [{**sound, "row": "R7"}]})
        self.assertEqual(list(found), ["R8", "R7"])
        self.assertEqual((found["R8"].status, found["R8"].seconds), ("part", 3.5))
        for bad in ({"commit": "0123456780"}, {"machine": "3 cores, Linux 6"}, {"schema": "x"}):
            with self.assertRaisesRegex(SystemExit, f"found {next(iter(bad))} "):
                kept({"rows": [sound], **bad})
        with self.assertRaisesRegex(SystemExit, "R8 is in another file"):
            kept({"rows": [sound]}, {"rows": [sound]})
        with self.assertRaisesRegex(SystemExit, "R99 is no row"):
            kept({"rows": [{**sound, "row": "R99"}]})
        at["commit"] += "+"  # of a tree that has changes nobody knows which they are
        with self.assertRaisesRegex(SystemExit, "without changes"):
            kept({"rows": [sound]})

    def test_the_pages_get_the_table_between_their_marks(self):
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / "docs").mkdir()
            pages = [Path(name) / "docs" / page for page in ("reliability.md", "reliability_zh.md")]
            for page in pages:
                page.write_text(f"before\n{table.BEGIN}of yesterday\n{table.END}behind\n")
            results = [table.Result(row, "part", Outcome("a|b"), 60.0) for row in ROWS]
            with mock.patch.object(table, "ROOT", Path(name)):
                table.write_pages(results)
            for page, word in zip(pages, ("part", "部分")):
                text = page.read_text()
                self.assertTrue(text.startswith("before\n") and text.endswith("behind\n"))
                self.assertNotIn("yesterday", text)
                self.assertEqual(text.count(f"| a\\|b | {word} | 60 |\n"), len(ROWS))
                self.assertIn("24", text.split("|")[0])

    def test_a_disturbed_target_has_another_digest(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.assertEqual(tree_digest(folder / "none"), "")
            (folder / "a").write_bytes(b"1")
            one = tree_digest(folder)
            (folder / "a.bak").write_bytes(b"1")
            self.assertNotEqual(tree_digest(folder), one)
            self.assertEqual(tree_digest(folder, (".bak",)), one)
            (folder / "a").write_bytes(b"2")
            self.assertNotEqual(tree_digest(folder, (".bak",)), one)

    def test_cpython_is_asked(self):
        self.assertEqual(pickle_streams.graph_of(b"\x80\x02]q\x00h\x00a."), "[@0;]")
        self.assertEqual(pickle_streams.graph_of(b"\x80\x02]K\x00K\x01s."), "-")
        self.assertEqual(pickle_streams.graph_of(b"\x80\x02G?\xe0\0\0\0\0\0\0."), "f0x1p-1;")

    def test_the_model_of_posix_loses_what_is_not_synced(self):
        log = """1 mkdir("/d/.out", 0777) = 0
1 openat(AT_FDCWD</d>, ".out/a", O_WRONLY|O_CREAT, 0666) = 3</d/.out/a>
1 pwrite64(3</d/.out/a>, "x", 1, 0) = 1
2 fdatasync(3</d/.out/a> <unfinished ...>
1 openat(AT_FDCWD</d>, "none", O_RDONLY|O_CREAT) = -1 ENOENT (No such file or directory)
2 <... fdatasync resumed>) = 0
1 fsync(4</d/.out>) = 0
1 rename(".out", "out") = 0
1 fsync(5</d>) = 0
"""
        events = sync_model.events_of(log, "/d")
        self.assertEqual(sync_model.synced(events), ["/d/.out/a", "/d/.out", "/d"])
        self.assertEqual(sync_model.lost(events, "/d/out"), [])
        for number, lost in enumerate(("contents of /d/.out/a", "entry /d/.out/a", "entry /d/out")):
            self.assertIn(lost, sync_model.lost(events, "/d/out", without=number)[0])

    def test_paths_of_metadata_are_replaced(self):
        import pickle

        made = metadata_with_path(pickle.dumps({"a": "__0_0.distcp"}, 4), "../x")
        self.assertEqual(pickle.loads(made), {"a": "../x"})

    def test_status_tells(self):
        program = [sys.executable, soak.__file__, "/bin/true", "--minutes", "0.01", "--json"]
        done = subprocess.run([*program, "--only", "R18"], capture_output=True, text=True)
        rows = json.loads(done.stdout)["rows"]
        self.assertEqual([row["status"] for row in rows], ["lacking"])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(subprocess.run([*program, "--only", "R18", "--passing"],
                                        capture_output=True).returncode, 0)  # fmt: skip


if __name__ == "__main__":
    unittest.main()
