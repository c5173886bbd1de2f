"""Loads the extension module; imported before anything that names it.

TensorFlow puts the symbols of its own protobuf, oneDNN and RE2 where every
library loaded later looks first. The module must meet its own copies instead,
so it is loaded with RTLD_DEEPBIND. Not where LD_PRELOAD replaces parts of the
C library (an allocator, a sanitizer): deep binding would pass those by.
"""

import importlib
import os
import sys
from types import ModuleType

_flags = sys.getdlopenflags()
if not os.environ.get("LD_PRELOAD") and hasattr(os, "RTLD_DEEPBIND"):
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)
try:
    # (`from headrace import` would first ask the package, which asks for this module.)
    _headrace = importlib.import_module("headrace._headrace")
finally:
    sys.setdlopenflags(_flags)


raw = ModuleType("raw", "Every registered op as a function: raw.Roll(x, shift, axis).")


def _op(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'raw' has no attribute '{name}'")
    function = _headrace.op_by_place(name)
    setattr(raw, name, function)
    return function


raw.__getattr__ = _op
