#!/usr/bin/env python3
"""Files of ops and datasets that open files say so: where one in src/ops or src/data
uses base/files, the ops that it defines have kReadsFiles or kWritesFiles (op/reach.h),
or it says why not after "Reach:". A sandbox refuses the files of ops that lack it all
the same, only later and without what would permit them."""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
OPENS = re.compile(r'#include "base/files/')
DEFINES = re.compile(r"\bHR_OP\(|\bOpBuilder b\(")
SAYS = re.compile(r"\bkReadsFiles\b|\bkWritesFiles\b|\bReach: ")


def silent(text):
    """Whether a source that opens files and defines ops does not say that they do."""
    return bool(OPENS.search(text) and DEFINES.search(text) and not SAYS.search(text))


def sources():
    for room in ("ops", "data"):
        for folder, _, names in os.walk(os.path.join(ROOT, "src", room)):
            for name in sorted(names):
                if name.endswith(".cc") and not name.endswith(("_test.cc", "_fuzz.cc")):
                    yield os.path.join(folder, name)


def main():
    faults = []
    for path in sources():
        with open(path, encoding="utf-8") as file:
            if silent(file.read()):
                faults.append(os.path.relpath(path, ROOT))
    for fault in faults:
        print(f"{fault}: opens files, and its ops do not say so (op/reach.h)")
    print(f"reach: {len(faults)} files that do not say what their ops touch")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
