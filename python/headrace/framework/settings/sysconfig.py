"""tf.sysconfig: what a library of ops is compiled with (tf.load_op_library)."""

import collections
import os

CXX11_ABI_FLAG = 1
CXX_VERSION = 202002
MONOLITHIC_BUILD = 1

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def get_lib():
    """The folder of the library: the package's."""
    return _PACKAGE


def get_include():
    """The folder that tensorflow/c/kernels.h and the others lie in."""
    packed = os.path.join(_PACKAGE, "include")
    if os.path.isdir(packed):
        return packed
    # In a tree of sources.
    return os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "include")


def get_compile_flags():
    """What a compiler of C or C++ is told: where the headers lie."""
    return [f"-I{get_include()}"]


def get_link_flags():
    """What a linker is told: nothing, as tf.load_op_library brings the functions."""
    return []


def get_build_info():
    """What the library was built for, by TensorFlow's keys."""
    return collections.OrderedDict(
        is_cuda_build=False, is_rocm_build=False, is_tensorrt_build=False
    )
