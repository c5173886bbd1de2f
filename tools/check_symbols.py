"""Fails when a built library exports a symbol that is not ours.

Usage: python3 tools/check_symbols.py LIBRARY...
A shared library may export C++ names of namespace headrace and the C ABI
(TF_*, TFE_*, HR_*), the C library the latter alone, the library of gRPC's transport its
entry alone; a Python module what a shared library may, and its PyInit_ function.
"""

import os
import re
import subprocess
import sys

LIBRARY = re.compile(
    r"((typeinfo|typeinfo name|vtable|VTT|guard variable) for )?headrace::"
    r"|[^(]* headrace::|(TFE?|HR)_[A-Z]"
)
C_LIBRARY = re.compile(r"(TFE?|HR)_[A-Z]")
GRPC_LIBRARY = re.compile(r"HeadraceGrpcTransport$")
MODULE = re.compile(LIBRARY.pattern + r"|PyInit_\w+$")


def exported(path):
    text = subprocess.run(
        ["nm", "-D", "-C", "--defined-only", path],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for line in text.splitlines():
        match = re.match(r"[0-9a-f]* +(\w) (.*)", line)
        if match and match.group(1) != "A":
            yield match.group(2)


def main(paths):
    failed = False
    for path in paths:
        module = not os.path.basename(path).startswith("lib")
        c_library = os.path.basename(path).startswith("libheadrace_c.")
        names = list(exported(path))
        ours = MODULE if module else C_LIBRARY if c_library else LIBRARY
        if os.path.basename(path).startswith("libheadrace_grpc."):
            ours = GRPC_LIBRARY
        alien = [name for name in names if not ours.match(name)]
        print(f"{os.path.basename(path)}: {len(names)} symbols exported")
        for name in alien[:20]:
            print(f"  not ours: {name}")
        if len(alien) > 20:
            print(f"  and {len(alien) - 20} more")
        failed |= bool(alien) or not names
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
