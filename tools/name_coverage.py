"""Which of TensorFlow's public names are there, and which take other parameters.

Usage: PYTHONPATH=python python tools/name_coverage.py [--write] [--show FAMILY] [--list PYTHON]

tests/golden/surface/upstream/v2.txt and v1.txt hold the public names of TensorFlow 2.21,
a line each: "NAME(parameters)", or "NAME" of what is no function or class (--list writes
them anew with a Python that has TensorFlow and tf_keras; tf.keras is Keras 2's). Families
are the parts behind "tf." of names with more than one. --show prints what a family misses,
and the parameters of a name here and there where they differ; --write puts the tables into
docs/coverage.md, between their two marks.
"""

import argparse
import collections
import inspect
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "tests", "golden", "surface", "upstream")
COVERAGE = os.path.join(ROOT, "docs", "coverage.md")
BEGIN = "<!-- names: tools/name_coverage.py --write -->\n"
END = "<!-- end of names -->\n"
# Families of which names may be missing because of what they are for.
REASONS = {
    "tpu": "there is no TPU",
    "lite": "models are not converted to TensorFlow Lite",
    "mlir": "there is no MLIR",
    "distribute": "there are no servers of functions (rpc)",
}
LISTING = """
import inspect, sys, types
import tensorflow as tf

OURS = ("tensorflow._api", "tensorflow.keras", "tf_keras.api")

def walk(space, prefix, inside, out):
    for name in sorted(n for n in dir(space) if not n.startswith("_")):
        try:
            value = getattr(space, name)
        except Exception:
            continue
        if isinstance(value, types.ModuleType):
            if value.__name__.startswith(OURS) and id(value) not in inside:
                if prefix == "tf" and name == "compat":
                    continue
                walk(value, f"{prefix}.{name}", inside | {id(value)}, out)
            continue
        try:
            text = str(inspect.signature(value)) if callable(value) else ""
        except (TypeError, ValueError):
            text = "" 
        out.append(f"{prefix}.{name}" + "".join(text.split()))

for space, prefix, path in ((tf, "tf", sys.argv[1]), (tf.compat.v1, "tf.compat.v1", sys.argv[2])):
    lines = []
    walk(space, prefix, frozenset(), lines)
    with open(path, "w") as file:
        file.writelines(f"{line}\\n" for line in sorted(set(lines)) if ".compat.v1.compat." not in line)
"""


def upstream(version):
    """{name: parameters} of "v2" or "v1"."""
    names = {}
    with open(os.path.join(FOLDER, f"{version}.txt"), encoding="utf-8") as file:
        for line in file.read().splitlines():
            name, mark, rest = line.partition("(")
            names[name] = mark + rest
    return names


def family(name):
    parts = name.removeprefix("tf.compat.v1.").removeprefix("tf.").split(".")
    return parts[0] if len(parts) > 1 else "(top)"


def found(tf, name):
    """The object of a name, and whether there is one."""
    value = tf
    try:
        for part in name.split(".")[1:]:
            value = getattr(value, part)
    except (AttributeError, ImportError):
        return None, False
    return value, True


def parameters(value):
    try:
        text = str(inspect.signature(value)) if callable(value) else ""
    except (TypeError, ValueError):
        text = ""
    return "".join(text.split())


def shape(text):
    """What calls see of parameters: names, order, defaults; no annotations."""
    if not text.startswith("("):
        return None
    depth, item, items = 0, "", []
    for c in text[1 : text.rindex(")")]:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            items.append(item)
            item = ""
        else:
            item += c
    items.append(item)
    out = []
    for item in items:
        name, _, rest = item.partition(":")
        if "=" in name:
            name, _, default = item.partition("=")
        else:
            default = rest.rpartition("=")[2] if "=" in rest else ""
        if "0x" in default or "<" in default:
            default = "object"
        if name:
            out.append((name, default))
    return out


def compare(tf, version):
    """(missing names by family, count by family, [(name, theirs, ours)])."""
    missing, count, differ = (
        collections.defaultdict(list),
        collections.Counter(),
        [],
    )
    for name, theirs in upstream(version).items():
        count[family(name)] += 1
        value, there = found(tf, name)
        if not there:
            missing[family(name)].append(name)
            continue
        ours = parameters(value)
        # (Raw ops take keywords alone, whatever their wrappers say.)
        if family(name) == "raw_ops" or not (theirs and ours):
            continue
        if shape(theirs) != shape(ours):
            differ.append((name, theirs, ours))
    return missing, count, differ


def table(tf):
    lines = ["", "## Public names", ""]
    for version, of in (("v2", "`tf`"), ("v1", "`tf.compat.v1`")):
        missing, count, differ = compare(tf, version)
        absent = sum(map(len, missing.values()))
        total = sum(count.values())
        lines += [
            f"Of the {total:,} public names of {of} in TensorFlow 2.21 (`tf.keras` is "
            f"Keras 2's) {total - absent:,} are there, {len(differ)} of them with other "
            "parameters. The others, by family:",
            "",
            "| family | there | of | why | missing |",
            "|---|---|---|---|---|",
        ]
        for name in sorted(missing, key=lambda f: (-len(missing[f]), f)):
            gone = [n.split(".")[-1] for n in missing[name]]
            what = ", ".join(gone) if name != "raw_ops" else "below, with reasons"
            why = REASONS.get(name, "")
            lines.append(
                f"| {name} | {count[name] - len(gone)} | {count[name]} | {why} | {what} |"
            )
        lines.append("")
    return "\n".join(lines)


def write(text):
    with open(COVERAGE, encoding="utf-8") as file:
        page = file.read()
    if BEGIN not in page:
        page = page.rstrip("\n") + "\n\n" + BEGIN + END
    head, _, rest = page.partition(BEGIN)
    with open(COVERAGE, "w", encoding="utf-8") as file:
        file.write(head + BEGIN + text + END + rest.partition(END)[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--show", metavar="FAMILY")
    parser.add_argument("--list", metavar="PYTHON")
    options = parser.parse_args()
    if options.list:
        os.makedirs(FOLDER, exist_ok=True)
        paths = [os.path.join(FOLDER, f"{v}.txt") for v in ("v2", "v1")]
        env = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
        subprocess.run([options.list, "-c", LISTING, *paths], check=True, env=env)
        return 0
    import headrace as tf

    if options.write:
        write(table(tf))
        return 0
    for version in ("v2", "v1"):
        missing, count, differ = compare(tf, version)
        print(
            f"{version}: {sum(count.values()) - sum(map(len, missing.values()))} of "
            f"{sum(count.values())}, {len(differ)} with other parameters"
        )
        for name in sorted(missing, key=lambda f: -len(missing[f])):
            if options.show in (None, name):
                print(f"  {name}: {len(missing[name])} of {count[name]} missing")
            if options.show == name:
                print("   ", " ".join(missing[name]))
        for name, theirs, ours in differ:
            if options.show == family(name):
                print(f"  {name}\n    there {theirs}\n    here  {ours}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
