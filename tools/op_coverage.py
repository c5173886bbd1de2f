"""Which of TensorFlow's raw ops are there, and why the others are not.

Usage: PYTHONPATH=python python tools/op_coverage.py [--write] [--list PYTHON]

tests/golden/ops/upstream_ops.txt holds the names of TensorFlow's ops (those that
dir(tf.raw_ops) names; --list writes it anew with a Python that has TensorFlow). An op
of it that is not there has a row, with a mark and the reason, in src/op/absent_ops.cc,
which errors about it quote. --write puts the table of these rows into
docs/coverage.md, between its two marks. The status is 1 where an op has neither a
definition nor a row, or both.
"""

import argparse
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAMES = os.path.join(ROOT, "tests", "golden", "ops", "upstream_ops.txt")
COVERAGE = os.path.join(ROOT, "docs", "coverage.md")
BEGIN = "<!-- ops: tools/op_coverage.py --write -->\n"
END = "<!-- end of ops -->\n"
LISTING = """
import tensorflow as tf
print("\\n".join(n for n in dir(tf.raw_ops) if n[0].isupper()))
"""


def upstream_names(path=NAMES):
    with open(path, encoding="utf-8") as file:
        return file.read().split()


def mistakes(upstream, registered, absent):
    """Sentences about names that have no row, or one too many."""
    rows = [name for _, _, names in absent for name in names.split()]
    found = [
        f"{n} has neither an op nor a row"
        for n in sorted(set(upstream) - set(registered) - set(rows))
    ]
    found += [f"{n} has an op and a row" for n in sorted(set(rows) & set(registered))]
    found += [
        f"{n} has a row and is no op of TensorFlow"
        for n in sorted(set(rows) - set(upstream))
    ]
    found += [
        f"{n} has two rows" for n in sorted({n for n in rows if rows.count(n) > 1})
    ]
    return found


def graph_only():
    """The ops that only graphs hold, as in TensorFlow's package for CPUs: it has no
    kernel of them either."""
    sys.path.append(os.path.join(ROOT, "python", "tests", "ops"))
    import rows

    return rows.GRAPH_ONLY


def table(upstream, registered, absent):
    """The part of docs/coverage.md."""
    there = len(set(upstream) & set(registered))
    held = len(set(graph_only()) & set(registered))
    lines = [
        "",
        "## Ops",
        "",
        f"Of the {len(upstream):,} ops that `tf.raw_ops` of TensorFlow 2.21 names, "
        f"{there:,} are there; {held} of them",
        "are held by graphs alone, as in TensorFlow's own package for CPUs: no kernel "
        "runs them. The others",
        "are refused by name with these reasons, at import, in graphs and as "
        "`tf.raw_ops.NAME`:",
        "",
        "| mark | ops | why | names |",
        "|---|---|---|---|",
    ]
    for mark, why, names in sorted(absent, key=lambda row: (row[0], -len(row[2]))):
        every = names.split()
        lines.append(f"| {mark} | {len(every)} | {why} | {', '.join(every)} |")
    return "\n".join(lines) + "\n"


def write(text):
    with open(COVERAGE, encoding="utf-8") as file:
        page = file.read()
    if BEGIN not in page:
        page = page.rstrip("\n") + "\n\n" + BEGIN + END
    head, _, rest = page.partition(BEGIN)
    with open(COVERAGE, "w", encoding="utf-8") as file:
        file.write(head + BEGIN + text + END + rest.partition(END)[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", metavar="PYTHON")
    args = parser.parse_args()
    if args.list:
        names = subprocess.run(
            [args.list, "-c", LISTING], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        with open(NAMES, "w", encoding="utf-8") as file:
            file.write(names)
    from headrace._load import _headrace

    upstream, registered = upstream_names(), _headrace.op_names()
    absent = _headrace.absent_ops()
    found = mistakes(upstream, registered, absent)
    for sentence in found:
        print("op_coverage:", sentence)
    there = len(set(upstream) & set(registered))
    held = len(set(graph_only()) & set(registered))
    print(
        f"op_coverage: {there} of {len(upstream)} ops are there, {held} in graphs alone"
    )
    if args.write:
        write(table(upstream, registered, absent))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
