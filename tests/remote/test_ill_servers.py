#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers that tell little, stop answering or never come to an end: test_ill_servers.py PROGRAM GOLDEN_FOLDER [NAME...]"""
import html
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

import server
import test_remote
from server import fault
from test_remote import files_of


def of_weights(act, count=-1):
    """`act` in place of each part of the weights."""
    return lambda handler: "Range" in handler.headers and fault(act, "safetensors", count)(handler)


def without_tags(handler):
    """Neither ETag nor date."""
    data = handler.server.files.get(handler.path.lstrip("/"))
    if data is None:
        return False
    answer = handler.answer
    handler.answer = lambda status, body=b"", **headers: answer(
        status, body, **{name: text for name, text in headers.items() if name != "ETag"}
    )
    handler.send_file(data)
    handler.answer = answer
    return True


class Untold(test_remote.Remote):
    """What a server tells no version of can't be known again later."""

    def setUp(self):
        super().setUp()
        self.web = self.serve(files_of(self.model, "m/"))
        self.url = f"{self.web.url}/m"
        self.out = pathlib.Path(self.home.name, "out")
        self.plan = pathlib.Path(self.home.name, "p.plan")

    def convert(self, *flags):
        return ("convert", self.url, self.out, "--to", "torch_dist", *flags)

    def is_refused(self, *words):
        message = self.fails("SW0115", *words)
        self.assertIn("tells neither ETag nor date of", message)
        self.assertIn(f"{self.url}/model.safetensors", message)
        return message

    def begin(self):
        """Leaves an unfinished output: the server is ill once the copying has begun."""
        ill = of_weights(server.status(500))
        self.web.faults.insert(0, lambda h: any(self.out.parent.glob(".out.partial-*")) and ill(h))
        self.fails("SW0119", *self.convert("--resume"))
        del self.web.faults[0]
        self.assertEqual(len(list(self.out.parent.glob(".out.partial-*"))), 1)

    def test_one_run_converts_it(self):
        self.web.faults = [without_tags]
        self.converts_alike(self.url, self.model, "torch_dist")
        self.works(*self.convert("--resume"))  # nothing was left to go on with

    def test_no_run_goes_on(self):
        self.web.faults = [without_tags]
        self.begin()
        self.assertIn("remove the output", self.is_refused(*self.convert("--resume")))
        self.assertFalse(self.out.exists())
        self.works(*self.convert())

    def test_a_run_goes_on_where_they_are_told(self):
        self.begin()
        self.works(*self.convert("--resume"))
        self.works("diff", self.out, self.model)

    def test_no_plan_is_saved(self):
        self.web.faults = [without_tags]
        plan = ("plan", self.url, self.out, "--to", "torch_dist")
        self.works(*plan)
        self.assertIn("in one run", self.is_refused(*plan, "--save", self.plan))
        self.assertFalse(self.plan.exists())

    def test_no_part_is_written(self):
        self.works("plan", self.url, self.out, "--to", "torch_dist", "--save", self.plan)
        self.works("convert", "--plan", self.plan, "--part", "1/2")
        self.web.faults = [without_tags]
        self.is_refused("convert", "--plan", self.plan, "--part", "2/2")
        self.web.faults = []
        self.works("convert", "--plan", self.plan, "--part", "2/2")
        self.works("publish", self.plan)


class Outage(test_remote.Remote):
    """That a server is ill says nothing of the checkpoint."""

    def is_no_finding(self, command, url, code="SW0119"):
        done = self.run_program(command, url, SHARDWRIGHT_REMOTE_TRIES="1")
        self.assertEqual(done.returncode, 2, f"{command}\n{done.stdout}{done.stderr}")
        self.assertIn(f"error[{code}]", done.stderr)
        self.assertNotIn("PROVEN", done.stdout)

    def test_is_no_finding(self):
        with tempfile.TemporaryDirectory() as run:
            self.works("convert", self.model, f"{run}/dist", "--to", "torch_dist", "--tp", "2")
            self.works("convert", self.model, f"{run}/old", "--to", "legacy", "--tp", "2")
            web = self.serve({**files_of(self.model, "m/"), **files_of(run)})
        for folder, file in (("m", ".safetensors"), ("dist", ".distcp"), ("old", ".pt")):
            part = fault(server.status(503), file, -1)
            web.faults = [lambda h, part=part: "Range" in h.headers and part(h)]
            self.is_no_finding("verify", f"{web.url}/{folder}")
            if folder != "dist":  # of which diagnose reads the metadata alone
                self.is_no_finding("diagnose", f"{web.url}/{folder}")

    def test_a_file_that_is_not_there_is_one(self):
        with tempfile.TemporaryDirectory() as run:
            self.works("convert", self.model, f"{run}/m", "--to", "hf", "--max-shard-size", "100000")
            files = files_of(run)
        lost = next(name for name in files if name.endswith(".safetensors"))
        web = self.serve({name: data for name, data in files.items() if name != lost})
        done = self.run_program("verify", f"{web.url}/m")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)


