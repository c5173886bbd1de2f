"""tf.load_op_library and tf.load_library: ops and kernels of a user's own.

A library defines its ops by the C functions of tensorflow/c/ops.h and
tensorflow/c/kernels.h, in a constructor that runs when it is loaded.
"""

import errno
import os
import re
import sys
from types import ModuleType

from headrace._load import _headrace
from headrace.framework.support import protos


def load_op_library(library_filename):
    """Loads a library of ops and returns a module with a function for each.

    A library is loaded once, and stays; its ops are known to graphs, functions and
    SavedModels from then on. The module is the same each time.

    Args:
      library_filename: A path, or a name that the system's loader finds.

    Returns:
      A module: `zero_out` (and `ZeroOut`) for an op ZeroOut, which take its inputs and
      attributes by place or by name; `OP_LIST`, an OpList of what it defines;
      `LIB_HANDLE`, what the system's loader calls it.

    Raises:
      tf.errors.NotFoundError: It cannot be loaded, with the loader's words.
    """
    handle, ops, op_list = _headrace.load_op_library(os.fspath(library_filename))
    name = f"headrace_op_library_{handle:x}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name, f"The ops of {os.fspath(library_filename)}.")
    for op, function in ops:
        made = _headrace.op_by_place(op)
        setattr(module, function, made)
        setattr(module, op, made)
    module.LIB_HANDLE = handle
    module.OP_LIST = protos.message("tensorflow.OpList").FromString(op_list)
    sys.modules[name] = module
    return module


def load_library(library_location):
    """Loads a library of ops or kernels, or all that lie in a folder.

    Args:
      library_location: A path. Of a folder every file is loaded whose name ends in .so,
        or in .so and numbers.

    Raises:
      OSError: There is nothing of that name.
      tf.errors.NotFoundError: One cannot be loaded, with the loader's words.
    """
    location = os.fspath(library_location)
    if not os.path.exists(location):
        text = "The file or folder to load kernel libraries from does not exist."
        raise OSError(errno.ENOENT, text, location)
    libraries = [location]
    if os.path.isdir(location):
        files = sorted(os.listdir(location))
        libraries = [os.path.join(location, f) for f in files if _is_library(f)]
    for library in libraries:
        _headrace.load_op_library(library)


def _is_library(name):
    return re.search(r"\.so(\.\d+)*$", name) is not None
