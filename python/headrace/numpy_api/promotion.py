"""Which dtype values of several dtypes have together: modes, the table, NumPy's rules."""

import functools
import itertools

import numpy as np

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework import dtypes

MODES = ("off", "legacy", "safe", "all")


class _State:
    """What experimental_enable_numpy_behavior was told last, for all threads."""

    mode = "off"
    prefer_float32 = False


state = _State()

# What two dtypes become in the modes "all" and "safe": letters for the kind, a digit for
# the bytes (bf: bfloat16), w for the weak ones (wi, wl: int32 and int64, wf, wd: float32
# and float64, wc: complex128). A row has what its first dtype gives with those of the
# rows up to its own; "safe" refuses what stands in capitals.
_TABLE = """
b1 b1
u1 u1 u1
u2 u2 u2 u2
u4 u4 u4 u4 u4
u8 u8 u8 u8 u8 u8
i1 i1 I2 I4 I8 WD i1
i2 i2 i2 I4 I8 WD i2 i2
i4 i4 i4 i4 I8 WD i4 i4 i4
i8 i8 i8 i8 i8 WD i8 i8 i8 i8
bf bf bf BF BF BF bf BF BF BF bf
f2 f2 f2 F2 F2 F2 f2 F2 F2 F2 F4 f2
f4 f4 f4 f4 F4 F4 f4 f4 F4 F4 f4 f4 f4
f8 f8 f8 f8 f8 F8 f8 f8 f8 F8 f8 f8 f8 f8
c4 c4 c4 c4 C4 C4 c4 c4 C4 C4 c4 c4 c4 C8 c4
c8 c8 c8 c8 c8 C8 c8 c8 c8 C8 c8 c8 c8 c8 c8 c8
wi wi u1 u2 u4 u8 i1 i2 i4 i8 bf f2 f4 f8 c4 c8 wi
wl wl u1 u2 u4 u8 i1 i2 i4 i8 bf f2 f4 f8 c4 c8 wl wl
wf wf WD WD WD WD WD WD WD WD bf f2 f4 f8 c4 c8 wf wf wf
wd wd wd wd wd WD wd wd wd WD bf f2 f4 f8 c4 c8 wd wd wd wd
wc wc wc wc wc WC wc wc wc WC C4 C4 C4 c8 c4 c8 wc wc wc wc wc
"""
_STRONG = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 bfloat16 float16 float32 "
)
_STRONG += "float64 complex64 complex128"
# The dtypes that weak values may have.
WEAK = (tf.int32, tf.int64, tf.float32, tf.float64, tf.complex128)


@functools.cache
def _lattice():
    """{((dtype, weak), (dtype, weak)): ((dtype, weak), whether that is safe)}"""
    rows = [row.split() for row in _TABLE.strip().splitlines()]
    strong = [(dtypes.as_dtype(name), False) for name in _STRONG.split()]
    kinds = [*strong, *((dtype, True) for dtype in WEAK)]
    of = dict(zip((row[0] for row in rows), kinds))
    found = {}
    for (label, *cells), other in itertools.product(rows, range(len(rows))):
        if other < len(cells):
            cell = cells[other]
            joined = of[cell.lower()], cell.islower()
            pair = of[label], kinds[other]
            found[pair] = found[pair[::-1]] = joined
    return found


def is_new():
    """True in the modes with weak types: "all" and "safe"."""
    return state.mode in ("all", "safe")


def default_float():
    """What integers become where a function needs floating values."""
    return tf.float32 if is_new() else tf.float64


def default_int():
    """What sums of small integers are."""
    return tf.int32 if is_new() else tf.int64


_PYTHON = {
    bool: lambda: tf.bool,
    int: default_int,
    float: default_float,
    complex: lambda: tf.complex128,
}


def as_dtype(dtype):
    """A tf.DType of what names a dtype here: one, NumPy's, a text or Python's types,
    whose sizes go by the mode. None stays None; TypeError for others."""
    if dtype is None or isinstance(dtype, tf.DType):
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]()
    return dtypes.as_dtype(np.dtype(dtype))


class _Leaves:
    """The dtypes and types of Python's numbers among values, each once."""

    def __init__(self, values):
        self.dtypes = {}  # (DType, weak), as a set that keeps its order
        self.python = {}
        for value in values:
            self._add(value)

    def _add(self, x):
        kind = type(x)
        if kind in _PYTHON:
            self.python[kind] = None
        elif isinstance(x, (list, tuple, range)):
            kinds = set(map(type, x))
            if kinds <= _PYTHON.keys():  # long lists of numbers are common
                self.python.update(dict.fromkeys(kinds))
                return
            for part in x:
                self._add(part)
        elif getattr(kind, "_is_weak_tensor", False):
            self.dtypes[x.dtype, True] = None
        elif isinstance(x, (str, bytes)):
            self.dtypes[tf.string, False] = None
        elif state.prefer_float32 and isinstance(x, (float, complex)) and not is_new():
            self.python[float if isinstance(x, float) else complex] = None
        else:
            self.dtypes[_dtype_of(x), False] = None