class Stopped(test_remote.Remote):
    """A signal ends what waits for a server."""

    def stops(self, words, begun, **environment):
        """Gives what the program said on standard error; `begun` is when to send the signal."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "HF_"))}
        for number in (signal.SIGINT, signal.SIGTERM):
            begun.clear()
            running = subprocess.Popen(
                [str(test_remote.PROGRAM), *map(str, words)], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**kept, "HOME": self.home.name, **self.environment, **environment},
            )  # fmt: skip
            self.assertTrue(begun.wait(60))
            time.sleep(0.2)
            running.send_signal(number)
            since = time.monotonic()
            _, said = running.communicate(timeout=60)
            self.assertLess(time.monotonic() - since, 5, said)  # a second, on a machine at rest
            self.assertEqual(running.returncode, 128 + number, said)
            self.assertIn("error[SW0109]", said)
        return said

    def waits(self, files, act):
        begun = threading.Event()
        self.addCleanup(begun.set)

        def wait(handler):
            begun.set()
            act(handler)

        return self.serve(files, faults=[of_weights(wait)]), begun

    def test_in_every_command_that_reads_all_of_it(self):
        over = threading.Event()
        self.addCleanup(over.set)
        for act in (lambda h: over.wait(60), server.status(503, Retry_After="20")):
            web, begun = self.waits(files_of(self.model, "m/"), act)
            for command in ("hash", "verify"):
                self.stops([command, f"{web.url}/m"], begun)
            self.stops(["diff", f"{web.url}/m", self.model], begun)

    def test_in_every_command_that_opens_something(self):
        over = threading.Event()
        self.addCleanup(over.set)
        begun = threading.Event()

        def wait(handler):
            begun.set()
            return over.wait(60)

        url = self.serve({}, faults=[wait]).url
        with tempfile.TemporaryDirectory() as out:
            for words in (
                ["inspect", url], ["inspect", f"{url}/a.json"], ["diagnose", url, "--tp", "2"],
                ["show", url, "x"], ["locality", url, "--tp", "2"], ["report", url, "--output", f"{out}/r"],
                ["plan", url, f"{out}/x", "--to", "hf"], ["convert", url, f"{out}/x", "--to", "hf"],
                ["convert", self.model, f"{out}/x", "--to", "hf", f"--hf-config={url}"],
                ["average", self.model, url, f"{out}/x"], ["merge-adapter", self.model, url, f"{out}/x"],
                ["split", url, f"{out}/x"],
            ):  # fmt: skip
                with self.subTest(words=words):
                    self.stops(words, begun)
            self.assertEqual(os.listdir(out), [])

    def test_where_a_saved_plan_says_what_is_opened(self):
        over = threading.Event()
        self.addCleanup(over.set)
        web, begun = self.waits(files_of(self.model, "m/"), lambda h: over.wait(60))
        ill, web.faults = web.faults, []
        with tempfile.TemporaryDirectory() as out:
            words = [f"{web.url}/m", f"{out}/x", "--to", "torch_dist", "--save", f"{out}/p"]
            self.works("plan", *words)
            web.faults = ill
            self.stops(["convert", "--plan", f"{out}/p", "--part", "1/2"], begun)
            self.assertEqual(os.listdir(out), ["p"])

    def test_a_conversion_leaves_nothing(self):
        over = threading.Event()
        self.addCleanup(over.set)
        with tempfile.TemporaryDirectory() as out:
            web, begun = self.waits(files_of(self.model, "m/"), lambda h: over.wait(60))
            ill = web.faults[0]
            web.faults = [lambda h: os.listdir(out) and ill(h)]
            self.stops(["convert", f"{web.url}/m", f"{out}/x", "--to", "torch_dist"], begun)
            self.assertEqual(os.listdir(out), [])

    def test_what_was_sent_is_taken_back(self):
        """From one bucket to another place of it."""
        over = threading.Event()
        self.addCleanup(over.set)
        bucket = self.serve(files_of(self.model, "m/"))
        begun = threading.Event()

        def wait(handler):
            """What is asked for after the first block, which is read with the header."""
            if handler.headers.get("Range", "bytes=0-").startswith("bytes=0-"):
                return False
            for _ in range(300):
                if bucket.uploads:
                    break
                time.sleep(0.1)
            begun.set()
            return over.wait(60)

        bucket.faults = [wait]
        before = dict(bucket.files)
        self.stops(
            ["convert", "s3://bucket/m", "s3://bucket/out", "--to", "torch_dist", "--threads", "1",
             "--max-memory", "64MiB"], begun, AWS_ENDPOINT_URL=f"{bucket.url}/s3",
            AWS_ACCESS_KEY_ID=server.KEY, AWS_SECRET_ACCESS_KEY=server.SECRET,
            AWS_SESSION_TOKEN=server.SESSION, AWS_REGION=server.REGION, TMPDIR=self.home.name,
            SHARDWRIGHT_REMOTE_PART_SIZE="2000",
        )  # fmt: skip
        self.assertEqual(bucket.uploads, {})
        self.assertEqual(bucket.files, before)


class Empties(test_remote.Remote):
    """Files without a byte, on servers that don't tell a file's length to HEAD."""

    def test_are_read_as_from_a_disk(self):
        def without_range(handler):
            return handler.answer(416)

        def with_range(handler):
            return handler.answer(416, Content_Range="bytes */0")

        def whole(handler):
            return handler.answer(200, b"", ETag='"0"')

        with tempfile.TemporaryDirectory() as place:
            model = pathlib.Path(place, "m")
            shutil.copytree(self.model, model)
            (model / "merges.txt").write_bytes(b"")
            for status in (405, 501):
                for act in (without_range, with_range, whole):
                    web = self.serve(files_of(model, "m/"))
                    first = fault(act, "merges.txt", -1, "GET")
                    web.faults = [
                        fault(server.status(status), "", -1, "HEAD"),
                        lambda h, first=first: "Range" in h.headers and first(h),
                    ]
                    self.converts_alike(f"{web.url}/m", model, "hf")

    def test_a_refusal_of_what_has_bytes_stays_one(self):
        web = self.serve(files_of(self.model, "m/"))
        web.faults = [
            fault(server.status(405), "", -1, "HEAD"),
            lambda h: "Range" in h.headers and fault(server.status(416), "config.json", -1)(h),
        ]
        self.fails("SW0111", "inspect", f"{web.url}/m")


class Bucket(test_remote.Remote):
    def setUp(self):
        super().setUp()
        self.bucket = self.serve(files_of(self.model, "m/"))
        self.environment |= {
            "AWS_ENDPOINT_URL": f"{self.bucket.url}/s3",
            "AWS_ACCESS_KEY_ID": server.KEY,
            "AWS_SECRET_ACCESS_KEY": server.SECRET,
            "AWS_SESSION_TOKEN": server.SESSION,
            "AWS_REGION": server.REGION,
        }

    def lists(self, pages, text="list-type=2"):
        """`pages(n)`: the n-th one, as the server gives it; what calls it ends with its number."""

        def answer(handler):
            words = urllib.parse.parse_qs(handler.path.partition("?")[2])
            behind = words.get("continuation-token", words.get("key-marker", [""]))[0]
            handler.answer(200, pages(int(behind.rpartition("/")[2]) + 1 if behind else 0))

        self.bucket.faults = [fault(answer, text, -1)]

    def test_listings_without_an_end(self):
        def page(number, rows=""):
            return (f"<ListBucketResult>{rows}<IsTruncated>true</IsTruncated><NextContinuationToken>"
                    f"{number}</NextContinuationToken></ListBucketResult>")  # fmt: skip

        again = "<Contents><Key>m/config.json</Key><Size>4</Size></Contents>"
        folder = "<CommonPrefixes><Prefix>m/x/</Prefix></CommonPrefixes>"
        for pages in (page, lambda n: page(n, again), lambda n: page(n % 2, folder)):
            self.bucket.requests.clear()
            self.lists(pages)
            self.assertIn("has no end", self.fails("SW0119", "inspect", "s3://bucket/m"))
            self.assertLess(len(self.bucket.requests), 150)

    def test_pages_without_anything_between_others(self):
        names = sorted(name for name in self.bucket.files if name.startswith("m/"))
        rows = [
            f"<Contents><Key>{name}</Key><Size>{len(self.bucket.files[name])}</Size><ETag>"
            f"{html.escape(server.etag(self.bucket.files[name]))}</ETag></Contents>"
            for name in reversed(names)  # not every server keeps an order
        ]
        empty = 60  # before each name

        def page(number):
            turn, more = divmod(number, empty + 1)
            last = turn == len(rows) - 1 and more == empty
            return (f"<ListBucketResult>{rows[turn] if more == empty else ''}<IsTruncated>"
                    f"{'false' if last else 'true'}</IsTruncated><NextContinuationToken>{number}"
                    "</NextContinuationToken></ListBucketResult>")  # fmt: skip

        self.lists(page)
        self.works("inspect", "s3://bucket/m")
        self.assertGreater(len(self.bucket.paths("list-type=2")), 200)

    def test_uploads_without_an_end(self):
        again = ("<Upload><Key>m/a</Key><UploadId>1</UploadId><Initiated>2026-01-02T03:04:05Z"
                 "</Initiated></Upload>")  # fmt: skip
        for rows in ("", again):
            self.bucket.requests.clear()
            self.lists(lambda n, rows=rows: "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>"
                       f"{rows}<NextKeyMarker>m/{n}</NextKeyMarker></ListMultipartUploadsResult>",
                       "uploads=")  # fmt: skip
            self.assertIn("has no end", self.fails("SW0119", "clean", "s3://bucket/m"))
            self.assertLess(len(self.bucket.requests), 150)

    def test_listings_without_quoted_etags(self):
        for shown in ("", "<ETag>{0}</ETag>", '<ETag>W/"{0}"</ETag>'):
            rows = "".join(
                f"<Contents><Key>{name}</Key><Size>{len(data)}</Size>"
                f"{shown.format(server.etag(data)[1:-1])}</Contents>"
                for name, data in self.bucket.files.items()
            )
            self.lists(lambda n, rows=rows: f"<ListBucketResult>{rows}</ListBucketResult>")
            self.works("diff", "s3://bucket/m", self.model)
            self.converts_alike("s3://bucket/m", self.model, "torch_dist")

            def change(handler):
                name = "m/model.safetensors"
                self.bucket.files[name] = self.bucket.files[name][:-1] + b"\x7f"
                return False

            kept = dict(self.bucket.files)
            turn = itertools.count()
            self.bucket.faults.append(
                lambda h: "Range" in h.headers and "safetensors" in h.path and next(turn) == 1 and change(h)
            )
            self.fails("SW0111", "hash", "s3://bucket/m")
            self.bucket.files = kept


class Schemes(test_remote.Remote):
    def test_have_any_case(self):
        web = self.serve(files_of(self.model, "m/"))
        place = web.url.removeprefix("http://")
        self.works("diff", f"HTTP://{place}/m", self.model)
        self.assertIn("safetensors", self.works("inspect", f"Http://{place}/m/model.safetensors"))
        bucket = self.serve(files_of(self.model, "m/"))
        keys = {
            "AWS_ENDPOINT_URL": f"{bucket.url}/s3",
            "AWS_ACCESS_KEY_ID": server.KEY,
            "AWS_SECRET_ACCESS_KEY": server.SECRET,
            "AWS_SESSION_TOKEN": server.SESSION,
            "AWS_REGION": server.REGION,
        }
        self.works("convert", "S3://bucket/m", "S3://bucket/out", "--to", "dcp", **keys)
        self.works("diff", "s3://bucket/out", self.model, **keys)
        self.assertIn("no unfinished uploads", self.works("clean", "S3://bucket/out", **keys))


if __name__ == "__main__":
    test_remote.PROGRAM, test_remote.GOLDEN = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
