"""TensorFlow's own tests, run against this tree.

Usage: tools/upstream.py [--groups a,b] [--rotate N] [--write] [--results DIR]

../shared/upstream holds a selection of TensorFlow's tests and a harness, which runs
the groups that its selections say to be of TensorFlow 1 with --v1;
tests/upstream_required.txt names the groups of it that must hold, each with the
share, in percent of what TensorFlow 2.21 itself passes, that is required, and
behind a minus files that are not counted; "soak" marks groups that take many minutes.
--rotate N runs the Nth of the other groups, counted round: with another N each time
(a count of commits) all have their turn. --write puts the table into
docs/coverage.md. A tree without ../shared compares nothing and passes.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HARNESS = os.path.join(ROOT, "..", "shared", "upstream")
REQUIRED = os.path.join(ROOT, "tests", "upstream_required.txt")
COVERAGE = os.path.join(ROOT, "docs", "coverage.md")
# The harness's limits under which TensorFlow's own results were taken.
LIMITS = ["--mem-mb", "24000", "--test-seconds", "30", "--file-seconds", "900"]
# A line of compare.py --by-file: how many passed, of how many, which file.
ROW = re.compile(r"^ *(\d+) of +(\d+) +[\d.]+% +v[12] (\S+)", re.M)


def read_required():
    """{group: (share in percent, parts of the names of files not counted, long)}"""
    rows = {}
    with open(REQUIRED, encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if words:
                left_out = [w[1:] for w in words[2:] if w.startswith("-")]
                rows[words[0]] = float(words[1]), left_out, "soak" in words
    return rows


def first_version_groups():
    """The groups that are run after disable_v2_behavior()."""
    with open(os.path.join(HARNESS, "selections.json"), encoding="utf-8") as file:
        return json.load(file).get("_v1", [])


def run_group(group, left_out, results):
    """The (passed, of) of one group; its results are kept as a file."""
    out = os.path.join(results, group + ".json")
    log = os.path.join(results, group + ".log")
    with open(log, "w", encoding="utf-8") as file:
        subprocess.run(
            [
                sys.executable,
                os.path.join(HARNESS, "run.py"),
                "--module",
                "headrace",
                "--pythonpath",
                os.path.join(ROOT, "python"),
                "--select",
                group,
                "--out",
                out,
                "-j",
                str(os.cpu_count()),
                *(["--v1"] if group in first_version_groups() else []),
                *LIMITS,
            ],
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    table = subprocess.run(
        [sys.executable, os.path.join(HARNESS, "compare.py"), "--by-file", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout
    passed = of = 0
    for row in ROW.finditer(table):
        if not any(part in row[3] for part in left_out):
            passed += int(row[1])
            of += int(row[2])
    if of == 0:
        raise SystemExit(f"upstream: no result for {group}:\n{table[-2000:]}")
    return passed, of


def _below_table(page):
    """What comes behind the first table of the page."""
    lines = page.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.startswith("|"))
    while at < len(lines) and lines[at].startswith("|"):
        at += 1
    return "".join(lines[at:])


def write_coverage(counts, required):
    lines = [
        "# What TensorFlow's own tests say",
        "",
        "Tests of TensorFlow 2.21 that the real wheel passes and that call its public",
        "API, run against Headrace by `make soak` (`tools/upstream.py --write` makes",
        "this table). Tests that need what is not there yet (see the roadmap) count as",
        "not passed.",
        "",
        "| group | passed | of | share | required |",
        "|---|---|---|---|---|",
    ]
    for group, (passed, of) in counts.items():
        lines.append(
            f"| {group} | {passed:,} | {of:,} | {100 * passed / of:.1f}% "
            f"| {required[group][0]:g}% |"
        )
    with open(COVERAGE, encoding="utf-8") as file:
        notes = _below_table(file.read())  # what is said below the table stays
    with open(COVERAGE, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n" + notes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", default="")
    parser.add_argument("--rotate", type=int)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--results", default="")
    args = parser.parse_args()
    required = read_required()
    groups = args.groups.split(",") if args.groups else list(required)
    if args.rotate is not None:
        groups = [g for g in groups if not required[g][2]]
        groups = [groups[args.rotate % len(groups)]]
    if not os.path.isdir(HARNESS):
        print("upstream: nothing to run here")
        return 0
    results = args.results or tempfile.mkdtemp(prefix="upstream-")
    os.makedirs(results, exist_ok=True)
    counts, short = {}, []
    for group in groups:
        least, left_out, _ = required[group]
        passed, of = counts[group] = run_group(group, left_out, results)
        share = 100 * passed / of
        print(
            f"upstream: {group}: {passed} of {of} passed ({share:.1f}%), "
            f"{least:g}% required",
            flush=True,
        )
        if share < least:
            short.append(group)
    print(f"upstream: results in {results}")
    if args.write:
        write_coverage(counts, required)
    if short:
        print("upstream: too few pass in", ", ".join(short))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
