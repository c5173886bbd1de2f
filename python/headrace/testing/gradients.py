"""tf.test.compute_gradient and its kin: a derivative twice, told and measured.

A Jacobian of complex values is one of their real and imaginary parts, which lie side
by side: a complex element takes two rows, or columns. That is needed because TensorFlow's
gradients are not of holomorphic functions alone.
"""

import numpy as np

from headrace import _api as tf
from headrace.framework.support import signatures

_DTYPES = (tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.complex64, tf.complex128)


def compute_gradient(f, x, delta=None):
    """The Jacobians of f at x, by its gradient and by central differences.

    Args:
      f: a function of as many tensors as x has; its value is one tensor of floating
        point or complex numbers, of any shape.
      x: a list or tuple of floating point or complex values, of any shape.
      delta: how far an element is moved to either side, 1/1024 by default.

    Returns:
      Two tuples, of the gradients' and of the measured Jacobians: for each x an array
      of shape [size of f's value, size of x], twice as many rows where the value is
      complex, twice as many columns where x is. Inside a graph the default session
      runs what f makes.

    Raises:
      ValueError: x is no list or tuple; a gradient of an empty value is not zero.
      AssertionError: values of another dtype.
      RuntimeError: inside a graph without a default session.
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError(
            "`x` must be a list or tuple of values convertible to a Tensor (arguments to "
            f"`f`), not a {type(x)}"
        )
    x = [tf.convert_to_tensor(v) for v in x]
    for i, v in enumerate(x):
        _check_dtype(v.dtype, f"argument {i}")
    if tf.executing_eagerly():
        ways = _EagerWays(f, x)
    else:
        ways = _FedWays(*_as_graph(f, x))
    delta = 1.0 / 1024 if delta is None else delta
    told = _told(ways)
    return told, tuple(_measured(ways, i, delta) for i in range(len(x)))


def compute_gradient_v1(
    x,
    x_shape,
    y,
    y_shape,
    x_init_value=None,
    delta=1e-3,
    init_targets=None,
    extra_feed_dict=None,
):
    """The Jacobians of y with respect to x, run by the default session.

    Args:
      x: a tensor of a graph, or a list of them, of floating point or complex numbers.
      x_shape: its shape, or a list of the shapes.
      y: a tensor of that graph, of floating point or complex numbers.
      y_shape: its shape.
      x_init_value: the array at which to look, or a list of them; random numbers by
        default.
      delta: how far an element is moved to either side.
      init_targets: a list of operations to run first.
      extra_feed_dict: what to feed besides x; of other tensors of x as well, while one
        is moved.

    Returns:
      The gradient's and the measured Jacobian, arrays of shape [size of x, size of y],
      twice as many rows where x is complex, twice as many columns where y is; a list
      of such pairs where x is a list.

    Raises:
      AssertionError: y does not depend on x; an array has not the shape given for it;
        a tensor is of another dtype.
    """
    several = isinstance(x, list)
    places = x if several else [x]
    shapes = x_shape if several else [x_shape]
    values = x_init_value if several else [x_init_value]
    if values is None:
        values = [None] * len(places)
    if len(shapes) != len(places) or len(values) != len(places):
        raise ValueError(
            f"{len(places)} tensors with {len(shapes)} shapes and {len(values)} values"
        )
    for i, place in enumerate(places):
        _check_dtype(place.dtype, f"x {i}")
    _check_dtype(y.dtype, "y")
    at = [_start(*of) for of in zip(places, shapes, values, strict=True)]
    session = _session()
    if init_targets is not None:
        if not isinstance(init_targets, (list, tuple)):
            raise AssertionError(
                f"init_targets must be a list of operations, not {init_targets!r}"
            )
        for target in init_targets:
            session.run(target)
    pairs = []
    for place, start in zip(places, at, strict=True):  # the others stay what they are
        sizes = tuple(map(int, y_shape))
        ways = _FedWays([place], y, [start], extra_feed_dict, sizes)
        if ways.slopes[0] is None:
            raise AssertionError(f"dx = None: y does not depend on {place}")
        if 0 in sizes:
            nothing = np.zeros(sizes, y.dtype.as_numpy_dtype)
            _check_empty(ways.rows()(nothing)[0], start.shape)
        pairs.append((_told(ways)[0].T, _measured(ways, 0, delta).T))
    return pairs if several else pairs[0]


@signatures.taking(signatures.parameters_of(compute_gradient_v1))
def compute_gradient_error(**given):
    """The largest difference between the two Jacobians of `compute_gradient`, whose
    arguments and errors these are; 0 where they are empty."""
    pairs = compute_gradient_v1(**given)
    worst = 0
    for told, measured in pairs if isinstance(pairs, list) else [pairs]:
        if told.size:
            worst = np.maximum(worst, np.fabs(told - measured).max())  # NaN stays
    return worst


def _check_empty(gradient, shape):
    """The gradient of no numbers has the shape of x, too."""
    if gradient.shape != shape:
        raise ValueError(
            f"Empty gradient has wrong shape: expected {shape}, got {gradient.shape}"
        )


def _check_dtype(dtype, what):
    if dtype.base_dtype not in _DTYPES:
        raise AssertionError(
            f"Cannot compute gradient for unsupported type {dtype.name} of {what}"
        )


def _start(place, shape, value):
    """The array at which to look for `place`."""
    shape = tuple(int(n) for n in tf.TensorShape(shape).as_list())
    dtype = place.dtype.as_numpy_dtype
    if value is None:
        value = np.random.random_sample(shape)
        if place.dtype.is_complex:
            value = value + 1j * np.random.random_sample(shape)
    value = np.asarray(value, dtype)
    if value.shape != shape:
        raise AssertionError(
            f"x_shape = {list(shape)}, init_data shape = {list(value.shape)}"
        )
    return value


def _session():
    session = tf.compat.v1.get_default_session()
    if session is None:
        raise RuntimeError(
            "Gradients inside a graph are computed by the default session, and there "
            "is none: enter a tf.compat.v1.Session"
        )
    return session


class _EagerWays:
    """f's value, and products with its Jacobian, at once."""

    def __init__(self, f, x):
        self.f = f
        self.at = [v.numpy() for v in x]

    def value(self, at):
        return self.f(*[tf.constant(v) for v in at]).numpy()

    def rows(self):
        """A function of a value's gradient, to the gradients of all x."""
        x = [tf.constant(v) for v in self.at]
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = self.f(*x)

        def row(dy):
            slopes = tape.gradient(y, x, output_gradients=tf.constant(dy))
            return [
                None if slope is None else tf.convert_to_tensor(slope).numpy()
                for slope in slopes
            ]

        return row


