"""Servers that tests talk with: of a process of its own, as what reads files here may hold
the interpreter meanwhile."""

import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeServer:
    """The program of a file, `python FILE ARGUMENTS`, until close(). It prints its address."""

    def __init__(self, file, *arguments, python=sys.executable):
        self._process = subprocess.Popen(
            [python, file, *arguments], stdout=subprocess.PIPE, text=True
        )
        self.url = self._process.stdout.readline().strip()

    def close(self):
        """Ends it."""
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


class Handler(BaseHTTPRequestHandler):
    """What answers requests, over connections that are kept and without a word of its own."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        del args


def serve(handler, fake):
    """What such a program does: `handler` answers, and finds what is kept as `fake`."""
    bound = type("Handler", (handler,), {"fake": fake})
    server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
