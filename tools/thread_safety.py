"""Has clang check that what a lock guards is touched under it alone.

Usage: python3 tools/thread_safety.py [BUILD]

All of src/ but its tests and vector loops is compiled, without making code, as
BUILD's compile database has it (build/, configured, with its protos made). Only
base/ may name the locks of the standard library, which have no annotations, and
each lock says in an annotation or in a comment of its line what it is for.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The annotated locks are made of the others here.
MADE_HERE = (
    "base/mutex.h",
    "base/fork_mutex.h",
    "base/fork_mutex.cc",
    "base/timed_cond_var.h",
)
PLAIN = re.compile(
    r"\bstd::(\w*mutex|lock_guard|unique_lock|scoped_lock|shared_lock"
    r"|condition_variable\w*)\b"
)
LOCK = re.compile(
    r"^ *(?:static |mutable )*(?:|Recursive|Process|Fork|RecursiveFork)Mutex (\w+)\b.*"
)
# What the compiler that builds is told and clang does not need or know.
DROPPED = re.compile(r"-W|-O|-g|-fpch-preprocess")


def sources():
    for path, _, names in os.walk(os.path.join(ROOT, "src")):
        for name in sorted(names):
            if name.endswith((".h", ".cc")) and not name.endswith("_test.cc"):
                yield os.path.relpath(os.path.join(path, name), ROOT + "/src")


def complaints():
    """What is wrong with the locks by the words alone, and how many there are."""
    found, locks = [], 0
    for name in sources():
        if name in MADE_HERE:
            continue
        with open(os.path.join(ROOT, "src", name), encoding="utf-8") as file:
            text = file.read()
        for i, line in enumerate(text.splitlines(), 1):
            plain = PLAIN.search(line.split("//")[0])
            if plain:
                found.append(f"src/{name}:{i}: {plain[0]}: base/mutex.h has locks")
            lock = LOCK.match(line)
            if not lock:
                continue
            locks += 1
            annotated = re.search(rf"ABSL_\w+\([^;]*\b{lock[1]}\b", text)
            if not (annotated or "ABSL_" in line or "//" in line):
                found.append(f"src/{name}:{i}: what does {lock[1]} guard?")
    return found, locks


def commands(build):
    """{file: (folder, clang's arguments)} of what is built of src/."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        database = json.load(file)
    units = {}
    for entry in database:
        path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        unit = path.startswith(build) and "/unity/" in path
        if "/unity/tensorflow/" in path:  # generated for the protos
            continue
        if not unit and not path.startswith(os.path.join(ROOT, "src", "")):
            continue
        if path.endswith(("_test.cc", "_fuzz.cc", "_loops.cc")):
            continue
        kept, skip = [], False
        for word in shlex.split(entry["command"])[1:]:
            if skip:
                skip = False
            elif word in ("-o", "-include", "-c"):
                skip = word != "-c"
            elif word != entry["file"] and not DROPPED.match(word):
                kept.append(word)
        units[path] = (entry["directory"], kept + [path])
    return units


def check(path, directory, arguments):
    command = ["clang++", "-fsyntax-only", "-Wthread-safety"]
    command += ["-Werror=thread-safety", *arguments]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def names_locks(unit):
    """Whether a unit that clang 14 cannot follow, to which some of C++20 is new, has a
    lock in its files."""
    with open(unit, encoding="utf-8") as file:
        text = file.read()
    for name in re.findall(r'^#include "(.+\.cc)"', text, re.MULTILINE):
        path = os.path.join(ROOT, "src", name)
        with open(path, encoding="utf-8") as file:
            text += file.read()
    return re.search(r"\bMutex|_mutex\b", text) is not None


def main():
    build = os.path.join(ROOT, sys.argv[1] if len(sys.argv) > 1 else "build")
    begin = time.monotonic()
    found, locks = complaints()
    units = commands(build)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda u: check(u[0], *u[1]), units.items())
        for unit, (status, text) in zip(units, results, strict=True):
            if status == 0:
                continue
            if "thread-safety" in text or names_locks(unit):
                found.append(text.rstrip())
            else:
                print(unit, "has no lock, and clang cannot follow it")
    print("\n".join(found))
    took = time.monotonic() - begin
    print(
        f"thread safety: {locks} locks, {len(units)} units, {took:.0f} s, "
        f"{'all as annotated' if not found else 'see above'}"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
