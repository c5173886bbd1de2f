"""Checks every #include and every import between rooms against tools/layers.txt.

A room (folder of src/) may include itself and rooms of lower floors. Headers
of the lowest floors name no heavy library. Public headers include public
headers only. Folders do not include each other, roundabout or not; the header
of everything, headrace.h, stands above all. Tests (_test.cc) and fuzzers link
everything and are free.

A room of Python (package or top-level module of python/headrace/) may import
itself and rooms of lower floors; the folders of one have no cycles either.
Functions import nothing but what a `door` names. What the `left` rows still
allow may only become less.

The engine's rooms ask no op for its name: see op_names.py.
"""

import collections
import os
import re
import sys

import op_names
import python_layers

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The modules that import what tables say, which no check can tell.
BY_TABLES = ("_names", "_moved")
FACADE = "include/headrace/headrace.h"
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)


def read_table(path):
    """Returns ({room: floor}, {setting: [words]}), of C++."""
    floors, settings = {}, {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] in ("lean_below", "heavy", "broken", "public_free"):
                settings[words[0]] = words[1:]
            elif words[0] not in ("python", "door", "left"):
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
        if any(word in include for word in settings["broken"]):
            yield f"{path}: includes {include}; base/hash_map.h has what is whole"
        target = room_of(include, floors)
        if target and target != room and floors[target] >= floors[room]:
            yield (
                f"{path}: includes {include}, but {target} is on floor "
                f"{floors[target]} and {room} on {floors[room]}"
            )
        # Messages of our own protocols have that folder, too, and are not public.
        is_public = include.startswith("headrace/") and not include.endswith(".pb.h")
        if is_public and include not in settings["public_free"]:
            if floors[room] < floors["cc"]:
                yield f"{path}: includes the public {include}"
        if lean and path != "src/base/pch.h":
            if any(word in include for word in settings["heavy"]):
                yield f"{path}: a header of a low floor includes {include}"


def check_public_file(path, includes, floors):
    for include in includes:
        if room_of(include, floors):
            yield f"{path}: a public header includes {include} of src/"


def folder_faults(includes_of):
    """`includes_of`: {path of a source: what it includes}."""
    folders = {os.path.dirname(path).split("/", 1)[-1] for path in includes_of}
    below = collections.defaultdict(set)
    for path, includes in includes_of.items():
        if path != FACADE:
            here = os.path.dirname(path).split("/", 1)[-1]
            below[here] |= {os.path.dirname(i) for i in includes} & folders
    for cycle in python_layers.cycles(below):
        yield f"folders include each other: {' '.join(cycle)}"


def read_python_table(path):
    """Returns ({room: floor}, {module: reason}, {what is left: how often})."""
    floors, doors, left = {}, {}, {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            kind, *words = line.split("#")[0].split() or [""]
            if kind == "python":
                floors[words[0]] = int(words[1])
            elif kind == "door":
                doors[words[0]] = " ".join(words[1:])
            elif kind == "left":
                left[tuple(words[:-1])] = int(words[-1])
    return floors, doors, left


def python_faults(root, table):
    """Returns (arrows in all, what is against the table: a text each)."""
    floors, doors, left = read_python_table(table)
    found = collections.defaultdict(list)  # what a `left` row counts: where it is
    faults, count, opened = [], 0, set()
    walked = python_layers.walk(root)
    for cycle in python_layers.folder_cycles(walked):
        found["cycle", *cycle].append(f"folders import each other: {' '.join(cycle)}")
    for module, imports in sorted(walked.items()):
        here = python_layers.room(module)
        name = module or "__init__"
        if here and here not in floors:
            faults.append(f"{name}: {here} is not a room of Python in the table")
            continue
        if here not in BY_TABLES:
            faults += [f"{name}:{line}: {text}" for line, text in imports.faults]
        count += len(imports.arrows)
        for arrow in imports.arrows:
            _follow(arrow, name, here, floors, found)
        for line, other in imports.foreign_inside:
            door = next((d for d in doors if f"{other}.".startswith(d + ".")), None)
            opened.add(door)
            if door is None:
                where = f"{name}:{line} imports {other} inside a function"
                found["inside", here].append(where)
    faults += _idle(doors, opened)
    return count, [*faults, *_over(found, left)]


def _follow(arrow, name, here, floors, found):
    """Adds to `found` what is wrong with an arrow of the room `here`."""
    there = python_layers.room(arrow.target)
    where = f"{name}:{arrow.line} imports {arrow.target or 'the facade'}"
    if arrow.inside:
        found["inside", here].append(f"{where} inside a function")
    if here and there != here and _floor(floors, there) >= floors[here]:
        key = ("upward", here, there or "facade")
        found[key].append(f"{where}, which is not below it")


def _idle(doors, opened):
    for door, reason in doors.items():
        if not reason:
            yield f"door {door} has no reason"
        elif door not in opened:
            yield f"door {door} is used by nobody"


def _floor(floors, room):
    if room == "_headrace":
        return 0
    return floors.get(room, 1000)  # the facade is above all


def _over(found, left):
    """What is more than the `left` rows allow, or less, so that they go down."""
    for key in sorted({*found, *left}):
        count, allowed = len(found[key]), left.get(key, 0)
        if count > allowed:
            yield from found[key]
        if count != allowed and key in left:
            yield f"left {' '.join(key)}: {count}, not the {allowed} of the table"


def main():
    floors, settings = read_table(os.path.join(ROOT, "tools", "layers.txt"))
    faults, includes_of = [], {}
    for folder in ("src", "include"):
        for path in sources(folder):
            if path.endswith(("_test.cc", "_fuzz.cc")):
                continue
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                includes = includes_of[path] = INCLUDE.findall(file.read())
            if folder == "src":
                faults += check_room_file(path, includes, floors, settings)
            else:
                faults += check_public_file(path, includes, floors)
    faults += folder_faults(includes_of)
    python = os.path.join(ROOT, "python", "headrace")
    table = os.path.join(ROOT, "tools", "layers.txt")
    arrows, against = python_faults(python, table)
    faults += against
    emitted, asked = op_names.check(os.path.join(ROOT, "src"))
    faults += asked
    for fault in faults:
        print(fault)
    count = sum(map(len, includes_of.values()))
    print(
        f"layers: {count} includes and {arrows} imports, "
        f"{len(faults) - len(asked)} against the floors"
    )
    print(f"op names: {emitted} in the engine's rooms emit, {len(asked)} ask")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
