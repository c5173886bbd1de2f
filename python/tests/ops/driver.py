"""Runs rows of the op tables: values, dtypes, errors and gradients, each eagerly
and traced (with shapes known and unknown), and the shapes that traces tell.

A table is a list of rows; `cases(table)` are pytest parameters and `check(row,
dtype)` runs one. A row names a raw op, its tensor inputs in order (by keyword),
its attributes and what it must give: a NumPy function of the inputs, an
array (a tuple of them for several outputs), or RECORDED for what TensorFlow gives
(rows.py). Floating inputs are cast to each of the row's dtypes.
"""

import dataclasses
import importlib
import pathlib
import re
import sys
from typing import Any

import headrace as tf
import numpy as np
import pytest
import rows

FLOATS = ("float32", "float64", "float16", "bfloat16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
_TOLERANCE = {
    "float32": 2e-6,
    "float64": 1e-12,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "complex64": 4e-6,
    "complex128": 1e-12,
}

RECORDED = "recorded"


@dataclasses.dataclass
class Row:
    op: str
    inputs: dict[str, Any]
    want: Any = None  # function of the inputs as NumPy arrays, array or RECORDED
    attrs: dict[str, Any] = dataclasses.field(default_factory=dict)
    dtypes: tuple[str, ...] = FLOATS
    fixed: tuple[str, ...] = ()  # inputs that keep their own dtype
    error: str | None = None  # a part of the text of the InvalidArgumentError
    gradient: tuple[str, ...] | None = None  # inputs; default: all floating ones
    orders: int = 2  # up to which order gradients are compared
    lists: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    # list arguments of the op: which of the inputs they are made of
    traced: bool = True  # whether a trace gives the same (not: random numbers)

    def __post_init__(self):
        assert self.want is not None or self.error is not None, f"no values: {self}"

    def __str__(self):
        shapes = ",".join(str(list(np.shape(v))) for v in self.inputs.values())
        return f"{self.op}({shapes})"


RUN = []  # rows that tests are made of


def cases(table):
    RUN.extend(table)
    return [
        pytest.param(row, dtype, id=f"{row}-{dtype}")
        for row in table
        for dtype in row.dtypes
    ]


def _numpy(x):
    """A tensor as NumPy sees it, wide enough to compare."""
    a = np.asarray(x.numpy())
    return a.astype(np.float64) if a.dtype.name in ("bfloat16", "float16") else a


def _tensor(value, dtype):
    if dtype in ("bool", "string"):
        return tf.constant(value)
    wide = np.complex128 if dtype in COMPLEX else np.float64
    return tf.cast(tf.constant(np.asarray(value, wide)), dtype)


def _tensors(row, dtype):
    return {
        name: tf.constant(v) if name in row.fixed else _tensor(v, dtype)
        for name, v in row.inputs.items()
    }


def _keywords(row, tensors):
    tensors = dict(tensors)
    for argument, parts in row.lists.items():
        tensors[argument] = [tensors.pop(part) for part in parts]
    return {**tensors, **row.attrs}


def arguments(row, dtype):
    """The keyword arguments of the row's op."""
    return _keywords(row, _tensors(row, dtype))


def arrays(row, dtype):
    """The same as arrays of NumPy."""
    tensors = {k: np.asarray(v.numpy()) for k, v in _tensors(row, dtype).items()}
    return _keywords(row, tensors)


def _call(row, tensors):
    out = getattr(tf.raw_ops, row.op)(**_keywords(row, tensors))
    return list(out) if isinstance(out, (list, tuple)) else [out]


def check(row, dtype):
    tensors = _tensors(row, dtype)
    if row.error is not None:
        with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(row.error)):
            _call(row, tensors)
        if row.traced:
            check_traced_error(row, tensors)
        return
    found = _call(row, tensors)
    for w, f in zip(_wanted(row, tensors, dtype), found, strict=True):
        if w is not None:
            _compare(np.asarray(w), f, dtype)
    if row.traced:
        check_traced(row, tensors, found)
    if dtype in ("float64", "complex128"):
        check_gradient(row, tensors)


def _wanted(row, tensors, dtype):
    if row.want is RECORDED:
        return rows.golden().row(f"{row}-{dtype}")
    inputs = [_numpy(t) for t in tensors.values()]
    with np.errstate(all="ignore"):
        want = row.want(*inputs) if callable(row.want) else row.want
    return want if isinstance(want, tuple) else (want,)


def _compare(want, found, dtype):
    got = _numpy(found)
    assert got.shape == want.shape
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want)
        return
    tolerance = _TOLERANCE.get(found.dtype.name, _TOLERANCE.get(dtype, 1e-12))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


# --- Traced.


def _concrete(row, tensors, known):
    """The row's call, traced for shapes that are known, or only in rank."""
    specs = [
        tf.TensorSpec(t.shape if known else [None] * t.shape.rank, t.dtype)
        for t in tensors.values()
    ]

    def body(*values):
        return _call(row, dict(zip(tensors, values, strict=True)))

    return tf.function(body).get_concrete_function(*specs)


