"""An HDFS for tests, as its NameNode and DataNode answer WebHDFS: files in memory, DataNodes
to which requests are redirected. `python fake_hdfs.py` prints its address and serves; with a
keytab as its argument the NameNode asks for Kerberos (Python's gssapi), and gives DataNodes'
addresses with a token, as Hadoop's does."""

import base64
import json
import os
import sys
import threading
import time
from urllib.parse import parse_qsl, unquote, urlsplit

from fake_server import FakeServer, Handler, serve

_TOKEN = "a-token"
_PACKAGES = {"FileNotFoundException": "java.io"}


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status, name, message):
        super().__init__(name)
        package = _PACKAGES.get(name, "org.apache.hadoop.fs")
        self.status = status
        self.body = {
            "RemoteException": {
                "exception": name,
                "javaClassName": f"{package}.{name}",
                "message": message,
            }
        }


class _Entry:
    """A file's bytes, or None of a folder."""

    def __init__(self, data=None):
        self.data, self.when = data, int(time.time() * 1000)

    def status(self, suffix=""):
        return {
            "pathSuffix": suffix,
            "type": "DIRECTORY" if self.data is None else "FILE",
            "length": len(self.data or b""),
            "modificationTime": self.when,
        }


class _Handler(Handler):
    def _answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status == 401:
            self.send_header("WWW-Authenticate", "Negotiate")
        elif self.proof is not None:
            proof = base64.b64encode(self.proof).decode()
            self.send_header("WWW-Authenticate", f"Negotiate {proof}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _json(self, value, status=200):
        self._answer(
            status, json.dumps(value).encode(), **{"Content-Type": "application/json"}
        )

    def _serve(self):
        self.body = self._read_body()
        target = urlsplit(self.path)
        self.query = dict(parse_qsl(target.query, keep_blank_values=True))
        self.at = unquote(target.path).removeprefix("/webhdfs/v1").rstrip("/") or "/"
        assert target.path.startswith("/webhdfs/v1/"), self.path
        op = self.query["op"]
        try:
            self._check_user()
            if op in ("OPEN", "CREATE", "APPEND") and "datanode" not in self.query:
                return self._redirect(op)
            with self.fake.lock:
                return getattr(self, f"_{self.command}_{op}".lower())()
        except Refused as r:
            return self._json(r.body, r.status)

    do_GET = do_PUT = do_POST = do_DELETE = _serve

    def _check_user(self):
        self.proof = None
        if self.query.get("delegation") == _TOKEN:
            return
        if self.fake.accepts is None:
            assert self.query.get("user.name"), self.path
            return
        way, _, given = self.headers.get("Authorization", "").partition(" ")
        if way != "Negotiate":
            raise Refused(401, "AuthenticationException", "Authentication required")
        user, self.proof = self.fake.accepts(base64.b64decode(given))
        assert user == "ann@HEADRACE.TEST"

    def _read_body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _redirect(self, op):
        """What a NameNode looks at before it names a DataNode."""
        with self.fake.lock:
            if op != "CREATE":
                self._find_file()
            elif self.at in self.fake.entries:
                self._refuse_a_folder()
                if self.query["overwrite"] != "true":
                    raise Refused(
                        403, "FileAlreadyExistsException", f"{self.at} exists"
                    )
        place = self.headers["Host"]
        token = f"&delegation={_TOKEN}" if self.fake.accepts else ""
        self._answer(307, Location=f"http://{place}{self.path}&datanode=1{token}")

    def _find(self):
        if self.at not in self.fake.entries:
            raise Refused(
                404, "FileNotFoundException", f"File does not exist: {self.at}"
            )
        return self.fake.entries[self.at]

    def _refuse_a_folder(self):
        if self.fake.entries[self.at].data is None:
            raise Refused(
                403,
                "FileAlreadyExistsException",
                f"{self.at} already exists as a directory",
            )

    def _find_file(self):
        entry = self._find()
        if entry.data is None:
            raise Refused(
                404, "FileNotFoundException", f"Path is not a file: {self.at}"
            )
        return entry

    def _below(self, path):
        prefix = path.rstrip("/") + "/"
        return [p for p in self.fake.entries if p.startswith(prefix) and p != path]

    def _make_folders(self, path):
        while path and path not in self.fake.entries:
            self.fake.entries[path] = _Entry()
            path = path.rpartition("/")[0]
        if path and self.fake.entries[path].data is not None:
            raise Refused(
                403, "ParentNotDirectoryException", f"{path} is not a directory"
            )

    def _get_getfilestatus(self):
        self._json({"FileStatus": self._find().status()})

    def _get_liststatus(self):
        entry = self._find()
        found = [entry.status()]
        if entry.data is None:
            start = len(self.at.rstrip("/")) + 1
            found = [
                self.fake.entries[p].status(p[start:])
                for p in sorted(self._below(self.at))
                if "/" not in p[start:]
            ]
        self._json({"FileStatuses": {"FileStatus": found}})

    def _get_open(self):
        offset = int(self.query.get("offset", 0))
        data = self._find_file().data[offset:]
        self._answer(200, data[: int(self.query.get("length", len(data)))])

    def _put_create(self):
        self._make_folders(self.at.rpartition("/")[0])
        self.fake.entries[self.at] = _Entry(self.body)
        self._answer(201)

    def _post_append(self):
        entry = self._find_file()
        self.fake.entries[self.at] = _Entry(entry.data + self.body)
        self._answer(200)

    def _put_mkdirs(self):
        self._make_folders(self.at)
        self._json({"boolean": True})

    def _put_rename(self):
        self._find()
        to = self.query["destination"]
        assert self.query["renameoptions"] == "OVERWRITE"
        if self._below(to):
            raise Refused(
                403,
                "FileAlreadyExistsException",
                f"rename destination {to} is not empty",
            )
        for path in [self.at, *self._below(self.at)]:
            self.fake.entries[to + path[len(self.at) :]] = self.fake.entries.pop(path)
        self._answer(200)

    def _delete_delete(self):
        there = self.at in self.fake.entries
        below = self._below(self.at)
        if below and self.query["recursive"] != "true":
            raise Refused(
                403, "PathIsNotEmptyDirectoryException", f"{self.at} is non empty"
            )
        for path in [self.at, *below]:
            self.fake.entries.pop(path, None)
        self._json({"boolean": there})


class _Fake:
    """`accepts`: from what a client shows to (its name, what the server shows); None: nothing
    is asked for."""

    def __init__(self, accepts=None):
        self.entries = {"/": _Entry()}
        self.lock = threading.Lock()
        self.accepts = accepts


def _kerberos(keytab):
    import gssapi

    os.environ["KRB5_KTNAME"] = keytab
    own = gssapi.Credentials(usage="accept")

    def accepts(shown):
        context = gssapi.SecurityContext(creds=own, usage="accept")
        answer = context.step(shown)
        assert context.complete
        return str(context.initiator_name), answer

    return accepts


class FakeHdfs(FakeServer):
    """A server that runs until close()."""

    def __init__(self, *arguments, **options):
        super().__init__(__file__, *arguments, **options)

    def settings(self):
        """Environment variables that lead to it."""
        return {
            "HEADRACE_WEBHDFS": self.url.removeprefix("http://"),
            "HADOOP_USER_NAME": "ann",
            "HEADRACE_HDFS_TIMEOUT": "20",
        }


if __name__ == "__main__":
    serve(_Handler, _Fake(*map(_kerberos, sys.argv[1:])))
