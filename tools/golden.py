"""The comparisons with real TensorFlow that must hold.

Usage: .venv/bin/python tools/golden.py
tests/golden_required.txt lists parts as ../shared/golden/check.py prints them,
each with the least number of cases that must pass. A tree without ../shared
compares nothing and passes.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CHECK = os.path.join(ROOT, "..", "shared", "golden", "check.py")
REQUIRED = os.path.join(ROOT, "tests", "golden_required.txt")
# Parts that another part's run counts.
RUN_BY = {
    "op_gradients": "ops",
    "error_text": "text",
    "graphs_pbtxt": "graphs",
    "saved_models_in_session": "saved_models",
}


def read_required():
    rows = {}
    with open(REQUIRED, encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if words:
                rows[words[0]] = int(words[1])
    return rows


def main():
    required = read_required()
    if not os.path.exists(CHECK) or not required:
        print("golden: nothing to compare here")
        return 0
    runs = {RUN_BY.get(part.split("/")[0], part.split("/")[0]) for part in required}
    # check.py ends with 1 when any case fails: the counts are what is judged.
    output = subprocess.run(
        [
            sys.executable,
            CHECK,
            "--module",
            "headrace",
            "--only",
            ",".join(sorted(runs)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ).stdout
    counts = dict(re.findall(r"^(\S+): passed (\d+) of \d+", output, re.M))
    failed = 0
    for part, least in required.items():
        passed = int(counts.get(part, -1))
        failed += passed < least
        print(f"golden: {part}: {passed} passed, {least} required")
    if failed:
        print(output[-4000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
