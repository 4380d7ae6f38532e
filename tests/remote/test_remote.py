#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program reads checkpoints from servers: test_remote.py PROGRAM GOLDEN_FOLDER [NAME...]"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import server
from server import Server, fault

PROGRAM, GOLDEN = None, None


def files_of(folder, prefix=""):
    folder = pathlib.Path(folder)
    return {
        prefix + str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class Remote(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        self.model = GOLDEN / "hf/llama3/hf"
        self.environment = {"SHARDWRIGHT_REMOTE_TRIES": "3"}

    def serve(self, files, **options):
        running = Server(files, **options)
        self.addCleanup(running.close)
        return running

    def run_program(self, *words, **environment):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "HF_"))}
        given = {**kept, "HOME": self.home.name, **self.environment, **environment}
        return subprocess.run(
            [str(PROGRAM), *map(str, words)], env=given, text=True, capture_output=True, timeout=120
        )

    def works(self, *words, **environment):
        done = self.run_program(*words, **environment)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout

    def fails(self, code, *words, **environment):
        done = self.run_program(*words, **environment)
        self.assertIn(f"error[{code}]", done.stderr, f"{words}\n{done.stdout}")
        self.assertNotEqual(done.returncode, 0)
        for secret in (server.SECRET, server.SESSION, server.HUB_TOKEN):
            self.assertNotIn(secret, done.stdout + done.stderr)
        return done.stderr

    def converts_alike(self, remote, local, to, *flags, **environment):
        """The same bytes as from a local copy."""
        with tempfile.TemporaryDirectory() as out:
            self.works("convert", local, f"{out}/a", "--to", to, *flags)
            self.works("convert", remote, f"{out}/b", "--to", to, *flags, **environment)
            self.assertEqual(files_of(f"{out}/a"), files_of(f"{out}/b"))


class WebServer(Remote):
    def test_every_command_reads_it_as_a_local_copy(self):
        for lists in (True, False):
            web = self.serve(files_of(self.model, "a model/"), lists=lists)
            url = f"{web.url}/a%20model/"
            local = self.works("hash", self.model).replace(str(self.model), "")
            self.assertEqual(self.works("hash", url).replace(url.rstrip("/"), ""), local)
            self.assertIn("llama", self.works("inspect", url).lower())
            self.works("verify", url)
            self.works("verify", self.model, "--against", url)
            self.works("diff", url, self.model)
            self.works("show", url, "model.norm.weight")
            self.works("plan", url, "OUT", "--to", "torch_dist")
            self.assertIn("hf", self.works("diagnose", url))
            self.converts_alike(url, self.model, "torch_dist")
            self.assertNotIn("", web.paths("//"))

    def test_a_note_tells_that_a_folder_was_not_listed(self):
        files = {**files_of(self.model, "m/"), "m/qwen.tiktoken": b"x"}
        for lists in (True, False):
            web = self.serve(files, lists=lists)
            with tempfile.TemporaryDirectory() as out:
                done = self.run_program("convert", f"{web.url}/m", f"{out}/a", "--to", "hf")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(os.path.exists(f"{out}/a/qwen.tiktoken"), lists)
            self.assertEqual("shows no list of this folder, so only" in done.stderr, not lists)

    def test_a_model_of_shards_without_a_list_of_the_folder(self):
        with tempfile.TemporaryDirectory() as cut:
            self.works("convert", self.model, f"{cut}/m", "--to", "hf", "--max-shard-size", "100000")
            files = files_of(f"{cut}/m", "m/")
            self.assertGreater(sum(name.endswith(".safetensors") for name in files), 1)
            web = self.serve(files, lists=False)
            self.works("diff", f"{web.url}/m", self.model)
            self.assertIn("is right", self.works("index", "rebuild", f"{web.url}/m"))

    def test_ranks_files_of_meta_without_a_list_of_the_folder(self):
        state = (GOLDEN / "torch_save/2.13.0/01_state_dict.pt").read_bytes()
        files = {f"m/consolidated.{rank:02d}.pth": state for rank in range(3)}
        web = self.serve(files, lists=False)
        self.assertIn("in 3 files", self.works("inspect", f"{web.url}/m"))
        self.assertNotIn("consolidated.04.pth", " ".join(web.paths()))

    def test_megatrons_runs(self):
        with tempfile.TemporaryDirectory() as run:
            self.works("convert", self.model, f"{run}/run", "--to", "torch_dist")
            self.works("convert", self.model, f"{run}/old", "--to", "legacy", "--tp", "2")
            web = self.serve(files_of(run))
            self.works("diff", f"{web.url}/run", self.model)
            self.works("diff", f"{web.url}/old", self.model)
            self.converts_alike(f"{web.url}/old", f"{run}/old", "torch_dist")
            self.assertIn("torch_dist", self.works("diagnose", f"{web.url}/run"))

    def test_lists_without_hidden_files(self):
        with tempfile.TemporaryDirectory() as run:
            self.works("convert", self.model, f"{run}/run", "--to", "torch_dist")
            web = self.serve(files_of(run), hides=True)
            self.works("diff", f"{web.url}/run", self.model)
            self.assertIn("complete  yes", self.works("diagnose", f"{web.url}/run"))
            self.converts_alike(f"{web.url}/run", f"{run}/run", "legacy")

    def test_a_server_that_refuses_what_is_not_there(self):
        with tempfile.TemporaryDirectory() as run:
            self.works("convert", self.model, f"{run}/run", "--to", "torch_dist")
            self.works("convert", self.model, f"{run}/m", "--to", "hf", "--max-shard-size", "100000")
            web = self.serve({**files_of(run), **files_of(self.model, "one/")}, lists=False, missing=403)
            for folder in ("run", "m", "one"):
                self.works("diff", f"{web.url}/{folder}", self.model)
                self.works("verify", f"{web.url}/{folder}")

    def test_a_server_that_is_ill_is_no_format(self):
        with tempfile.TemporaryDirectory() as run:
            self.works("convert", self.model, f"{run}/run", "--to", "torch_dist")
            web = self.serve(files_of(run))
            web.faults.append(fault(server.status(503), "iter_0000000", -1))
            self.fails("SW0119", "hash", f"{web.url}/run")

    def test_one_file(self):
        web = self.serve(files_of(self.model, "m/"), lists=False)
        self.assertIn("safetensors", self.works("inspect", f"{web.url}/m/model.safetensors"))
        self.works("diff", f"{web.url}/m/model.safetensors", self.model)
        self.fails("SW0101", "inspect", f"{web.url}/m/nothing.safetensors")

    def test_headers_are_few_requests_and_payloads_are_ranges(self):
        web = self.serve(files_of(self.model, "m/"))
        self.works("inspect", f"{web.url}/m")
        weights = [r for r in web.requests if r[1].endswith("model.safetensors") and r[0] == "GET"]
        self.assertLessEqual(len(weights), 2)
        self.assertTrue(all("Range" in headers for _, _, headers in weights))

    def test_megatrons_archives_are_few_requests_and_each_byte_once(self):
        for flags in (("torch_dist",), ("legacy", "--tp", "2"), ("fsdp_dtensor",)):
            with self.subTest(flags), tempfile.TemporaryDirectory() as folder:
                run = f"{folder}/run"
                self.works("convert", self.model, run, "--to", *flags, "--extend-vocab", "60000")
                files = files_of(run, "run/")
                web = self.serve(files)
                back = ("convert", f"{web.url}/run", f"{folder}/back", "--to", "hf")
                self.works(*back, "--threads", "2")
                self.works("diff", f"{folder}/back", run)
                asked = [h["Range"][6:].split("-") for m, _, h in web.requests if "Range" in h]
                fetched = sum(int(last) - int(first) + 1 for first, last in asked)
                there = sum(map(len, files.values()))
                self.assertGreater(there, 10_000_000)
                self.assertLess(fetched, 1.1 * there)
                self.assertLess(len(asked), 40)
                for command in (("hash",), ("verify",)):
                    before = len(web.requests)
                    self.works(*command, f"{web.url}/run", "--threads", "2")
                    self.assertLess(len(web.requests) - before, 80, command)

    def test_files_are_asked_for_side_by_side(self):
        """Their number times the way to the server would be minutes for a large run."""
        for flags in (("hf", "--max-shard-size", "100KB"), ("torch_dist", "--tp", "2", "--pp", "2"),
                      ("legacy", "--tp", "2", "--pp", "2")):  # fmt: skip
            with self.subTest(flags), tempfile.TemporaryDirectory() as folder:
                model = GOLDEN / "hf/llama3_4l/hf"
                self.works("convert", model, f"{folder}/run", "--to", *flags)
                web = self.serve(files_of(f"{folder}/run", "run/"))
                met, began = threading.Barrier(3), set()

                def wait_for_others(handler):
                    weights = handler.path.endswith((".safetensors", ".distcp", "optim_rng.pt"))
                    is_first = "Range" in handler.headers and handler.path not in began
                    if weights and is_first and len(began) < met.parties:
                        began.add(handler.path)
                        met.wait(30)
                    return False

                web.faults.append(wait_for_others)
                self.works("plan", f"{web.url}/run", f"{folder}/out", "--to", "safetensors")
                self.assertEqual(len(began), met.parties)
                self.assertFalse(met.broken)

    def test_nothing_there(self):
        web = self.serve({"x": b"x"})
        self.assertIn("none of the files", self.fails("SW0101", "inspect", f"{web.url}/m"))
        self.fails("SW0101", "inspect", f"{web.url}/m/model.safetensors")
        self.fails("SW0119", "inspect", "http://127.0.0.1:1/m")

    def test_addresses_that_hold_secrets_or_name_no_folder(self):
        message = self.fails("SW0900", "inspect", "https://user:pass-word@127.0.0.1/m")
        self.assertNotIn("pass-word", message)
        message = self.fails("SW0900", "inspect", "https://127.0.0.1/m?signature=pass-word")
        self.assertNotIn("pass-word", message)

    def test_what_passes_is_tried_again(self):
        files = files_of(self.model, "m/")
        name = "m/model.safetensors"
        for action in (
            server.status(503), server.status(429, Retry_After="0"), server.cut_to(100),
            server.wrong_range, server.hang_up,
        ):  # fmt: skip
            web = self.serve(files)
            web.faults = [fault(action, name, 2, "GET")]
            self.works("diff", f"{web.url}/m", self.model)

    def test_what_stays_is_an_error_that_names_file_and_range(self):
        files = files_of(self.model, "m/")
        name = "m/model.safetensors"
        for action, text in (
            (server.status(503), "HTTP status 503 (SlowDown)"),
            (server.cut_to(0), "partial file"),
            (server.wrong_range, "found bytes 'bytes 0-0/"),
        ):
            web = self.serve(files)
            web.faults = [fault(action, name, -1, "GET")]
            message = self.fails("SW0119", "hash", f"{web.url}/m")
            self.assertRegex(message.lower(), r"m/model.safetensors@\d+\+\d+: ")
            self.assertIn(text.lower(), message.lower())
            self.assertIn("3 tries", message)

    def test_a_cut_body_goes_on_where_it_ended(self):
        web = self.serve(files_of(self.model, "m/"))
        web.faults = [fault(server.cut_to(1000), "m/model.safetensors", 1, "GET")]
        self.works("diff", f"{web.url}/m", self.model)
        ranges = [h["Range"] for m, p, h in web.requests if "Range" in h and "safetensors" in p]
        begin = int(ranges[0].split("=")[1].split("-")[0])
        self.assertTrue(ranges[1].startswith(f"bytes={begin + 1000}-"), ranges[:2])

    def test_a_server_that_stands_still(self):
        web = self.serve(files_of(self.model, "m/"))
        web.faults = [fault(server.sleep_long, "m/config.json", 1, "GET")]
        self.works("inspect", f"{web.url}/m", SHARDWRIGHT_REMOTE_TIMEOUT="1")

    def test_a_file_that_changes(self):
        files = files_of(self.model, "m/")
        web = self.serve(files)
        other = bytes(files["m/model.safetensors"][:-1]) + b"\x7f"

        def change(handler):
            web.files["m/model.safetensors"] = other
            handler.web("m/config.json")

        web.faults = [fault(change, "config.json", 1, "GET")]
        self.assertIn("changed", self.fails("SW0111", "hash", f"{web.url}/m"))

        # A server that knows no If-Match tells it by the tag of its answer.
        web = self.serve(files)

        def ignore(handler):
            del handler.headers["If-Match"]
            handler.send_file(other)

        web.faults = [fault(ignore, "m/model.safetensors", -1, "GET")]
        self.assertIn("changed", self.fails("SW0111", "hash", f"{web.url}/m"))

        web = self.serve(files)
        longer = files["m/model.safetensors"] + b"x"
        web.faults = [fault(lambda h: h.send_file(longer, ETag=h.headers["If-Match"]), "m/model.saf",
                            -1, "GET")]  # fmt: skip
        self.assertIn("bytes now", self.fails("SW0111", "hash", f"{web.url}/m"))

    def mixed(self, tag_of):
        """A server whose file changes between the parts: `tag_of(is_head, is_later)`."""
        files = files_of(self.model, "m/")
        name = "m/model.safetensors"
        web = self.serve(files)
        begun = []

        def act(handler):
            is_later = len(begun) > 0
            if handler.command == "GET":
                begun.append(handler.path)
            tag = tag_of(handler.command == "HEAD", is_later)
            data = files[name] if not is_later else files[name][:-1000] + bytes(1000)
            headers = {"ETag": tag} if tag else {}
            if handler.command == "HEAD":
                return handler.answer(200, data, **headers)
            begin, last = map(int, handler.headers["Range"].removeprefix("bytes=").split("-"))
            part = data[begin : last + 1]
            return handler.answer(
                206, part, Content_Range=f"bytes {begin}-{last}/{len(data)}", **headers
            )

        web.faults = [fault(act, name, -1)]
        return web

    def test_a_file_that_changes_between_its_parts(self):
        # HEAD says nothing, and the parts are of two versions.
        web = self.mixed(lambda is_head, later: None if is_head else '"B"' if later else '"A"')
        self.assertIn('calls it "B" now', self.fails("SW0111", "hash", f"{web.url}/m"))
        # The tag is there no longer.
        web = self.mixed(lambda is_head, later: '"A"' if is_head else None)
        self.assertIn("no longer tells", self.fails("SW0111", "hash", f"{web.url}/m"))
        web = self.mixed(lambda is_head, later: None if is_head or later else '"A"')
        self.assertIn("no longer tells", self.fails("SW0111", "hash", f"{web.url}/m"))
        # A server that never tells anything is read.
        web = self.mixed(lambda is_head, later: None)
        self.works("hash", f"{web.url}/m")

    def test_no_part_is_made_of_two_versions(self):
        files = files_of(self.model, "m/")
        name = "m/model.safetensors"
        for tag_of_head in ('W/"A"', ""):
            web = self.serve(files)
            parts = []

            def act(handler, web=web, parts=parts, tag_of_head=tag_of_head):
                if handler.command == "HEAD":
                    headers = {"ETag": tag_of_head} if tag_of_head else {}
                    return handler.answer(200, files[name], **headers)
                parts.append(handler.headers["Range"])
                begin, last = map(int, parts[-1].removeprefix("bytes=").split("-"))
                data = files[name][begin : last + 1]
                is_other = len(parts) == 1
                handler.send_response(206)
                handler.send_header("Content-Range", f"bytes {begin}-{last}/{len(files[name])}")
                handler.send_header("Content-Length", str(len(data)))
                handler.send_header("ETag", 'W/"B"' if is_other else 'W/"A"')
                handler.end_headers()
                handler.wfile.write(data[:1000] if is_other else data)
                handler.close_connection = is_other

            web.faults = [fault(act, name, -1)]
            self.assertIn("changed", self.fails("SW0111", "hash", f"{web.url}/m"))

    def test_a_server_need_not_tell_how_long_a_file_is_with_each_part(self):
        files = files_of(self.model, "m/")
        name = "m/model.safetensors"
        for wrong in (0, 1):
            web = self.serve(files)

            def act(handler, wrong=wrong):
                if handler.command == "HEAD":
                    return handler.answer(200, files[name])
                begin, last = map(int, handler.headers["Range"].removeprefix("bytes=").split("-"))
                data = files[name][begin : last + 1]
                handler.send_response(206)
                handler.send_header("Content-Range", f"bytes {begin + wrong}-{last}/*")
                handler.send_header("Content-Length", str(len(data)))
                handler.end_headers()
                handler.wfile.write(data)

            web.faults = [fault(act, name, -1)]
            if wrong:
                self.assertIn("found bytes", self.fails("SW0119", "hash", f"{web.url}/m"))
            else:
                self.works("hash", f"{web.url}/m")

    def test_a_date_is_a_tag_too(self):
        files = files_of(self.model, "m/")
        name = "m/model.safetensors"
        for is_changed in (False, True):
            web = self.serve(files)

            def act(handler, is_changed=is_changed):
                day = 2 if is_changed and handler.command == "GET" else 1
                return handler.send_file(files[name], ETag="", Last_Modified=f"Mon, 0{day} Jan 2024 00:00:00 GMT")

            web.faults = [fault(act, name, -1)]
            if is_changed:
                self.assertIn("calls it Mon, 02", self.fails("SW0111", "hash", f"{web.url}/m"))
            else:
                self.works("hash", f"{web.url}/m")

    def test_a_change_after_the_last_byte(self):
        with tempfile.TemporaryDirectory() as out:
            web = self.serve(files_of(self.model, "m/"))

            def later(handler):
                if handler.command == "HEAD" and len(web.paths("m/model.safetensors")) > 3:
                    handler.answer(200, ETag='"other"', Content_Length="5")
                    return True
                return False

            web.faults = [later]
            self.fails("SW0111", "convert", f"{web.url}/m", f"{out}/x", "--to", "torch_dist")
            self.assertEqual(os.listdir(out), [])

    def test_a_server_without_ranges(self):
        files = files_of(self.model, "m/")
        web = self.serve(files)
        web.faults = [fault(lambda h: h.answer(200, files[h.path.lstrip("/")],
                                               ETag=server.etag(files[h.path.lstrip("/")])),
                            "m/model.saf", -1, "GET")]  # fmt: skip
        self.works("diff", f"{web.url}/m", self.model)  # a small file
        big = {**files, "m/model.safetensors": files["m/model.safetensors"] + bytes(9 << 20)}
        web.files = big
        web.faults = [fault(lambda h: h.answer(200, big[h.path.lstrip("/")]), "m/model.saf", -1,
                            "GET")]  # fmt: skip
        self.assertIn("no parts", self.fails("SW0119", "hash", f"{web.url}/m"))

    def test_redirections(self):
        files = files_of(self.model, "m/")
        web, other = self.serve(files), self.serve(files_of(self.model, "there/"))
        web.faults = [fault(server.redirect(f"{other.url}/there/model.safetensors"),
                            "m/model.safetensors", -1)]  # fmt: skip
        self.works("diff", f"{web.url}/m", self.model)
        web.faults = [fault(server.redirect("/m/model.safetensors"), "m/model.safetensors", -1)]
        self.assertIn("more than 5", self.fails("SW0119", "hash", f"{web.url}/m"))
        web.faults = [fault(server.redirect("file:///etc/hostname"), "m/model.safetensors", -1)]
        self.assertIn("redirects to file", self.fails("SW0119", "hash", f"{web.url}/m"))

    def test_certificates_and_ways_out_of_https(self):
        with tempfile.TemporaryDirectory() as place:
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                 "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                 "subjectAltName=IP:127.0.0.1", "-keyout", f"{place}/key", "-out", f"{place}/cert"],
                check=True, capture_output=True,
            )  # fmt: skip
            plain = self.serve(files_of(self.model, "m/"))
            safe = self.serve(files_of(self.model, "m/"), certificate=(f"{place}/cert", f"{place}/key"))
            self.fails("SW0119", "inspect", f"{safe.url}/m")
            trusted = {"CURL_CA_BUNDLE": f"{place}/cert"}
            self.works("diff", f"{safe.url}/m", self.model, **trusted)
            safe.faults = [fault(server.redirect(f"{plain.url}/m/model.safetensors"),
                                 "m/model.safetensors", -1)]  # fmt: skip
            message = self.fails("SW0119", "hash", f"{safe.url}/m", **trusted)
            self.assertIn("expected https", message)
            self.assertEqual(plain.requests, [])

    def test_outputs_and_settings(self):
        web = self.serve(files_of(self.model, "m/"))
        self.fails("SW0900", "convert", self.model, f"{web.url}/out", "--to", "torch_dist")
        self.fails("SW0900", "inspect", f"{web.url}/m", SHARDWRIGHT_REMOTE_TRIES="0")
        web.files["m/model.safetensors.index.json"] = b'{"weight_map": {"x": "y.safetensors"}}'
        self.assertIn("only read", self.fails("SW0102", "index", "rebuild", f"{web.url}/m"))

    def test_plans_and_configs(self):
        web = self.serve(files_of(self.model, "m/"))
        with tempfile.TemporaryDirectory() as out:
            self.works("plan", f"{web.url}/m", f"{out}/x", "--to", "torch_dist", "--save", f"{out}/p")
            self.works("convert", "--plan", f"{out}/p", "--part", "1/1")
            self.works("publish", f"{out}/p")
            self.works("diff", f"{out}/x", f"{web.url}/m")
            self.works("convert", f"{out}/x", f"{out}/y", "--to", "hf", "--hf-config", f"{web.url}/m")
            self.works("diff", f"{out}/y", self.model)


    def test_parts_of_two_versions_are_not_put_together(self):
        web = self.serve(files_of(self.model, "m/"))
        with tempfile.TemporaryDirectory() as out:
            plan = f"{out}/p"
            self.works("plan", f"{web.url}/m", f"{out}/x", "--to", "torch_dist", "--save", plan)
            self.works("convert", "--plan", plan, "--part", "1/2")
            name = "m/model.safetensors"
            data = bytearray(web.files[name])
            data[-1] ^= 1  # another model of the same names and sizes
            web.files[name] = bytes(data)
            self.fails("SW0115", "convert", "--plan", plan, "--part", "2/2")


class Hub(Remote):
    def setUp(self):
        super().setUp()
        self.cdn = self.serve(files_of(self.model))
        self.hub = self.serve(files_of(self.model), peer=self.cdn)
        self.environment["HF_ENDPOINT"] = f"{self.hub.url}/hub/"

    def test_a_model_is_read_at_its_commit(self):
        for path in ("hf://org/model", "hf://org/model@main", "hf://org/model@refs/pr/1",
                     f"{self.hub.url}/hub/org/model/tree/main"):  # fmt: skip
            self.works("diff", path, self.model)
        self.converts_alike("hf://org/model", self.model, "torch_dist")
        self.assertIn("safetensors", self.works("inspect", "hf://org/model/model.safetensors"))
        self.assertEqual(self.hub.paths("resolve/main"), [])
        self.assertIn("not there", self.fails("SW0101", "inspect", "hf://org/other"))
        self.assertIn("Invalid rev", self.fails("SW0101", "inspect", "hf://org/model@other"))
        self.fails("SW0101", "inspect", "hf://org/model/folder")
        self.fails("SW0900", "inspect", "hf://org")
        self.fails("SW0900", "inspect", "hf://org/..")

    def test_folders_and_pages(self):
        files = files_of(self.model, "deep/er/")
        self.hub.files, self.cdn.files, self.hub.page = files, files, 2
        self.works("diff", "hf://org/model@main/deep/er", self.model)
        self.assertTrue(self.hub.paths("cursor="))
        # One in between may be empty.
        later = f'<{self.hub.url}/hub/api/models/org/model/tree/{server.COMMIT}?recursive=true>; rel="next"'
        self.hub.faults = [fault(lambda h: h.answer(200, "[]", Link=later), "/tree/", 1)]
        self.works("verify", "hf://org/model@main/deep/er")
        self.hub.faults = [fault(lambda h: h.answer(200, "[]", Link=later), "/tree/", -1)]
        self.assertIn("pages without an end", self.fails("SW0119", "verify", "hf://org/model"))
        self.hub.faults = []

    def test_pages_of_another_server_are_not_asked_for(self):
        def lead_away(handler):
            handler.answer(200, json.dumps([{"type": "directory", "path": "x"}]),
                           Link=f'<{self.cdn.url}/next>; rel="next"')  # fmt: skip

        self.hub.faults = [fault(lead_away, "/tree/", -1)]
        self.assertIn("elsewhere", self.fails("SW0119", "inspect", "hf://org/model"))
        self.assertEqual(self.cdn.requests, [])

    def test_hostile_listings(self):
        for entry, code in (
            ({"type": "file", "path": "../x", "size": 1, "oid": "a"}, "SW0106"),
            ({"type": "file", "path": "/x", "size": 1, "oid": "a"}, "SW0106"),
            ({"type": "file", "path": "x", "size": -1, "oid": "a"}, "SW0119"),
            ({"type": "file", "path": "x", "oid": "a"}, "SW0119"),
            (7, "SW0119"),
        ):
            self.hub.faults = [fault(lambda h, e=entry: h.answer(200, json.dumps([e])), "/tree/", -1)]
            self.fails(code, "inspect", "hf://org/model")
        self.hub.faults = [fault(lambda h: h.answer(200, "{"), "/tree/", -1)]
        self.fails("SW0240", "inspect", "hf://org/model")
        self.hub.faults = [fault(lambda h: h.answer(200, b"[" + b" " * (17 << 20)), "/tree/", -1)]
        self.assertIn("more than", self.fails("SW0119", "inspect", "hf://org/model"))

    def test_tokens_go_to_the_hub_alone(self):
        self.hub.gated = True
        message = self.fails("SW0102", "inspect", "hf://org/model")
        self.assertIn("restricted", message)
        self.assertIn("HF_TOKEN", message)
        self.works("diff", "hf://org/model", self.model, HF_TOKEN=server.HUB_TOKEN)
        self.works("inspect", "hf://org/model", HUGGING_FACE_HUB_TOKEN=server.HUB_TOKEN)
        kept = pathlib.Path(self.home.name, ".cache/huggingface/token")
        kept.parent.mkdir(parents=True)
        kept.write_text(server.HUB_TOKEN + "\n")
        self.works("diff", "hf://org/model", self.model)
        self.assertTrue(self.cdn.requests)
        for _, _, headers in self.cdn.requests:
            self.assertNotIn("Authorization", headers)
        self.fails("SW0102", "inspect", "hf://org/model", HF_TOKEN="hf_wrong")

    def test_addresses_that_were_redirected_to_are_kept_and_may_expire(self):
        with tempfile.TemporaryDirectory() as out:
            self.works("convert", "hf://org/model", f"{out}/a", "--to", "torch_dist")
            weights = len(self.hub.paths("model.safetensors")), len(self.cdn.paths("safetensors"))
            self.assertLess(weights[0], weights[1])
            # Each address is good for one request.
            self.cdn.requests.clear()
            self.cdn.faults = [lambda h: len(self.cdn.paths(h.path)) > 1 and (h.answer(403) or True)]
            self.works("convert", "hf://org/model", f"{out}/b", "--to", "torch_dist")
            self.works("diff", f"{out}/b", f"{out}/a")
            self.assertTrue(any(len(self.cdn.paths(p)) > 1 for p in self.cdn.paths()))


class Bucket(Remote):
    def setUp(self):
        super().setUp()
        self.bucket = self.serve(files_of(self.model, "runs/a b+c/"))
        self.url = "s3://bucket/runs/a b+c"
        self.environment |= {
            "AWS_ENDPOINT_URL": f"{self.bucket.url}/s3",
            "AWS_ACCESS_KEY_ID": server.KEY,
            "AWS_SECRET_ACCESS_KEY": server.SECRET,
            "AWS_SESSION_TOKEN": server.SESSION,
            "AWS_REGION": server.REGION,
        }

    def test_a_model_is_read_with_signed_requests(self):
        self.works("diff", self.url, self.model)
        self.works("verify", self.url + "/")
        self.converts_alike(self.url, self.model, "torch_dist")
        self.assertIn("safetensors", self.works("inspect", self.url + "/model.safetensors"))
        self.assertEqual(self.bucket.refused, [])
        self.fails("SW0101", "inspect", "s3://bucket/run")
        self.fails("SW0101", "inspect", "s3://other/run")
        self.fails("SW0900", "inspect", "s3://bucket/../x")

    def test_runs_in_pages_of_a_listing(self):
        with tempfile.TemporaryDirectory() as run:
            self.works("convert", self.model, f"{run}/run", "--to", "legacy", "--tp", "2")
            self.bucket.files, self.bucket.page = files_of(run), 1
            self.bucket.files["run/"] = b""  # as consoles make folders
            self.works("diff", "s3://bucket/run", self.model)
        self.assertTrue(self.bucket.paths("continuation-token="))
        self.assertEqual(self.bucket.refused, [])

    def test_credentials(self):
        nothing = {name: "" for name in self.environment if name.startswith("AWS_")}
        endpoint = {**nothing, "AWS_ENDPOINT_URL_S3": self.environment["AWS_ENDPOINT_URL"]}
        self.assertIn("no credentials", self.fails("SW0102", "inspect", self.url, **endpoint))
        message = self.fails("SW0102", "inspect", self.url, AWS_SECRET_ACCESS_KEY="wrong")
        self.assertIn("SignatureDoesNotMatch: another signature", message)
        aws = pathlib.Path(self.home.name, ".aws")
        aws.mkdir()
        (aws / "credentials").write_text(
            f"[default]\naws_access_key_id=x\naws_secret_access_key=y\n# other\n[ lab ]\n"
            f"aws_access_key_id = {server.KEY}\naws_secret_access_key = {server.SECRET}\n"
            f"aws_session_token = {server.SESSION}\n"
        )
        (aws / "config").write_text(
            f"[profile lab]\nregion = {server.REGION}\ns3 =\n  region = nowhere\n"
            f"endpoint_url = {self.environment['AWS_ENDPOINT_URL']}\n"
        )
        self.works("inspect", self.url, **{**nothing, "AWS_PROFILE": "lab"})
        self.fails("SW0900", "inspect", self.url, **{**nothing, "AWS_PROFILE": "other"})

    def test_a_bucket_of_another_region(self):
        def point(handler):
            handler.answer(400, "<Error><Code>AuthorizationHeaderMalformed</Code></Error>",
                           x_amz_bucket_region=server.REGION)  # fmt: skip

        self.bucket.faults = [lambda h: "/us-west-1/" in h.headers["Authorization"] and (point(h) or True)]
        self.works("inspect", self.url, AWS_REGION="us-west-1")

    def test_hostile_listings(self):
        for xml, text in (
            ("<x/>", "no listing"),
            ("<ListBucketResult>", "no XML"),
            ("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", "more pages"),
            ("<ListBucketResult><Contents><Key>elsewhere/x</Key><Size>1</Size></Contents>"
             "</ListBucketResult>", "none of this folder"),
            ("<ListBucketResult><Contents><Size>-1</Size></Contents></ListBucketResult>", "size"),
        ):  # fmt: skip
            self.bucket.faults = [fault(lambda h, x=xml: h.answer(200, x), "list-type=2", -1)]
            self.assertIn(text, self.fails("SW0119", "inspect", self.url))

    def test_an_object_that_changes(self):
        name = "runs/a b+c/model.safetensors"

        def change(handler):
            self.bucket.files[name] = self.bucket.files[name][:-1] + b"\x7f"
            return False

        self.bucket.faults = [lambda h: "config.json" in h.path and change(h)]
        self.fails("SW0111", "hash", self.url)


if __name__ == "__main__":
    PROGRAM, GOLDEN = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
