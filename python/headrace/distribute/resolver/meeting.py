"""Where processes that know their number alone tell each other their addresses: the first
one listens, the others come in any order, and all get the list."""

import contextlib
import json
import selectors
import socket
import time

from headrace.context import errors
from headrace.framework.settings.versions import HEADRACE_VERSION

_LONGEST = 1 << 20  # bytes of a line
_POLITE = 5.0  # seconds in which who comes says who it is
_AGAIN = 0.1  # seconds until places are tried again
_held = []  # sockets that keep ports for servers to come


def _late(place, since, why):
    where = f"{', '.join(place.hosts)}, port {place.ports[0]} and following"
    return errors.DeadlineExceededError._of(
        f"process {place.rank} of {place.size} ({place.said_by}) waited "
        f"{time.monotonic() - since:.1f} s for the others at {where}: {why}"
    )


def _keep_port(family):
    """A port that is kept for a server of this process, which may listen at it."""
    held = socket.socket(family)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("", 0))
    _held.append(held)
    return held.getsockname()[1]


def _text(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _line(**told):
    return json.dumps(told).encode() + b"\n"


def _told(line, *names):
    """Numbers and texts of a line, None where it is no such line."""
    try:
        found = json.loads(line)
        return [found[name] for name in names]
    except (ValueError, KeyError, TypeError):
        return None


def _is_local(host):
    return host == "::1" or host.removeprefix("::ffff:").startswith("127.")


# --- the first one ---


def _listen(place):
    """A socket that listens where the others look; OSError where it can at none."""
    why = OSError("no address")
    for host in place.hosts:
        for port in place.ports:
            try:
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
                family, at = found[0], found[4]
                # A machine's own name may mean its loopback, where others do not come.
                if _is_local(at[0]) and not place.alone and not _is_local(host):
                    at = ("", port)
                return socket.create_server(at, family=family, backlog=place.size + 64)
            except OSError as e:
                why = e
    raise OSError(
        f"process 0 of {place.size} ({place.said_by}) cannot listen at "
        f"{', '.join(place.hosts)}, port {place.ports[0]} and following, where the others "
        f"look for it: {why}. HEADRACE_MEETING=HOST:PORT names another place"
    ) from why


class _Guest:
    """A connection of who came."""

    def __init__(self, connection, peer):
        self.connection, self.peer = connection, peer
        self.since, self.text, self.rank = time.monotonic(), b"", None


class _Host:
    """The first process: it waits until all others are connected and said their ports."""

    def __init__(self, place, listener):
        self._place, self._listener = place, listener
        self._guests = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        listener.setblocking(False)

    def close(self):
        for guest in list(self._guests):
            self._leave(guest)
        self._selector.close()
        self._listener.close()

    def _leave(self, guest, why=None):
        if why is not None:
            with contextlib.suppress(OSError):
                guest.connection.send(_line(error=why))
        self._selector.unregister(guest.connection)
        guest.connection.close()
        self._guests.discard(guest)

    def _enter(self):
        connection, peer = self._listener.accept()
        connection.setblocking(False)
        guest = _Guest(connection, peer[0].removeprefix("::ffff:"))
        self._guests.add(guest)
        self._selector.register(connection, selectors.EVENT_READ, guest)
        connection.send(_line(headrace=HEADRACE_VERSION, job=self._place.job))

    def _hear(self, guest):
        try:
            text = guest.connection.recv(4096)
        except BlockingIOError:
            return
        guest.text += text
        if not text or guest.rank is not None or len(guest.text) > 4096:
            return self._leave(guest)
        if b"\n" not in guest.text:
            return
        told = _told(guest.text, "rank", "port", "headrace")
        if told is None or not all(isinstance(n, int) for n in told[:2]):
            return self._leave(guest)
        rank, guest.port, version = told
        if version != HEADRACE_VERSION:
            why = f"process {rank} is of {version}, process 0 of {HEADRACE_VERSION}"
        elif not 0 < rank < self._place.size or not 0 < guest.port < 1 << 16:
            why = f"there is no process {rank} of {self._place.size}"
        elif rank in self.present():
            why = f"there is a process {rank} already, at {self.present()[rank].peer}"
        else:
            guest.rank = rank
            return
        self._leave(guest, why)

    def present(self):
        """Who said its number, by that."""
        return {g.rank: g for g in self._guests if g.rank is not None}

    def wait(self, until, since):
        """Returns when all are there."""
        while len(self.present()) < self._place.size - 1:
            if time.monotonic() > until:
                here = self.present()
                missing = [str(i) for i in range(1, self._place.size) if i not in here]
                raise _late(self._place, since, f"{', '.join(missing)} did not come")
            for key, _ in self._selector.select(0.2):
                try:
                    self._enter() if key.data is None else self._hear(key.data)
                except OSError:
                    if key.data is not None:
                        self._leave(key.data)
            for guest in list(self._guests):
                if guest.rank is None and time.monotonic() - guest.since > _POLITE:
                    self._leave(guest)

    def answer(self, own_port):
        """Tells all the list of addresses, and gives it."""
        guests = [self.present()[i] for i in range(1, self._place.size)]
        seen = [g.connection.getsockname()[0].removeprefix("::ffff:") for g in guests]
        own = next((s for s in seen if not _is_local(s)), seen[0])
        tasks = [_text(own, own_port)] + [
            _text(own if _is_local(g.peer) else g.peer, g.port) for g in guests
        ]
        for guest in guests:
            guest.connection.settimeout(_POLITE)
            guest.connection.sendall(_line(tasks=tasks))
        return tasks


# --- the others ---


def _read_line(connection, until):
    text = b""
    while b"\n" not in text and len(text) < _LONGEST:
        connection.settimeout(max(until - time.monotonic(), 0.01))
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("it hung up")
        text += part
    return text


def _visit(place, host, port, until):
    """The list of addresses. OSError where nobody of the job is there, and where it goes
    before it told; FailedPreconditionError where it refuses."""
    with socket.create_connection((host, port), timeout=2.0) as connection:
        line = _read_line(connection, min(until, time.monotonic() + 2.0))
        hello = _told(line, "headrace", "job")
        if hello is None or hello[1] != place.job:
            raise ConnectionError("somebody else is there")
        if hello[0] != HEADRACE_VERSION:
            raise errors.FailedPreconditionError._of(
                f"process {place.rank} is of Headrace {HEADRACE_VERSION}, process 0 at "
                f"{_text(host, port)} of {hello[0]}"
            )
        own = _keep_port(connection.family)
        connection.sendall(_line(rank=place.rank, port=own, headrace=HEADRACE_VERSION))
        line = _read_line(connection, until)
    refused = _told(line, "error")
    if refused is not None:
        raise errors.FailedPreconditionError._of(f"{refused[0]} ({place.said_by})")
    found = _told(line, "tasks")
    if found is None or len(found[0]) != place.size:
        raise ConnectionError("it tells no tasks")
    return found[0]


def addresses(place, timeout_seconds):
    """The addresses of all processes of a Place, by rank; this one's port is kept for it.

    Raises:
      OSError: for the first process, where it can listen nowhere.
      DeadlineExceededError: where not all came in time; it names who did not.
      FailedPreconditionError: for two of one number, and for another version.
    """
    since = time.monotonic()
    until = since + timeout_seconds
    if place.rank == 0:
        listener = _listen(place)
        with contextlib.closing(_Host(place, listener)) as host:
            host.wait(until, since)
            return host.answer(_keep_port(listener.family))
    why = "nobody was there"
    while time.monotonic() < until:
        for host in place.hosts:
            for port in place.ports:
                try:
                    return _visit(place, host, port, until)
                except ConnectionRefusedError:
                    continue
                except OSError as e:
                    why = f"{_text(host, port)}: {e}"
        time.sleep(_AGAIN)
    raise _late(place, since, why)
