#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program writes checkpoints to a bucket: test_remote_output.py PROGRAM GOLDEN_FOLDER [NAME...]"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

import server
import test_remote
from server import fault
from test_remote import files_of

TRACKER = "latest_checkpointed_iteration.txt"


class Target(test_remote.Remote):
    def setUp(self):
        super().setUp()
        self.bucket = self.serve({"other/x": b"x", "run": b"a file of the same name"})
        self.before = dict(self.bucket.files)
        self.environment |= {
            "AWS_ENDPOINT_URL": f"{self.bucket.url}/s3",
            "AWS_ACCESS_KEY_ID": server.KEY,
            "AWS_SECRET_ACCESS_KEY": server.SECRET,
            "AWS_SESSION_TOKEN": server.SESSION,
            "AWS_REGION": server.REGION,
            "SHARDWRIGHT_REMOTE_PART_SIZE": "20000",
            "TMPDIR": self.home.name,
        }

    def tearDown(self):
        self.assertEqual(self.bucket.refused, [])
        left = [name for name in os.listdir(self.home.name) if name.startswith("shardwright")]
        self.assertEqual(left, [])

    def written(self, prefix="run/"):
        return {k[len(prefix) :]: v for k, v in self.bucket.files.items() if k.startswith(prefix)}

    def local(self, *flags):
        """What the same conversion writes on this machine."""
        with tempfile.TemporaryDirectory() as out:
            self.works("convert", self.model, f"{out}/x", *flags)
            return files_of(f"{out}/x")

    def convert(self, *flags, **environment):
        return self.works("convert", self.model, "s3://bucket/run", *flags, **environment)

    def refuses(self, code, *flags, **environment):
        """Nothing is left in the bucket."""
        message = self.fails(code, "convert", self.model, "s3://bucket/run", *flags, **environment)
        self.assertEqual(self.bucket.files, self.before)
        self.assertEqual(self.bucket.uploads, {})
        return message

    def count(self, method, text):
        return sum(method == m and text in path for m, path, _ in self.bucket.requests)