def _as_graph(f, x):
    at = _session().run(x)
    places = [tf.compat.v1.placeholder(v.dtype, v.shape) for v in at]
    return places, f(*places), at


class _FedWays:
    """The same of tensors of a graph, by feeding them."""

    def __init__(self, places, y, at, feeds=None, y_shape=None):
        self.places, self.y, self.at = places, y, at
        self.feeds = dict(feeds or {})
        self.session = _session()
        with y.graph.as_default():
            known = y.shape.is_fully_defined() or y_shape is None
            shape = y.shape if known else y_shape
            self.dy = tf.compat.v1.placeholder(y.dtype.base_dtype, shape)
            self.slopes = [
                None if slope is None else tf.convert_to_tensor(slope)
                for slope in tf.gradients(y, places, grad_ys=self.dy)
            ]

    def _run(self, fetches, at, more=()):
        feeds = dict(zip(self.places, at, strict=True))
        return self.session.run(fetches, {**self.feeds, **feeds, **dict(more)})

    def value(self, at):
        return np.asarray(self._run(self.y, at))

    def rows(self):
        known = [slope for slope in self.slopes if slope is not None]

        def row(dy):
            found = iter(self._run(known, self.at, {self.dy: dy}.items()))
            return [None if s is None else next(found) for s in self.slopes]

        return row


def _told(ways):
    """For each x the Jacobian [size of y, size of x] that the gradients say, all made
    of one row after the other."""
    y = ways.value(ways.at)
    row = ways.rows()
    jacobians = [
        np.zeros((_parts(y).size, _parts(v).size), _parts(v).dtype) for v in ways.at
    ]
    if not y.size:
        for slope in row(np.zeros_like(y)):
            if slope is not None and np.any(slope):
                raise ValueError("Empty tensor with nonzero gradients")
    for place in range(_parts(y).size):
        dy = np.zeros_like(y, order="C")
        _parts(dy)[place] = 1
        for jacobian, slope, v in zip(jacobians, row(dy), ways.at, strict=True):
            if slope is None:
                continue
            if slope.shape != v.shape:
                raise ValueError(
                    f"a gradient of shape {slope.shape} for a value of shape {v.shape}"
                )
            jacobian[place] = _parts(slope)
    return tuple(jacobians)


def _measured(ways, i, delta):
    """The Jacobian [size of y, size of x i] by central differences."""
    size = _parts(ways.at[i]).size
    columns = []
    for place in range(size):
        values = []
        for sign in (1, -1):
            moved = np.array(ways.at[i], order="C")  # _parts is a view of it
            _parts(moved)[place] += moved.real.dtype.type(sign * delta)
            values.append(_parts(ways.value([*ways.at[:i], moved, *ways.at[i + 1 :]])))
        columns.append((values[0] - values[1]) / values[0].dtype.type(2 * delta))
    kind = _parts(ways.at[i]).dtype
    if not columns:
        return np.zeros((_parts(ways.value(ways.at)).size, 0), kind)
    return np.stack(columns, axis=-1).astype(kind)


def _parts(array):
    """The array's elements in a row, real and imaginary parts side by side: a view
    where the array is contiguous."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat
