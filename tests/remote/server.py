# SPDX-License-Identifier: Apache-2.0
"""A server on loopback that is a web server, a Hugging Face Hub and an S3 bucket, and ill on demand.

Nothing of what it checks is taken from the program under test: signatures are calculated anew from
Amazon's description of them.
"""
import contextlib
import hashlib
import hmac
import html
import http.server
import json
import socket
import ssl
import threading
import time
import urllib.parse
import xml.etree.ElementTree

COMMIT = "0123456789abcdef0123456789abcdef01234567"
KEY, SECRET, SESSION, REGION = "AKTEST", "sEcReT/with+signs", "session-token==", "eu-test-7"
HUB_TOKEN = "hf_secret_token"


def etag(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


class Server(http.server.ThreadingHTTPServer):
    """`files` are by their path; `faults` are asked, in turn, what to do about each request."""

    daemon_threads = True

    def __init__(self, files, **options):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = dict(files)
        self.requests = []  # (method, path with query, headers)
        self.faults = []
        self.lists = True  # pages that list a folder
        self.hides = False  # in them what begins with a dot, as nginx and Apache do
        self.missing = 404  # what is answered of what is not there
        self.gated = False
        self.page = 1000  # entries of a listing
        self.peer = None  # another server, where the Hub keeps its files
        self.refused = []  # what an S3 client did wrong
        self.uploads = {}  # of a bucket, unfinished: key and parts by id
        self.shown = []  # keys in the order in which they came to be there
        certificate = options.pop("certificate", None)
        self.__dict__.update(options)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.url = self.url.replace("http:", "https:")
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass  # clients may go away in the middle

    def paths(self, text=""):
        return [path for _, path, _ in self.requests if text in path]


def fault(action, text="", count=1, method=None):
    """`action(handler)` in place of the answer, for the next `count` requests with `text`."""
    left = [count]

    def ask(handler):
        if left[0] == 0 or text not in handler.path or method not in (None, handler.command):
            return False
        left[0] -= 1
        action(handler)
        return True

    return ask


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # an answer in one packet, or it waits for the client's acknowledgement
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def handle_expect_100(self):
        super().handle_expect_100()
        self.wfile.flush()
        return True

    def do_HEAD(self):
        self.do_GET()

    def do_PUT(self):
        self.do_GET()

    def do_POST(self):
        self.do_GET()

    def do_DELETE(self):
        self.do_GET()

    def do_GET(self):
        length = int(self.headers.get("Content-Length", 0))
        self.body = self.rfile.read(length)
        if len(self.body) < length:  # who sends it has gone away
            self.close_connection = True
            return
        self.server.requests.append((self.command, self.path, dict(self.headers)))
        if any(ask(self) for ask in self.server.faults):
            return
        path, _, query = self.path.partition("?")
        if path.startswith("/hub/"):
            self.hub(path[len("/hub") :], urllib.parse.parse_qs(query))
        elif path.startswith("/s3/"):
            self.s3(path[len("/s3/") :], query)
        else:
            self.web(urllib.parse.unquote(path).lstrip("/"))

    # --- answers

    def answer(self, status, body=b"", **headers):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_file(self, data, **headers):
        headers.setdefault("ETag", etag(data))
        if self.headers.get("If-Match", headers["ETag"]) != headers["ETag"]:
            return self.answer(412)
        asked = self.headers.get("Range")
        if not asked:
            return self.answer(200, data, Content_Type="application/octet-stream", **headers)
        begin, last = asked.removeprefix("bytes=").split("-")
        begin, last = int(begin), min(int(last), len(data) - 1)
        if begin >= len(data):
            return self.answer(416)
        headers.setdefault("Content_Range", f"bytes {begin}-{last}/{len(data)}")
        return self.answer(206, data[begin : last + 1], **headers)

    # --- a web server

    def web(self, path):
        if path in self.server.files:
            return self.send_file(self.server.files[path])
        folder = path.rstrip("/") + "/" if path.rstrip("/") else ""
        names = sorted({name[len(folder) :] for name in self.server.files if name.startswith(folder)})
        if not names or not self.server.lists:
            return self.answer(self.server.missing, "nothing")
        entries = sorted({name.split("/")[0] + "/" * ("/" in name) for name in names})
        if self.server.hides:
            entries = [entry for entry in entries if not entry.startswith(".")]
        links = "".join(
            f'<a href="{urllib.parse.quote(entry)}">{html.escape(entry)}</a>\n' for entry in entries
        )
        page = f'<title>Index of /{path}</title><a href="../">../</a><a href="?C=N">N</a>{links}'
        return self.answer(200, page, Content_Type="text/html; charset=utf-8")

    # --- a Hub

    def hub(self, path, query):
        token = self.headers.get("Authorization", "")
        if self.server.gated and token != f"Bearer {HUB_TOKEN}":
            return self.answer(401, X_Error_Message="Access to model org/model is restricted.")
        if path.startswith("/api/models/org/model/revision/"):
            revision = urllib.parse.unquote(path.rsplit("/", 1)[1])
            if revision not in ("main", "refs/pr/1"):
                return self.answer(404, X_Error_Message=f"Invalid rev id: {revision}")
            return self.answer(200, json.dumps({"id": "org/model", "sha": COMMIT}))
        tree = f"/api/models/org/model/tree/{COMMIT}"
        if path.startswith(tree):
            folder = urllib.parse.unquote(path[len(tree) :]).strip("/")
            names = [n for n in sorted(self.server.files) if not folder or n.startswith(folder + "/")]
            begin = int(query.get("cursor", ["0"])[0])
            some = names[begin : begin + self.server.page]
            entries = [
                {"type": "file", "path": name, "size": len(self.server.files[name]),
                 "oid": hashlib.sha1(self.server.files[name]).hexdigest()}
                for name in some
            ]  # fmt: skip
            headers = {}
            if begin + len(some) < len(names):
                url = f"{self.server.url}/hub{path}?recursive=true&cursor={begin + len(some)}"
                headers["Link"] = f'<{url}>; rel="next"'
            return self.answer(200 if names else 404, json.dumps(entries), **headers)
        files = f"/org/model/resolve/{COMMIT}/"
        name = urllib.parse.unquote(path[len(files) :])
        if path.startswith(files) and name in self.server.files:
            if self.server.peer:
                there = f"{self.server.peer.url}/{urllib.parse.quote(name)}?signed={len(self.server.requests)}_"
                return self.answer(302, Location=there)
            return self.send_file(self.server.files[name])
        return self.answer(404, X_Error_Message="Repository not found")

    # --- a bucket

    def s3(self, path, query):
        wrong = self.wrong_signature(query)
        if wrong:
            self.server.refused.append(wrong)
            return self.answer(403, f"<Error><Code>SignatureDoesNotMatch</Code><Message>{wrong}"
                                    "</Message></Error>")  # fmt: skip
        bucket, _, key = urllib.parse.unquote(path).partition("/")
        if bucket != "bucket":
            return self.answer(404, "<Error><Code>NoSuchBucket</Code></Error>")
        words = urllib.parse.parse_qs(query, keep_blank_values=True)
        if "uploads" in words and self.command == "GET":
            return self.s3_list_uploads(words)
        if self.command in ("PUT", "POST", "DELETE"):
            return self.s3_write(key, words)
        if key:
            data = self.server.files.get(key)
            if data is None:
                return self.answer(404, "<Error><Code>NoSuchKey</Code></Error>")
            return self.send_file(data)
        return self.s3_list(urllib.parse.parse_qs(query, keep_blank_values=True))

    def s3_list(self, query):
        prefix = query["prefix"][0]
        names = sorted({
            prefix + rest.split("/")[0] + "/" * ("/" in rest)
            for rest in (n[len(prefix) :] for n in self.server.files if n.startswith(prefix))
        })  # fmt: skip
        begin = int(query.get("continuation-token", ["0"])[0])
        some = names[begin : begin + self.server.page]
        rows = ""
        for name in some:
            quoted = urllib.parse.quote_plus(name, safe="/")
            if name.endswith("/") and name not in self.server.files:
                rows += f"<CommonPrefixes><Prefix>{quoted}</Prefix></CommonPrefixes>"
                continue
            data = self.server.files[name]
            rows += (f"<Contents><Key>{quoted}</Key><Size>{len(data)}</Size>"
                    f"<ETag>{html.escape(etag(data))}</ETag><Owner><ID>x</ID></Owner></Contents>")  # fmt: skip
        more = begin + len(some) < len(names)
        token = f"<NextContinuationToken>{begin + len(some)}</NextContinuationToken>" * more
        self.answer(
            200,
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"{token}{rows}</ListBucketResult>",
            Content_Type="application/xml",
        )

    def s3_show(self, key, data):
        self.server.files[key] = data
        self.server.shown.append(key)

    def s3_write(self, key, words):
        uploads = self.server.uploads
        if "uploads" in words:
            number = f"id/{len(self.server.requests)}+=&"
            uploads[number] = (key, {})
            return self.answer(200, f"<InitiateMultipartUploadResult><UploadId>{html.escape(number)}"
                                    "</UploadId></InitiateMultipartUploadResult>")  # fmt: skip
        if "uploadId" not in words:
            if self.command == "PUT":
                self.s3_show(key, self.body)
                return self.answer(200, ETag=etag(self.body))
            self.server.files.pop(key, None)
            return self.answer(204)
        number = words["uploadId"][0]
        if uploads.get(number, ("", {}))[0] != key:
            return self.answer(404, "<Error><Code>NoSuchUpload</Code></Error>")
        if self.command == "DELETE":
            del uploads[number]
            return self.answer(204)
        parts = uploads[number][1]
        if self.command == "PUT":
            parts[int(words["partNumber"][0])] = self.body
            return self.answer(200, ETag=etag(self.body))
        asked = [(int(part.findtext("PartNumber")), part.findtext("ETag"))
                 for part in xml.etree.ElementTree.fromstring(self.body)]  # fmt: skip
        if asked != [(n, etag(parts[n])) for n in range(1, len(parts) + 1)]:
            return self.answer(400, "<Error><Code>InvalidPart</Code></Error>")
        del uploads[number]
        self.s3_show(key, b"".join(parts[n] for n, _ in asked))
        return self.answer(200, "  <?xml version='1.0'?><CompleteMultipartUploadResult/>")

    def s3_list_uploads(self, words):
        found = sorted((key, number) for number, (key, _) in self.server.uploads.items()
                       if key.startswith(words["prefix"][0]))  # fmt: skip
        behind = (words.get("key-marker", [""])[0], words.get("upload-id-marker", [""])[0])
        some = [one for one in found if one > behind]
        more, some = len(some) > self.server.page, some[: self.server.page]
        text = "".join(
            f"<Upload><Key>{html.escape(key)}</Key><UploadId>{html.escape(number)}</UploadId>"
            "<Initiated>2026-01-02T03:04:05Z</Initiated></Upload>"
            for key, number in some
        )
        if more:
            text += (f"<NextKeyMarker>{html.escape(some[-1][0])}</NextKeyMarker>"
                     f"<NextUploadIdMarker>{html.escape(some[-1][1])}</NextUploadIdMarker>")  # fmt: skip
        self.answer(200, f"<ListMultipartUploadsResult><IsTruncated>{str(more).lower()}</IsTruncated>"
                         f"{text}</ListMultipartUploadsResult>")  # fmt: skip

    def wrong_signature(self, query):
        """What Amazon would refuse of this request; nothing of a good one."""
        words = self.headers.get("Authorization", "")
        if not words.startswith("AWS4-HMAC-SHA256 "):
            return "not signed"
        parts = dict(w.strip().split("=", 1) for w in words.split(" ", 1)[1].split(","))
        key, date, region, service, _ = parts["Credential"].split("/")
        if (key, region, service) != (KEY, REGION, "s3"):
            return f"signed for {parts['Credential']}"
        if self.headers.get("x-amz-security-token") != SESSION:
            return "no session"
        signed = parts["SignedHeaders"].split(";")
        unsigned = [h.lower() for h in self.headers if h.lower().startswith("x-amz-")]
        if self.headers.get("x-amz-content-sha256") != hashlib.sha256(self.body).hexdigest():
            return "another body"
        if "host" not in signed or set(unsigned) - set(signed):
            return f"signs only {signed}"
        pairs = sorted(p if "=" in p else p + "=" for p in query.split("&") if p)
        head = "".join(f"{h}:{' '.join(self.headers[h].split())}\n" for h in signed)
        canonical = "\n".join([
            self.command, self.path.partition("?")[0], "&".join(pairs), head, ";".join(signed),
            self.headers.get("x-amz-content-sha256", "no hash"),
        ])  # fmt: skip
        stamp = self.headers["x-amz-date"]
        scope = f"{date}/{region}/{service}/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        secret = ("AWS4" + SECRET).encode()
        for word in (date, region, service, "aws4_request", text):
            secret = hmac.new(secret, word.encode(), hashlib.sha256).digest()
        return "" if secret.hex() == parts["Signature"] else "another signature"


# --- what may go wrong: actions of fault()


def status(code, **headers):
    return lambda handler: handler.answer(code, b"<Error><Code>SlowDown</Code></Error>", **headers)


def cut_to(count):
    """Ends the body early, as a connection does that breaks."""

    def act(handler):
        data = handler.server.files[handler.path.lstrip("/").partition("?")[0]]
        begin, last = handler.headers["Range"].removeprefix("bytes=").split("-")
        part = data[int(begin) : int(last) + 1]
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {begin}-{last}/{len(data)}")
        handler.send_header("Content-Length", str(len(part)))
        handler.send_header("ETag", etag(data))
        handler.end_headers()
        handler.wfile.write(part[:count])
        handler.close_connection = True

    return act


def without_answer(handler):
    """Does what it is asked for, and the connection breaks before the answer."""
    handler.answer = lambda *args, **kwargs: None
    path, _, query = handler.path.partition("?")
    handler.s3(path[len("/s3/") :], query)
    hang_up(handler)


def cut_answer(handler):
    """The same, and half of the answer comes."""
    answer = handler.answer

    def begin(status, body=b"", **headers):
        body = body.encode() if isinstance(body, str) else body
        headers["Content_Length"] = str(len(body))
        answer(status, body[: len(body) // 2], **headers)
        handler.close_connection = True

    handler.answer = begin
    path, _, query = handler.path.partition("?")
    handler.s3(path[len("/s3/") :], query)


def wrong_range(handler):
    data = handler.server.files[handler.path.lstrip("/")]
    handler.send_file(data, Content_Range=f"bytes 0-0/{len(data)}")


def hang_up(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def redirect(to):
    return lambda handler: handler.answer(302, Location=to)


def sleep_long(handler):
    with contextlib.suppress(OSError):
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        time.sleep(3)
        handler.close_connection = True