class Bucket(Target):
    def test_every_format_is_written_as_to_a_disk(self):
        for flags in (
            ("--to", "torch_dist", "--tp", "2"),
            ("--to", "legacy", "--tp", "2", "--pp", "3"),
            ("--to", "hf", "--max-shard-size", "100000"),
            ("--to", "fsdp_dtensor"),
            ("--to", "dcp"),
        ):
            self.bucket.files = dict(self.before)
            self.convert(*flags, "--threads", "3")
            self.assertEqual(self.written(), self.local(*flags), flags)
            self.assertEqual(self.bucket.uploads, {})
        self.works("verify", "s3://bucket/run")

    def test_parts_are_sent_and_seals_come_last(self):
        self.bucket.shown.clear()
        self.convert("--to", "torch_dist")
        self.assertGreater(self.count("PUT", "partNumber="), 10)
        self.assertEqual(self.bucket.shown[-1], f"run/{TRACKER}")
        self.assertEqual(self.bucket.shown[-2], "run/iter_0000000/.metadata")
        self.assertEqual(self.bucket.shown[-3], "run/iter_0000000/metadata.json")
        self.bucket.files, self.bucket.shown[:] = dict(self.before), []
        self.convert("--to", "hf", "--max-shard-size", "100000")
        last = ["run/model.safetensors.index.json", "run/config.json"]
        self.assertEqual(self.bucket.shown[-2:], last)
        # Small files are sent whole, and only then.
        self.assertEqual(self.count("POST", "config.json"), 0)

    def test_other_sizes_of_parts(self):
        expected = self.local("--to", "torch_dist")
        for size in ("1024", "100000000"):
            self.bucket.files = dict(self.before)
            self.convert("--to", "torch_dist", SHARDWRIGHT_REMOTE_PART_SIZE=size)
            self.assertEqual(self.written(), expected)
        self.assertIn("number of bytes", self.fails(
            "SW0900", "convert", self.model, "s3://bucket/other2", "--to", "hf",
            SHARDWRIGHT_REMOTE_PART_SIZE="7"))  # fmt: skip

    def test_merge_and_split(self):
        model = test_remote.GOLDEN / "hf/qwen3_vl/hf"
        with tempfile.TemporaryDirectory() as out:
            self.works("split", model, f"{out}/parts")
            self.works("split", model, "s3://bucket/parts")
            self.assertEqual(self.written("parts/"), files_of(f"{out}/parts"))

    def test_what_cannot_be_had_there_is_refused(self):
        for flag in ("--resume", "--overwrite", "--digests", "--sha256"):
            self.assertIn(flag, self.refuses("SW0900", "--to", "hf", flag))
        self.assertEqual(self.bucket.requests, [])
        plan = f"{self.home.name}/p.plan"
        self.assertIn("local path", self.fails("SW0900", "plan", self.model, "s3://bucket/run",
                                               "--to", "hf", "--save", plan))  # fmt: skip
        self.works("plan", self.model, "s3://bucket/run", "--to", "hf")
        self.fails("SW0900", "convert", self.model, "s3://", "--to", "hf")
        self.fails("SW0900", "convert", self.model, "s3://bucket/../x", "--to", "hf")
        self.assertIn("or write to s3://", self.fails("SW0900", "convert", self.model, "hf://a/b",
                                                       "--to", "hf"))  # fmt: skip

    def test_nothing_is_replaced(self):
        self.assertIn("found x there", self.fails("SW0107", "convert", self.model, "s3://bucket/other",
                                                "--to", "hf"))  # fmt: skip
        self.bucket.uploads["1"] = ("run/model.safetensors", {})
        message = self.fails("SW0107", "convert", self.model, "s3://bucket/run", "--to", "hf")
        self.assertIn("shardwright clean s3://bucket/run --remove", message)
        self.assertEqual(self.bucket.files, self.before)
        self.assertEqual(list(self.bucket.uploads), ["1"])

    def test_an_output_lies_in_no_source(self):
        source = "s3://bucket/from/hf"
        for name, data in files_of(self.model).items():
            self.bucket.files[f"from/hf/{name}"] = data
        self.before = dict(self.bucket.files)
        for there in ("", "/", "/out", "/a/b/"):
            message = self.fails("SW0110", "convert", source + "/", f"S3://bucket/from/hf{there}",
                                 "--to", "torch_dist")  # fmt: skip
            self.assertIn("in the source s3://bucket/from/hf", message)
        lone = f"{source}/model.safetensors"
        self.fails("SW0110", "convert", lone, f"{lone}/out", "--to", "safetensors")
        self.assertEqual(self.bucket.files, self.before)
        for beside in ("s3://bucket/from/hf2", "s3://bucket/from/out"):
            self.works("convert", source, beside, "--to", "torch_dist")
        self.bucket.files = files_of(self.model)
        self.fails("SW0110", "convert", "s3://bucket", "s3://bucket/out", "--to", "torch_dist")

    def test_a_bucket_that_is_not_there_is_refused_before_anything_is_sent(self):
        message = self.fails("SW0101", "convert", self.model, "s3://other/run", "--to", "hf")
        self.assertIn("NoSuchBucket", message)
        self.assertNotIn("removed", message)
        self.assertEqual(self.count("PUT", "") + self.count("POST", ""), 0)

    def test_clean_names_and_removes_unfinished_uploads(self):
        self.assertIn("no unfinished uploads", self.works("clean", "s3://bucket/run"))
        for number in ("1&", "2+"):
            self.bucket.uploads[number] = ("run/a b", {})
        self.bucket.uploads["3"] = ("runs/a", {})
        self.bucket.page = 1
        told = self.works("clean", "s3://bucket/run")
        self.assertEqual(told.count("s3://bucket/run/a b: an unfinished upload, begun 2026"), 2)
        shown = json.loads(self.works("clean", "s3://bucket/run", "--json"))["outputs"]
        self.assertEqual([one["state"] for one in shown], ["upload", "upload"])
        self.assertIn("removed", self.works("clean", "s3://bucket/run", "--remove"))
        self.assertEqual(list(self.bucket.uploads), ["3"])
        self.works("clean", "s3://bucket", "--remove")
        self.assertEqual(self.bucket.uploads, {})


