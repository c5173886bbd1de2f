"""HTTP requests over connections that are kept and shared by threads."""

import collections
import http.client
import json
import ssl
import threading

from headrace.serving import failures

Response = collections.namedtuple("Response", "status headers body")
# Connections that wait for the next request; more are closed.
_KEPT = 64
# Read at a time: between two reads the deadline is looked at.
_PIECE = 1 << 20


class HttpWire:
    """Connections to one server."""

    def __init__(self, host, port, tls, headers):
        self._host, self._port, self._headers = host, port, headers
        self._context = _context(tls) if tls else None
        self._lock = threading.Lock()
        self._idle = []  # guarded by _lock
        self._closed = False  # guarded by _lock

    def close(self):
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def ask(self, method, path, deadline, body=None, headers=()):
        """The Response. UnavailableError where there is no connection or it breaks."""
        connection, used = self._take()
        try:
            return self._ask(connection, method, path, deadline, body, headers)
        except (ConnectionError, http.client.HTTPException):
            connection.close()
            # The server may have closed a connection that waited.
            if not used:
                raise
        connection = self._new()
        return self._ask(connection, method, path, deadline, body, headers)

    def _ask(self, connection, method, path, deadline, body, headers):
        sent = {**self._headers, **dict(headers)}
        whole = False
        try:
            connection.timeout = deadline.left()
            if connection.sock is not None:
                connection.sock.settimeout(connection.timeout)
            connection.request(method, path, body, sent)
            sock = connection.sock
            sock.settimeout(deadline.left())
            response = connection.getresponse()
            parts = []
            while part := response.read(_PIECE):
                parts.append(part)
                # None where the answer's end closed it.
                if connection.sock is not None:
                    sock.settimeout(deadline.left())
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            whole = not response.will_close
            return Response(response.status, response.headers, b"".join(parts))
        finally:
            if whole:
                self._give_back(connection)
            else:
                connection.close()

    def _take(self):
        with self._lock:
            if self._closed:
                raise failures.invalid("the client is closed")
            if self._idle:
                return self._idle.pop(), True
        return self._new(), False

    def _new(self):
        if self._context is not None:
            return http.client.HTTPSConnection(
                self._host, self._port, context=self._context
            )
        return http.client.HTTPConnection(self._host, self._port)

    def _give_back(self, connection):
        with self._lock:
            if not self._closed and len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def json(self, method, path, deadline, value=None):
        """The JSON of an answer; errors as exceptions."""
        body = None if value is None else json.dumps(value).encode()
        response = self.ask(method, path, deadline, body)
        check(response)
        return parsed(response.body)


def parsed(body):
    try:
        return json.loads(body)
    except ValueError as e:
        raise failures.broken(f"the server's answer is no JSON: {e}") from None


def check(response):
    """An exception for a status that is an error."""
    if response.status == 200:
        return
    text = response.body[:2048].decode("utf-8", "replace")
    try:
        said = json.loads(response.body)["error"]
        text = said if isinstance(said, str) else text
    except (ValueError, KeyError, TypeError):
        pass
    raise failures.of_http(response.status, text or f"HTTP status {response.status}")


def _context(tls):
    context = ssl.create_default_context(cafile=tls.ca_file)
    if tls.certificate_file:
        context.load_cert_chain(tls.certificate_file, tls.key_file)
    return context
