"""headrace loads in a process where others hold the names it is linked by."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys

import pytest

LINKED = re.compile(r"dnnl_|_ZNK?(6google8protobuf|3re2|7leveldb)|_ZN3re2")

IMPORT = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
import headrace
headrace.constant(1)
print("loaded")
"""

BESIDE = """
import importlib, sys
for name in sys.argv[1:]:
    getattr(importlib.import_module(name), "constant", None)  # loads the engine
print("loaded")
"""


def module_path():
    if importlib.util.find_spec("headrace._headrace") is None:
        pytest.skip("the module is not built (HR_PYTHON=OFF)")
    return importlib.import_module("headrace._load")._headrace.__file__


def test_impostors_in_the_global_scope(tmp_path):
    """A library whose every such symbol traps is loaded first, for all to see."""
    listing = subprocess.run(
        ["nm", "-D", "-u", module_path()], check=True, capture_output=True, text=True
    ).stdout
    names = [n for n in re.findall(r"\bU (\w+)", listing) if LINKED.match(n)]
    assert names, "the module is linked to none of its libraries"
    source = tmp_path / "impostor.s"
    source.write_text(
        ".section .note.GNU-stack\n"
        ".text\n" + "".join(f".globl {n}\n{n}:\n" for n in names) + ".byte 0x0f,0x0b\n"
    )
    library = tmp_path / "libimpostor.so"
    subprocess.run(["gcc", "-shared", "-o", library, source], check=True)
    run = subprocess.run(
        [sys.executable, "-c", IMPORT, str(library)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "loaded\n"


@pytest.mark.slow
@pytest.mark.parametrize("other", ["tensorflow", "torch", "google.protobuf"])
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_beside(other, first):
    """Real neighbours, from an interpreter that HEADRACE_PEER_PYTHONS names
    (paths separated by colons) or from ours, where they are installed."""
    package = os.path.dirname(os.path.dirname(module_path()))
    pythons = os.environ.get("HEADRACE_PEER_PYTHONS", sys.executable).split(":")
    for python in pythons:
        has = subprocess.run(
            [python, "-c", f"import importlib.util as u; u.find_spec('{other}').name"],
            capture_output=True,
        )
        if has.returncode == 0:
            break
    else:
        pytest.skip(f"no {other} here")
    names = ["headrace", other] if first else [other, "headrace"]
    run = subprocess.run(
        [python, "-c", BESIDE, *names],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": package},
    )
    assert run.returncode == 0, run.stderr[-2000:]
