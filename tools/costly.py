"""Prints the ten costliest files and headers of the last build.

Usage: python3 tools/costly.py [BUILD]
Files: their step in BUILD/.ninja_log (one that ccache had shows as quick). Headers
of ours: how many objects each is compiled into, times its lines with all that
it includes of ours, from `ninja -t deps`.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def slow_steps(build):
    took = {}
    with open(os.path.join(build, ".ninja_log"), encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) >= 4 and fields[3].endswith(".o"):
                took[fields[3]] = int(fields[1]) - int(fields[0])
    return sorted(((ms, name) for name, ms in took.items()), reverse=True)


def header_uses(build):
    text = subprocess.run(
        ["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True
    ).stdout
    uses = {}
    for line in text.splitlines():
        if not line.startswith("    "):
            continue
        path = os.path.normpath(os.path.join(build, line.strip()))
        if path.startswith(ROOT + os.sep) and path.endswith(".h"):
            uses[path] = uses.get(path, 0) + 1
    return uses


def closure(path, seen):
    """Lines of `path` and of every header of ours that it brings in."""
    if path in seen or not os.path.exists(path):
        return 0
    seen.add(path)
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    total = text.count("\n")
    for include in INCLUDE.findall(text):
        for folder in ("src", "include", "build/src/proto"):
            candidate = os.path.join(ROOT, folder, include)
            if os.path.exists(candidate):
                total += closure(candidate, seen)
                break
    return total


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
    print("costliest files (seconds to compile, as last built)")
    for ms, name in slow_steps(build)[:10]:
        print(f"  {ms / 1000:7.2f}  {re.sub(r'CMakeFiles/[^/]+[.]dir/', '', name)}")
    rows = []
    for path, count in header_uses(build).items():
        lines = closure(path, set())
        rows.append((count * lines, count, lines, os.path.relpath(path, ROOT)))
    print("costliest headers (objects x lines with what they include of ours)")
    for _, count, lines, path in sorted(rows, reverse=True)[:10]:
        print(f"  {count:5} x {lines:6}  {path}")


if __name__ == "__main__":
    main()
