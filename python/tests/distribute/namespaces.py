"""Machines of a network that this one plays: network namespaces behind links with a rate,
a delay and losses, for tests and benchmarks. Needs root, ip and tc.

    with Network(2, rate="100mbit", delay=0.005) as network:
        subprocess.run(network.on(0, ["ping", "-c1", network.address(1)]))
        network.cut(1)  # as if its cable were pulled

A keeper, a process of its own, makes the namespaces, and removes them with all that runs
in them when its standard input ends: with the block, or however this process ends. What a
keeper that was killed left behind is removed by the next one.
"""

import collections
import contextlib
import ctypes
import fcntl
import json
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import sys
import time

_PREFIX = "hrl"
# Of linux/if_tun.h and linux/sched.h.
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x2, 0x1000, 0x4000
_TUN_F_CSUM, _TUN_F_TSO4 = 0x1, 0x2
_CLONE_NEWNET = 0x40000000
# What stands before a frame with IFF_VNET_HDR: how it is cut, and its checksum.
_VNET_HEADER = 10
_LONGEST_FRAME = 70_000
# As much leaves a link at once after a pause; one segment that the kernel cuts late fits.
_BURST = "128kb"
# How long a full queue in front of a link is.
_QUEUE = "50ms"


def missing():
    """What this machine lacks for namespaces, None where there is all."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            return f"network namespaces need the program {program} (iproute2)"
    try:
        with Network(1, rate="1gbit"):
            return None
    except RuntimeError as e:
        return f"network namespaces: {e}"


def missing_for_delay():
    """The same for links with a delay or losses."""
    if not os.path.exists("/dev/net/tun"):
        return "links with a delay need /dev/net/tun"
    return missing()


class Network:
    """Namespaces of so many nodes, each behind a link of that rate each way (tc's
    text), seconds of delay from node to node, and a share of frames that are lost."""

    def __init__(self, nodes, rate=None, delay=0.0, loss=0.0):
        self._wanted = {"nodes": nodes, "rate": rate, "delay": delay, "loss": loss}
        self.name = None

    def __enter__(self):
        self._keeper = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for this process alone
        )
        self.name = f"{_PREFIX}{self._keeper.pid}"
        self._keeper.stdin.write(json.dumps(self._wanted) + "\n")
        self._keeper.stdin.flush()
        said = self._keeper.stdout.readline().strip()
        if said != "ready":
            self.__exit__()
            raise RuntimeError(said or "the keeper ended")
        return self

    def __exit__(self, *unused):
        self._keeper.stdin.close()
        self._keeper.wait()
        self._keeper.stdout.close()

    def address(self, node):
        return address_of(node)

    def on(self, node, command):
        """The command that runs a command on a node."""
        return ["ip", "netns", "exec", _node(self.name, node), *command]

    def cut(self, node):
        """Takes a node's link away, as a pulled cable does: nobody is told."""
        _run("ip", "-n", _switch(self.name), "link", "set", f"p{node}", "down")

    def mend(self, node):
        _run("ip", "-n", _switch(self.name), "link", "set", f"p{node}", "up")


def address_of(node):
    return f"10.97.0.{node + 1}"


def _node(name, node):
    return f"{name}n{node}"


def _switch(name):
    return f"{name}sw"


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


# --- the keeper ---


def _make(name, nodes, rate, forwards):
    """All nodes on one bridge of the switch, or each on one of its own beside the TAP
    device that frames are forwarded by."""
    switch = _switch(name)
    _run("ip", "netns", "add", switch)
    for i in range(1 if not forwards else nodes):
        bridge = ("link", "add", f"b{i}", "type", "bridge", "mcast_snooping", "0")
        _run("ip", "-n", switch, *bridge)
        _run("ip", "-n", switch, "link", "set", f"b{i}", "up")
    for i in range(nodes):
        node = _node(name, i)
        _run("ip", "netns", "add", node)
        ends = ("eth0", "netns", node, "type", "veth")
        _run("ip", "link", "add", *ends, "peer", "name", f"p{i}", "netns", switch)
        _run("ip", "-n", node, "addr", "add", address_of(i) + "/24", "dev", "eth0")
        bridge = f"b{i if forwards else 0}"
        _run("ip", "-n", switch, "link", "set", f"p{i}", "master", bridge, "up")
        for device in ("lo", "eth0"):
            _run("ip", "-n", node, "link", "set", device, "up")
        for where, device in ((node, "eth0"), (switch, f"p{i}")):
            if rate:
                shape = ("rate", rate, "burst", _BURST, "latency", _QUEUE)
                at = ("qdisc", "add", "dev", device, "root", "tbf")
                _run("tc", "-n", where, *at, *shape)