def _dtype_of(x):
    """The DType of a value, or of what names a dtype; an error for anything else."""
    if isinstance(x, (_headrace.Tensor, _headrace.VariableBase)):
        return x.dtype.base_dtype
    if x is not None and not isinstance(x, (tf.DType, type, np.dtype)):
        own = getattr(x, "dtype", None)
        if own is not None:
            return as_dtype(own)
        if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
            return dtypes.as_dtype(np.asarray(x).dtype)
    return as_dtype(x) or default_float()


# --- The rules of the modes "all" and "safe".

_WEAK_PYTHON = {int: tf.int32, float: tf.float32, complex: tf.complex128}


def _new_joined(leaves):
    kinds = list(leaves.dtypes)
    for kind in leaves.python:
        kinds.append((tf.bool, False) if kind is bool else (_WEAK_PYTHON[kind], True))
    if not kinds:
        return default_float(), True
    return functools.reduce(_join, kinds)


def _join(a, b):
    if a == b:
        return a
    joined = _lattice().get((a, b))
    if joined is None:
        raise NotImplementedError(f"{a[0]!r} and {b[0]!r} have no common dtype.")
    if state.mode == "safe" and not joined[1]:
        raise TypeError(
            "In promotion mode PromoMode.SAFE, implicit dtype promotion between "
            f"({a[0]}, weak={a[1]}) and ({b[0]}, weak={b[1]}) is disallowed. You "
            "need to explicitly specify the dtype in your op, or relax your dtype "
            "promotion rules (such as from SAFE mode to ALL mode)."
        )
    return joined[0]


# --- NumPy's rules.

_PREFERRED = {float: np.float32, complex: np.complex64}
# A type's number stands for all of the type: NumPy's rules do not look at values.
_NUMBERS = {bool: np.dtype(bool), int: 0, float: 0.0, complex: 0j}


@functools.lru_cache(maxsize=1024)
def _numpy_joined(strong, python, prefer_float32):
    if not strong and not python:
        return tf.float64
    numbers = _NUMBERS | _PREFERRED if prefer_float32 else _NUMBERS
    of = [np.dtype("S") if d == tf.string else d.as_numpy_dtype for d in strong]
    return dtypes.as_dtype(np.result_type(*of, *(numbers[kind] for kind in python)))


def _by_numpy(leaves):
    strong = tuple(dict.fromkeys(dtype for dtype, _ in leaves.dtypes))
    if len(strong) == 1 and not leaves.python:
        return strong[0]
    prefer = state.prefer_float32 and not is_new()
    return _numpy_joined(strong, tuple(leaves.python), prefer)


# --- What functions ask.


def joined(*values):
    """(dtype, whether it is weak) of values together, by the mode's rules.

    TypeError where "safe" does not allow it or NumPy has no such dtype,
    NotImplementedError for dtypes that the table does not have.
    """
    leaves = _Leaves(values)
    if is_new():
        return _new_joined(leaves)
    return _by_numpy(leaves), False


def joined_with_number(dtype, kind):
    """The dtype of a value of the dtype and a Python number of the type, by NumPy."""
    return _numpy_joined((dtype,), (kind,), state.prefer_float32 and not is_new())


def joined_by_numpy(*values):
    """The dtype of values together by NumPy's rules, whatever the mode is."""
    return _by_numpy(_Leaves(values))


def result_type(*arrays_and_dtypes):
    """The tf.DType that values and dtypes have together.

    Lists stand for their items; Python's numbers take the others' precision. TypeError
    for what has no dtype, and for dtypes that have none in common.
    """
    return joined(*arrays_and_dtypes)[0]


def promote_types(type1, type2):
    """The np.dtype that two dtypes have together, by NumPy's rules; TypeError for
    dtypes that have none in common."""
    both = (as_dtype(type1).as_numpy_dtype, as_dtype(type2).as_numpy_dtype)
    return np.promote_types(*both)


def numpy_dtype(dtype):
    """The np.dtype that NumPy's own functions are asked with."""
    if isinstance(dtype, tf.DType):
        return np.dtype(dtype.as_numpy_dtype)
    return np.dtype(dtype)


def finfo(dtype):
    """np.finfo of a floating or complex dtype; ValueError for others."""
    own = getattr(dtype, "dtype", None)
    if isinstance(own, tf.DType):
        raise ValueError(
            f"Could not convert {dtype} to a NumPy dtype (via `.dtype` value {own})."
        )
    return np.finfo(numpy_dtype(dtype))
