"""Programs run in a process of their own, under limits of the system."""

import contextlib
import os
import resource
import subprocess
import sys
import textwrap

import pytest

_HEAD = """
import os, resource, sys, threading, time
import numpy as np
import headrace as tf
tf.constant  # loads the engine

def room(megabytes):
    "Allows so much more address space than there is."
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    limit = used + int(megabytes * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))

def no_more_threads():
    "Allows no thread more; root is let pass by the system, so nobody does it."
    if os.geteuid() == 0:
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))

def outcome(call):
    "The value, or the class of the error."
    try:
        return call()
    except Exception as e:
        return type(e).__name__
"""


def run(program, *arguments, **how):
    """What the program printed, which must end with code 0."""
    result = run_any(program, *arguments, **how)
    assert result.returncode == 0, (result.returncode, result.stderr[-3000:])
    return result.stdout


def run_any(program, *arguments, before=None, timeout=60, within=(), **environment):
    """The ended process; its program follows the helpers above. `before` is called in
    the child; `within` is a command that starts the program."""
    code = _HEAD + textwrap.dedent(program)
    env = {k: v for k, v in (os.environ | environment).items() if v is not None}
    return subprocess.run(
        [*within, sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        preexec_fn=before,
        env=env,
        check=False,
    )


@contextlib.contextmanager
def cgroup(controller, **limits):
    """A control group; gives what puts a process into it. Skips where none can be
    made. `limits` are its files, of the old kind or the new."""
    v1 = f"/sys/fs/cgroup/{controller}"
    old = os.path.isdir(v1)
    root = v1 if old else "/sys/fs/cgroup"
    folder = f"{root}/headrace_test_{os.getpid()}"
    names = {
        "memory": ("memory.limit_in_bytes", "memory.max"),
        "pids": ("pids.max", "pids.max"),
    }
    try:
        if not old:
            with open(f"{root}/cgroup.subtree_control", "w") as file:
                file.write(f"+{controller}")
        os.mkdir(folder)
    except OSError as e:
        pytest.skip(f"no {controller} control group can be made here: {e}")
    try:
        try:
            name = names[controller][not old]
            for value in limits.values():
                with open(f"{folder}/{name}", "w") as file:
                    file.write(str(value))
        except OSError as e:
            pytest.skip(f"a {controller} control group has no limit here: {e}")

        def enter():
            with open(f"{folder}/cgroup.procs", "w") as file:
                file.write(str(os.getpid()))

        yield enter
    finally:
        os.rmdir(folder)


_READ_ONLY = """
while read -r _ place kind _; do
  case "$kind" in
    proc|sysfs|cgroup*|devpts|mqueue) ;;
    *) mount -o remount,bind,ro "$place" || [ "$place" != / ] || exit 9 ;;
  esac
done < /proc/mounts 2> /dev/null
exec "$@"
"""


def read_only():
    """A command that starts another where nothing can be written: in a mount namespace
    whose file systems are read-only. Skips where none can be made."""
    command = ["unshare", "--mount", "bash", "-c", _READ_ONLY, "bash"]
    place = os.path.dirname(os.path.abspath(__file__))
    try:
        seen = subprocess.run(
            [*command, "touch", f"{place}/written_{os.getpid()}"],
            capture_output=True,
            text=True,
        )
    except OSError as e:
        pytest.skip(f"no mount namespace can be made here: {e}")
    if "Read-only file system" not in seen.stderr:
        pytest.skip(f"no read-only mount can be made here: {seen.stderr}")
    return command


def file_limit(n):
    """Open files a process may have."""

    def before():
        resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))

    return before
