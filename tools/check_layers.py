"""Checks every #include between rooms against tools/layers.txt.

A room (folder of src/) may include itself and rooms of lower floors. Headers
of the lowest floors name no heavy library. Public headers include public
headers only. Tests (_test.cc) and fuzzers link everything and are free.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)


def read_table(path):
    """Returns ({room: floor}, {setting: [words]})."""
    floors, settings = {}, {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] in ("lean_below", "heavy", "public_free"):
                settings[words[0]] = words[1:]
            else:
                floors[words[0]] = int(words[1])
    return floors, settings


def sources(folder):
    for path, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in sorted(names):
            if name.endswith((".h", ".cc", ".cu", ".inc")):
                yield os.path.relpath(os.path.join(path, name), ROOT)


def room_of(include, floors):
    """The room an include path leads to, None for what is outside."""
    first = include.split("/")[0]
    if include.startswith(("tensorflow/core/", "tensorflow/python/", "xla/tsl/")):
        return "proto"
    return first if first in floors else None


def check_room_file(path, includes, floors, settings):
    room = path.split("/")[1]
    if room not in floors:
        yield f"{path}: {room} is not a room of tools/layers.txt"
        return
    lean = path.endswith(".h") and floors[room] < int(settings["lean_below"][0])
    for include in includes:
        target = room_of(include, floors)
        if target and target != room and floors[target] >= floors[room]:
            yield (
                f"{path}: includes {include}, but {target} is on floor "
                f"{floors[target]} and {room} on {floors[room]}"
            )
        if include.startswith("headrace/") and include not in settings["public_free"]:
            if floors[room] < floors["cc"]:
                yield f"{path}: includes the public {include}"
        if lean and path != "src/base/pch.h":
            if any(word in include for word in settings["heavy"]):
                yield f"{path}: a header of a low floor includes {include}"


def check_public_file(path, includes, floors):
    for include in includes:
        if room_of(include, floors):
            yield f"{path}: a public header includes {include} of src/"


def main():
    floors, settings = read_table(os.path.join(ROOT, "tools", "layers.txt"))
    faults, count = [], 0
    for folder in ("src", "include"):
        for path in sources(folder):
            if path.endswith(("_test.cc", "_fuzz.cc")):
                continue
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                includes = INCLUDE.findall(file.read())
            count += len(includes)
            if folder == "src":
                faults += check_room_file(path, includes, floors, settings)
            else:
                faults += check_public_file(path, includes, floors)
    for fault in faults:
        print(fault)
    print(f"layers: {count} includes, {len(faults)} against the floors")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
