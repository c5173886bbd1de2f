"""An S3 server for tests: one bucket, objects in memory, signatures checked, pages of
three keys. `python fake_s3.py` prints its address and serves."""

import hashlib
import hmac
import json
import re
import threading
import time
import urllib.request
from email.utils import formatdate
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from fake_server import FakeServer, Handler, serve

KEY, SECRET = "AKIDTEST", "secret/+key"
_PAGE = 3


def _sha(data):
    return hashlib.sha256(data).hexdigest()


def _tag(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status, code, message="no"):
        super().__init__(code)
        self.status, self.code, self.message = status, code, message


class _Handler(Handler):
    def _answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _xml(self, root, inner, status=200):
        self._answer(status, f"<{root}>{inner}</{root}>".encode())

    def _serve(self):
        target = urlsplit(self.path)
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.query = dict(parse_qsl(target.query, keep_blank_values=True))
        _, self.bucket, *key = unquote(target.path).split("/", 2)
        self.key = key[0] if key else ""
        if self.bucket == "_state":
            return self._tell_state()
        self.fake.requests.append(f"{self.command} {self.path}")
        try:
            if self.fake.busy > 0:
                self.fake.busy -= 1
                raise Refused(503, "SlowDown", "Reduce your request rate")
            if self.fake.refused and self.fake.refused in self.path:
                raise Refused(403, "AccessDenied", "No more")
            self._check_signature(target)
            if self.bucket not in self.fake.buckets:
                raise Refused(404, "NoSuchBucket", "The bucket does not exist")
            with self.fake.lock:
                getattr(self, f"_{self.command.lower()}")()
        except Refused as r:
            inner = f"<Code>{r.code}</Code><Message>{r.message}</Message>"
            self._xml("Error", inner, r.status)
        return None

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def _tell_state(self):
        """What the test sets, and sees."""
        vars(self.fake).update(json.loads(self.body or "{}"))
        told = {
            "keys": sorted(self.fake.buckets["bucket"]),
            "uploads": list(self.fake.uploads),
            "requests": self.fake.requests,
        }
        self._answer(200, json.dumps(told).encode())
        self.fake.requests = []

    def _check_signature(self, target):
        found = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=(\S+?)/(\d+)/(\S+?)/s3/aws4_request,"
            r"SignedHeaders=(\S+),Signature=(\w+)",
            self.headers.get("Authorization", ""),
        )
        if not found:
            raise Refused(403, "AccessDenied", "Anonymous")
        key, day, region, names, signature = found.groups()
        if key != KEY:
            raise Refused(403, "InvalidAccessKeyId", "Unknown key")
        total = self.headers["x-amz-content-sha256"]
        assert total in (_sha(self.body), "UNSIGNED-PAYLOAD")
        names = names.split(";")
        assert {"host"} | {
            n.lower() for n in self.headers if n.lower().startswith("x-amz-")
        } <= set(names)
        pairs = parse_qsl(target.query, keep_blank_values=True)
        query = "&".join(f"{quote(n, '')}={quote(v, '')}" for n, v in sorted(pairs))
        lines = [f"{n}:{' '.join(self.headers[n].split())}\n" for n in names]
        canonical = "\n".join(
            [
                self.command,
                quote(unquote(target.path), "/"),
                query,
                "".join(lines),
                ";".join(names),
                total,
            ]
        )
        stamp = self.headers["x-amz-date"]
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{day}/{region}/s3/aws4_request\n" + _sha(
            canonical.encode()
        )
        digest = ("AWS4" + SECRET).encode()
        for part in (day, region, "s3", "aws4_request", text):
            digest = hmac.digest(digest, part.encode(), "sha256")
        if digest.hex() != signature:
            raise Refused(403, "SignatureDoesNotMatch", "Check your key")

    @property
    def _objects(self):
        return self.fake.buckets[self.bucket]

    def _find(self, key):
        if key not in self._objects:
            raise Refused(404, "NoSuchKey", "The key does not exist")
        return self._objects[key]

    def _get(self):
        if not self.key:
            return self._list()
        data, when, tag = self._find(self.key)
        if self.headers.get("If-Match", tag) != tag:
            raise Refused(412, "PreconditionFailed")
        headers = {"ETag": tag, "Last_Modified": formatdate(when, usegmt=True)}
        size = len(data)
        if self.command == "HEAD":
            return self._answer(200, Content_Length=str(size), **headers)
        if wanted := self.headers.get("Range"):
            first, last = map(int, wanted.removeprefix("bytes=").split("-"))
            if first >= size:
                raise Refused(416, "InvalidRange")
            data = data[first : last + 1]
            headers["Content_Range"] = f"bytes {first}-{first + len(data) - 1}/{size}"
            return self._answer(206, data, **headers)
        return self._answer(200, data, **headers)

    _head = _get

    def _list(self):
        assert self.query["list-type"] == "2" and self.query["encoding-type"] == "url"
        prefix, slash = self.query["prefix"], self.query.get("delimiter")
        after = self.query.get("continuation-token", "")
        entries = set()
        for key in self._objects:
            if not key.startswith(prefix):
                continue
            cut = key.find(slash, len(prefix)) if slash else -1
            entries.add(key if cut < 0 else key[: cut + 1])
        most = min(_PAGE, int(self.query.get("max-keys", _PAGE)))
        rest = sorted(e for e in entries if e > after)
        inner = "<EncodingType>url</EncodingType>"
        for entry in rest[:most]:
            name = quote(entry)
            if entry in self._objects:
                inner += f"<Contents><Key>{name}</Key></Contents>"
            else:
                inner += f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"
        if len(rest) > most:
            inner += "<IsTruncated>true</IsTruncated><NextContinuationToken>"
            inner += f"{escape(rest[most - 1])}</NextContinuationToken>"
        return self._xml("ListBucketResult", inner)

    def _content(self):
        """What a PUT puts: its body, or a copy."""
        source = self.headers.get("x-amz-copy-source")
        if source is None:
            return self.body
        bucket, key = unquote(source).lstrip("/").split("/", 1)
        assert bucket == self.bucket
        data, _, tag = self._find(key)
        if self.headers.get("x-amz-copy-source-if-match", tag) != tag:
            raise Refused(412, "PreconditionFailed")
        if wanted := self.headers.get("x-amz-copy-source-range"):
            first, last = map(int, wanted.removeprefix("bytes=").split("-"))
            assert last < len(data)
            return data[first : last + 1]
        return data

    def _store(self, data):
        self._objects[self.key] = data, time.time(), _tag(data)

    def _put(self):
        data = self._content()
        if "uploadId" in self.query:
            parts = self.fake.uploads[self.query["uploadId"]]
            parts[int(self.query["partNumber"])] = data
        elif self.headers.get("If-None-Match") == "*" and self.key in self._objects:
            raise Refused(412, "PreconditionFailed")
        else:
            self._store(data)
        if "x-amz-copy-source" in self.headers:
            return self._xml("CopyObjectResult", f"<ETag>{_tag(data)}</ETag>")
        return self._answer(200, ETag=_tag(data))

    def _post(self):
        uploads = self.fake.uploads
        if "delete" in self.query:
            for key in ElementTree.fromstring(self.body).iter("Key"):
                self._objects.pop(key.text, None)
            return self._xml("DeleteResult", "")
        if "uploads" in self.query:
            name = f"upload {self.fake.count}"
            self.fake.count += 1
            uploads[name] = {}
            return self._xml(
                "InitiateMultipartUploadResult", f"<UploadId>{name}</UploadId>"
            )
        parts = uploads.pop(self.query["uploadId"], None)
        if parts is None:
            raise Refused(404, "NoSuchUpload")
        told = [e.text for e in ElementTree.fromstring(self.body).iter("ETag")]
        assert told == [_tag(parts[i + 1]) for i in range(len(parts))]
        data = b"".join(parts[i + 1] for i in range(len(parts)))
        self._store(data)
        return self._xml("CompleteMultipartUploadResult", f"<ETag>{_tag(data)}</ETag>")

    def _delete(self):
        if "uploadId" in self.query:
            self.fake.uploads.pop(self.query["uploadId"])
        else:
            self._objects.pop(self.key, None)
        self._answer(204)


class _Fake:
    def __init__(self):
        self.buckets, self.uploads, self.requests = {"bucket": {}}, {}, []
        self.busy, self.refused, self.count = 0, "", 0
        self.lock = threading.Lock()


class FakeS3(FakeServer):
    """A server that runs until close(): its bucket is "bucket"."""

    def __init__(self):
        super().__init__(__file__)

    def settings(self):
        """Environment variables that lead to it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "HEADRACE_S3_TIMEOUT": "20",
        }

    def state(self, **changes):
        """Its keys, the uploads that are not complete, and the requests since the last
        call. Changes: `busy`, how many requests are told to come later; `refused`, of
        which paths requests are denied."""
        data = json.dumps(changes).encode()
        request = urllib.request.Request(f"{self.url}/_state", data)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


if __name__ == "__main__":
    serve(_Handler, _Fake())