class Faults(Target):
    def goes_on(self, *faults):
        expected = self.local("--to", "torch_dist")
        self.bucket.faults = list(faults)
        self.convert("--to", "torch_dist")
        self.assertEqual(self.written(), expected)
        self.assertEqual(self.bucket.uploads, {})

    def test_what_passes_is_sent_again(self):
        slow_down = server.status(503)
        for action in (slow_down, server.status(500), server.hang_up, server.cut_answer,
                       server.without_answer):  # fmt: skip
            for text, method in (("partNumber=", "PUT"), ("metadata", "PUT"), ("uploads=", "POST"),
                                 ("uploadId=", "POST"), ("list-type", "GET")):  # fmt: skip
                self.bucket.files = dict(self.before)
                self.goes_on(fault(action, text, 1, method))

    def test_refusals_that_pass(self):
        def timeout(handler):
            handler.answer(400, "<Error><Code>RequestTimeout</Code></Error>")

        self.goes_on(fault(timeout, "partNumber=", 1), fault(timeout, "uploadId=", 1, "POST"),
                     fault(timeout, "metadata", 1, "PUT"))  # fmt: skip

    def test_an_error_behind_a_status_of_200(self):
        def late(code):
            return lambda h: h.answer(200, f"<Error><Code>{code}</Code><Message>m</Message></Error>")

        self.goes_on(fault(late("InternalError"), "uploadId=", 2, "POST"))
        self.bucket.files = dict(self.before)
        self.bucket.faults = [fault(late("InvalidPart"), "uploadId=", -1, "POST")]
        self.bucket.requests.clear()
        message = self.refuses("SW0119", "--to", "torch_dist", "--threads", "1")
        self.assertIn("InvalidPart: m", message)
        self.assertEqual(self.count("POST", "uploadId="), 1)

    def test_parts_that_were_lost_are_noticed(self):
        def shorten(handler):
            words = urllib.parse.parse_qs(handler.path.partition("?")[2])
            key, parts = self.bucket.uploads.pop(words["uploadId"][0])
            handler.s3_show(key, b"".join(parts[n] for n in sorted(parts)[1:]))
            handler.answer(200, "<CompleteMultipartUploadResult/>")

        self.bucket.faults = [fault(shorten, "uploadId=", 1, "POST")]
        self.assertIn("that were sent", self.refuses("SW0119", "--to", "torch_dist"))

    def test_what_stays_leaves_nothing_behind(self):
        for text, method in (("partNumber=", "PUT"), ("uploads=", "POST"), ("uploadId=", "POST"),
                             (TRACKER, "PUT"), (".metadata", "PUT")):  # fmt: skip
            self.bucket.faults = [fault(server.status(503), text, -1, method)]
            message = self.refuses("SW0119", "--to", "torch_dist", SHARDWRIGHT_REMOTE_TRIES="2")
            self.assertIn("503", message)
            self.assertNotIn("could not be removed", message)

    def test_who_may_not_write(self):
        denied = server.status(403)
        for text, method in (("uploads=", "POST"), ("partNumber=", "PUT"), (TRACKER, "PUT")):
            self.bucket.faults = [fault(denied, text, -1, method)]
            self.assertIn("write to the bucket", self.refuses("SW0102", "--to", "torch_dist"))
        # Whoever may not list uploads may write.
        self.goes_on(fault(denied, "uploads=", -1, "GET"))

    def test_leftovers_are_named(self):
        self.bucket.faults = [fault(server.status(503), TRACKER, -1, "PUT"),
                              fault(server.status(403), "", -1, "DELETE")]  # fmt: skip
        message = self.fails("SW0119", "convert", self.model, "s3://bucket/run", "--to", "torch_dist",
                             SHARDWRIGHT_REMOTE_TRIES="2")  # fmt: skip
        for name in self.written():
            self.assertIn(f"s3://bucket/run/{name} could not be removed", message)
        self.assertIn(".metadata could not", message)

    def test_uploads_whose_ids_were_lost_are_aborted(self):
        self.goes_on(fault(server.without_answer, "uploads=", 2, "POST"))
        self.bucket.files = dict(self.before)
        self.bucket.faults = [fault(server.without_answer, "uploads=", -1, "POST")]
        self.refuses("SW0119", "--to", "torch_dist", SHARDWRIGHT_REMOTE_TRIES="2")

    def test_an_upload_that_somebody_removes(self):
        def remove(handler):
            self.bucket.uploads.clear()
            return False

        self.bucket.faults = [lambda h: "partNumber=3" in h.path and remove(h)]
        self.assertIn("somebody removed its upload", self.refuses("SW0119", "--to", "torch_dist"))

    def test_a_source_that_is_damaged(self):
        with tempfile.TemporaryDirectory() as folder:
            self.works("convert", self.model, f"{folder}/m", "--to", "torch_dist")
            data = next(pathlib.Path(folder, "m").rglob("*.distcp"))
            data.write_bytes(data.read_bytes()[:-2000])
            done = self.run_program("convert", f"{folder}/m", "s3://bucket/run", "--to", "hf")
            self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.bucket.files, self.before)
        self.assertEqual(self.bucket.uploads, {})

    def stopped_at(self, number, text):
        """The program's end after a signal that comes in the middle of a request, which it must not
        wait for: no answer comes, and nothing else would end it."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "HF_"))}
        kept["SHARDWRIGHT_REMOTE_TIMEOUT"] = "3600"
        waiting, gone = [], []

        def wait(handler):
            waiting.append(handler)
            handler.connection.settimeout(90)
            with contextlib.suppress(TimeoutError):
                try:
                    gone.append(handler.connection.recv(1) == b"")
                except ConnectionResetError:
                    gone.append(True)
            server.hang_up(handler)

        self.bucket.faults = [fault(wait, text, 1, "PUT")]
        words = ["convert", self.model, "s3://bucket/run", "--to", "torch_dist"]
        program = subprocess.Popen(
            [str(test_remote.PROGRAM), *map(str, words)], stderr=subprocess.PIPE, text=True,
            env={**kept, "HOME": self.home.name, **self.environment},
        )  # fmt: skip
        while not waiting and program.poll() is None:
            time.sleep(0.01)
        program.send_signal(number)
        message = program.communicate(timeout=200)[1]
        self.assertEqual(len(waiting), 1)
        patience = time.monotonic() + 90
        while not gone and time.monotonic() < patience:  # told by the server's thread
            time.sleep(0.01)
        self.assertEqual(gone, [True])
        return program.returncode, message

    def test_a_signal(self):
        for text in ("partNumber=2", TRACKER):
            status, message = self.stopped_at(signal.SIGTERM, text)
            self.assertIn("SW0109", message)
            self.assertIn("nothing was left behind", message)
            self.assertNotEqual(status, 0)
            self.assertEqual(self.bucket.files, self.before)
            self.assertEqual(self.bucket.uploads, {})

    def test_a_killed_run_is_cleaned_up_behind(self):
        self.stopped_at(signal.SIGKILL, "partNumber=2")
        self.assertEqual(self.bucket.files, self.before)
        self.assertTrue(self.bucket.uploads)
        self.fails("SW0107", "convert", self.model, "s3://bucket/run", "--to", "torch_dist")
        self.works("clean", "s3://bucket/run", "--remove")
        self.convert("--to", "torch_dist")

    def test_a_full_disk_for_what_waits(self):
        self.assertIn("/nowhere", self.fails("SW0101", "convert", self.model, "s3://bucket/run",
                                             "--to", "hf", TMPDIR="/nowhere"))  # fmt: skip
        self.assertEqual(self.bucket.files, self.before)


if __name__ == "__main__":
    test_remote.PROGRAM = pathlib.Path(sys.argv[1]).resolve()
    test_remote.GOLDEN = pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