def check_traced(row, tensors, found):
    for known in (True, False):
        concrete = _concrete(row, tensors, known)
        results = concrete(*tensors.values())
        assert len(results) == len(found)
        for static, got, want in zip(concrete.outputs, results, found, strict=True):
            assert got.dtype == want.dtype == static.dtype
            assert static.shape.is_compatible_with(want.shape), (
                f"traced as {static.shape}, is {want.shape}"
            )
            if want.dtype not in (tf.variant, tf.resource):
                assert got.shape == want.shape
                _same(got, want)


def _same(got, want):
    """Bit for bit but for what fused loops round otherwise."""
    got, want = _numpy(got), _numpy(want)
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want)
        return
    tolerance = 4 * np.finfo(want.dtype).eps
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=0)


def check_traced_error(row, tensors):
    """Traces refuse when they are made (ValueError) or when they are run."""
    for known in (True, False):
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError)) as raised:
            _concrete(row, tensors, known)(*tensors.values())
        # What a graph says itself: function/test_traced_errors.py.
        text = str(raised.value)
        assert row.error in text or " for '{{node " in text


# --- Gradients: of sum(w * output), against central differences, then the same
# --- of the gradient itself.


def _weights(shape, phase):
    n = int(np.prod(shape))
    return np.cos(np.arange(n) + phase).reshape(shape)


def _slope(function, x, step=1e-5):
    """The derivative of function(array) -> float at x, one element at a time."""
    x = np.array(x)
    slope = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        values = []
        for sign in (1, -1):
            moved = x.copy()
            moved[i] += sign * step
            values.append(function(moved))
        slope[i] = (values[0] - values[1]) / (2 * step)
    return slope


def check_gradient(row, tensors):
    names = row.gradient
    if names is None:
        names = [n for n, t in tensors.items() if t.dtype == tf.float64]
    outputs = _call(row, tensors)
    if not names or outputs[0].dtype != tf.float64:
        return

    def first(moved):
        out = _call(row, {**tensors, **moved})[0]
        w = tf.constant(_weights(outputs[0].shape, 1.0))
        return tf.raw_ops.Mul(x=out, y=w)

    sources = {n: tensors[n] for n in names}
    _check_order(first, sources, row.orders)
    if row.traced:
        _check_traced_gradients(first, sources, row.orders)


def _gradients(function, moved):
    with tf.GradientTape() as tape:
        for t in moved.values():
            tape.watch(t)
        y = function(moved)
    found = tape.gradient(y, list(moved.values()))
    return [
        tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g for g in found
    ]


def _check_traced_gradients(function, sources, orders):
    """Within the trace, and through a call of it, as eagerly."""

    def of_order(function, order):
        if order == 0:
            return function

        def lower(moved):
            found = _gradients(of_order(function, order - 1), moved)
            total = [tf.reduce_sum(g * g) for g in found if g is not None]
            return tf.add_n(total) if total else tf.zeros([], tf.float64)

        return lower

    def traced(function):
        names = list(sources)
        f = tf.function(lambda *values: function(dict(zip(names, values, strict=True))))
        return lambda moved: f(*moved.values())

    for order in range(orders):
        inner = of_order(function, order)
        wants = _gradients(inner, sources)
        outside = _gradients(traced(inner), sources)
        inside = traced(lambda moved, f=inner: _gradients(f, moved))(sources)
        for name, want, *both in zip(sources, wants, outside, inside, strict=True):
            for got in both:
                if got is None or want is None:
                    assert got is want or not np.any(got if want is None else want)
                    continue
                np.testing.assert_allclose(
                    got.numpy(), want.numpy(), rtol=1e-10, atol=1e-12, err_msg=name
                )


def _check_order(function, sources, orders):
    def total(moved):
        return float(np.sum(function(moved).numpy()))

    def gradients(moved):
        return _gradients(function, moved)

    found = gradients(sources)
    for (name, x), g in zip(sources.items(), found, strict=True):
        want = _slope(
            lambda a, n=name: total({**sources, n: tf.constant(a)}), x.numpy()
        )
        got = np.zeros(want.shape) if g is None else g.numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=name)
    if orders < 2:
        return
    for i, (name, g) in enumerate(zip(sources, found, strict=True)):
        if g is None:
            continue

        def one(moved, i=i, name=name):
            g = gradients(moved)[i]
            w = tf.constant(_weights(moved[name].shape, 2.0))
            return tf.raw_ops.Mul(x=g, y=w)

        _check_order(one, sources, orders - 1)


def table_modules():
    """The test modules of this folder and its rooms, some of which have tables."""
    for path in sorted(pathlib.Path(__file__).parent.rglob("test_*.py")):
        if path.stem == "test_rows":  # which asks for the others
            continue
        if str(path.parent) not in sys.path:
            sys.path.append(str(path.parent))
        yield importlib.import_module(path.stem)