def _tap(name, i):
    """A TAP device of the switch's, on the bridge of a node; whole segments go through,
    which are ten times fewer than frames of the wire."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR
    fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", f"t{i}".encode(), flags))
    fcntl.ioctl(tap, _TUNSETOFFLOAD, _TUN_F_CSUM | _TUN_F_TSO4)
    link = ("link", "set", f"t{i}", "master", f"b{i}", "txqueuelen", "10000", "up")
    _run("ip", "-n", _switch(name), *link)
    return tap


def _enter(namespace):
    with open(f"/run/netns/{namespace}", encoding="utf-8") as file:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(file.fileno(), _CLONE_NEWNET) != 0:
            raise RuntimeError(f"setns: {os.strerror(ctypes.get_errno())}")


def _forward(taps, delay, loss):
    """A switch between TAP devices, until standard input ends."""
    draw = random.Random(1)
    behind = {}  # by MAC address
    late = collections.deque()  # (when, from, frame); the delay of all is the same
    ends = False
    while not ends:
        wait = max(late[0][0] - time.monotonic(), 0) if late else None
        ready, _, _ = select.select([0, *taps], [], [], wait)
        now = time.monotonic()
        for tap in ready:
            if tap == 0:
                ends = True
                continue
            for _ in range(64):
                try:
                    frame = os.read(tap, _LONGEST_FRAME)
                except BlockingIOError:
                    break
                if not loss or draw.random() >= loss:
                    late.append((now + delay, tap, frame))
        while late and late[0][0] <= now:
            _, source, frame = late.popleft()
            to = frame[_VNET_HEADER : _VNET_HEADER + 6]
            behind[frame[_VNET_HEADER + 6 : _VNET_HEADER + 12]] = source
            known = behind.get(to)
            for tap in taps if known is None else [known]:
                if tap != source:
                    # What a device cannot take, as one that is down, is lost.
                    with contextlib.suppress(OSError):
                        os.write(tap, frame)


def _remove(name):
    for namespace in _run("ip", "netns", "list").split("\n"):
        if not namespace.startswith((f"{name}n", f"{name}sw")):
            continue
        namespace = namespace.split()[0]
        for process in _run("ip", "netns", "pids", namespace).split():
            # The keeper is in one itself.
            if int(process) != os.getpid():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
        _run("ip", "netns", "del", namespace)


def _remove_those_left():
    for namespace in _run("ip", "netns", "list").split("\n"):
        keeper = namespace.removeprefix(_PREFIX).split("n")[0].split("sw")[0]
        if namespace.startswith(_PREFIX) and keeper.isdigit():
            if not os.path.exists(f"/proc/{keeper}"):
                _remove(f"{_PREFIX}{keeper}")


def _keep():
    wanted = json.loads(sys.stdin.readline())
    name = f"{_PREFIX}{os.getpid()}"
    forwards = bool(wanted["delay"] or wanted["loss"])
    try:
        _remove_those_left()
        _make(name, wanted["nodes"], wanted["rate"], forwards)
        taps = []
        if forwards:
            with contextlib.suppress(PermissionError):  # where it may not, it is slower
                os.nice(-10)
            _enter(_switch(name))
            taps = [_tap(name, i) for i in range(wanted["nodes"])]
        print("ready", flush=True)
        _forward(taps, wanted["delay"], wanted["loss"])
    except (RuntimeError, OSError) as e:
        print(e, flush=True)
    finally:
        _remove(name)


if __name__ == "__main__":
    _keep()
