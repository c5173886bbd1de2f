"""Prints the size of every room; fails on files, functions and folders that are giants.

No source file over 800 lines, no function over 100 (150 in *_loops.cc, where
tiled kernels live). Functions of C++ are found by their shape: a block that
opens on an unindented (or, in a class, once indented) line ending in `{`.

No folder of the product with more than 25 units that has no rooms below it. A unit
is what one stem names: x.h, x.cc and x_loops.cc, with their x_test.cc and x_fuzz.cc;
tests and fuzzers are no units of their own.
"""

import ast
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE_LIMIT = 800
FUNCTION_LIMIT = 100
KERNEL_LIMIT = 150
FOLDER_LIMIT = 25
SOURCES = (".h", ".cc", ".cu", ".inc", ".py")
PRODUCT = ("src/", "include/", "python/headrace/")
NOT_A_FUNCTION = re.compile(
    r"\s*(inline\s+)?(namespace|class|struct|union|enum|extern)\b"
    r"|\s*template\s*<.*>\s*(class|struct)\b|.*=\s*\{$|.*\w\[\]\s*=.*\{$"
)


def tracked(*patterns):
    text = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [p for p in sorted(text.split()) if os.path.exists(os.path.join(ROOT, p))]


def cc_functions(lines):
    """Yields (line, length) of each block that looks like a function."""
    for indent in ("", "  "):
        start = head = None
        for number, line in enumerate(lines, 1):
            if start is None:
                opens = line.startswith(indent) and line[len(indent) :][:1].strip()
                if opens and line[len(indent)] not in "}#/*":
                    head = number
                if head and line.endswith("{"):
                    text = " ".join(lines[head - 1 : number])
                    if not NOT_A_FUNCTION.match(text) and "(" in text:
                        start = head
                    head = None
                elif line.endswith((";", "}")):
                    head = None
            elif re.match(indent + r"\}", line):
                yield start, number - start + 1
                start = None


def py_functions(text, path):
    for node in ast.walk(ast.parse(text, path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


def room_of(path):
    parts = path.split("/")
    if parts[0] == "src":
        return "/".join(parts[:2]) if len(parts) > 2 else "src"
    if parts[0] == "python":
        return "/".join(parts[:2])
    return parts[0]


def unit_of(path):
    """The folder of a source file and the stem of its unit; None where it has none."""
    folder, name = os.path.split(path)
    stem, kind = os.path.splitext(name)
    if kind not in SOURCES or stem == "__init__" or stem.endswith(("_test", "_fuzz")):
        return None
    return folder, stem.removesuffix("_loops")


def crowded_folders(paths):
    """What is wrong with the folders of these files, a text each."""
    units, with_rooms = collections.defaultdict(set), set()
    for path in paths:
        unit = unit_of(path) if path.startswith(PRODUCT) else None
        if unit:
            units[unit[0]].add(unit[1])
            with_rooms.add(os.path.dirname(unit[0]))
    for folder, stems in sorted(units.items()):
        if len(stems) > FOLDER_LIMIT and folder not in with_rooms:
            yield f"{folder}: {len(stems)} units and no rooms, over {FOLDER_LIMIT}"


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main():
    rooms, faults, sizes, functions = {}, [], [], []
    kinds = ("*.h", "*.cc", "*.cu", "*.inc", "*.py", "*.proto", "*.cmake")
    paths = tracked(*kinds, ":!third_party")
    faults += crowded_folders(paths)
    for path in paths:
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = file.read()
        lines = text.splitlines()
        room = rooms.setdefault(room_of(path), [0, 0])
        room[0] += 1
        room[1] += len(lines)
        if path.endswith((".proto", ".cmake")):
            continue
        sizes.append(len(lines))
        if len(lines) > FILE_LIMIT:
            faults.append(f"{path}: {len(lines)} lines, over {FILE_LIMIT}")
        found = (
            py_functions(text, path) if path.endswith(".py") else cc_functions(lines)
        )
        limit = KERNEL_LIMIT if path.endswith("_loops.cc") else FUNCTION_LIMIT
        for line, length in found:
            functions.append(length)
            if length > limit:
                faults.append(f"{path}:{line}: a function of {length} lines")
    print(f"{'room':24} {'files':>6} {'lines':>7}")
    for name, (files, count) in sorted(rooms.items()):
        print(f"{name:24} {files:6} {count:7}")
    print(
        f"sizes: {len(sizes)} files, median {percentile(sizes, 0.5)} lines, "
        f"95% within {percentile(sizes, 0.95)}; {len(functions)} functions, "
        f"95% within {percentile(functions or [0], 0.95)}"
    )
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
