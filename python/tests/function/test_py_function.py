"""tf.py_function and tf.numpy_function."""

import headrace as tf
import numpy as np
import pytest


def test_gradient_of_one_call():
    called = []

    def cube(x):
        called.append(type(x).__name__)
        return x * x * x

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(cube, [x], tf.float32)
        assert y.shape.rank is None
        return y, tape.gradient(y, x)

    for value in (2.0, 3.0):
        y, dy = f(tf.constant([value]))
        assert y.numpy().tolist() == [value**3]
        assert dy.numpy().tolist() == [3 * value**2]
    # The gradient takes the tape of the call: it does not call again.
    assert called == ["EagerTensor"] * 2


def test_gradient_where_many_calls_precede():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = x
            for _ in range(40):
                total = tf.py_function(lambda a: a * 1.5, [total], tf.float32)
        return tape.gradient(total, x)

    np.testing.assert_allclose(f(tf.constant(2.0)).numpy(), 1.5**40, rtol=1e-5)


def test_second_order_and_integers():
    @tf.function
    def f(x, n):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.py_function(
                    lambda a, k: a**3 * tf.cast(k, tf.float32), [x, n], tf.float32
                )
            dy = inner.gradient(y, x)
        return dy, outer.gradient(dy, x)

    dy, ddy = f(tf.constant(2.0), tf.constant(5))
    assert float(dy) == 60.0
    assert float(ddy) == 60.0


def test_eagerly():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.py_function(func=lambda a: a * a, inp=[x], Tout=tf.float32)
    assert float(tape.gradient(y, x)) == 6.0
    assert tf.py_function(lambda: None, [], []) == []
    a, b = tf.py_function(lambda: [1, 2.0], [], [tf.int32, tf.float32])
    assert (a.dtype, b.dtype) == (tf.int32, tf.float32)


def test_ragged():
    rt = tf.ragged.constant([[1, 2], [3]])
    spec = tf.RaggedTensorSpec([None, None], tf.int32)

    def f(r):
        assert isinstance(r, tf.RaggedTensor)
        return r + 1

    assert tf.py_function(f, [rt], spec).to_list() == [[2, 3], [4]]
    traced = tf.function(lambda r: tf.py_function(f, [r], spec))
    assert traced(rt).to_list() == [[2, 3], [4]]


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_errors(wrap):
    def fails(function, kind, text, dtype=tf.float32):
        run = wrap(lambda: tf.py_function(function, [], dtype))
        with pytest.raises(kind, match=text):
            run()

    fails(lambda: 1 / 0, tf.errors.UnknownError, "ZeroDivisionError: division by zero")
    fails(lambda: "text", tf.errors.InvalidArgumentError, "Cannot convert 'text'")
    fails(lambda: None, tf.errors.InvalidArgumentError, "returns 0 values, but exp")


def test_decorators():
    @tf.py_function(Tout=tf.float32)
    def double(x):
        return x * 2.0

    @tf.numpy_function(Tout=tf.float32)
    def sinh(x):
        return np.sinh(x)

    assert float(double(3.0)) == 6.0
    np.testing.assert_allclose(sinh(1.0).numpy(), np.sinh(1.0), rtol=1e-6)


def test_eager_calls_with_arrays_are_plain_calls():
    one = tf.constant(1)
    with pytest.raises(KeyError, match="k"):
        tf.numpy_function(lambda a: {}["k"], [one], tf.int32)
    assert tf.numpy_function(lambda a: a + 1.5, [one], tf.int32).dtype == tf.float64
    out = tf.numpy_function(lambda a: (a, a + 1), [one], tf.int32)
    assert [int(t) for t in out] == [1, 2]
    assert tf.numpy_function(lambda a: None, [one], tf.int32) is None


def _of_two():
    return [1.0, 2.0]


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
@pytest.mark.parametrize(
    "function, types, want",
    [
        (_of_two, [tf.float32, tf.float32], [1.0, 2.0]),
        (_of_two, tf.float32, 1.0),  # the rest is not asked for
        (lambda: (_of_two(),), tf.float32, [1.0, 2.0]),
        (lambda: 3, tf.float32, 3.0),
        (_of_two, [tf.float32] * 3, "returns 2 values, but expects to see 3"),
        (list, tf.float32, "returns 0 values, but expects to see 1"),
        (lambda: None, tf.float32, "returns 0 values, but expects to see 1"),
        (lambda: 3, [], "returns 1 values, but expects to see 0"),
    ],
)
def test_values_of_eager_functions(wrap, function, types, want):
    call = wrap(lambda: tf.py_function(function, [], types))
    if isinstance(want, str):
        call = call if types else wrap(lambda: [tf.py_function(function, [], [])][1:])
        with pytest.raises(tf.errors.InvalidArgumentError, match=want):
            call()
    else:
        assert tf.nest.map_structure(lambda t: t.numpy().tolist(), call()) == want


@pytest.mark.parametrize(
    "value, types, want",
    [
        (np.float32(1.5), tf.float32, 1.5),
        (1.5, tf.float64, 1.5),
        (3, tf.int64, 3),
        (["a"], [tf.string], [b"a"]),
        ((np.int32(1), np.float32(2)), [tf.int32, tf.float32], [1, 2.0]),
        # NumPy's dtype is that of the result: nothing is cast, as that may lose.
        (1.5, tf.float32, "0-th value .* but expects float"),
        (np.float32(1.5), tf.int32, "0-th value .* but expects int32"),
        (1j, tf.float32, "0-th value .* but expects float"),
        (_of_two(), tf.float64, "returns 2 values, but expects to see 1"),
        (None, tf.float64, "returns 0 values, but expects to see 1"),
    ],
)
def test_values_of_functions_of_arrays_in_graphs(value, types, want):
    call = tf.function(lambda: tf.numpy_function(lambda: value, [], types))
    if isinstance(want, str):
        with pytest.raises(tf.errors.InvalidArgumentError, match=want):
            call()
    else:
        assert tf.nest.map_structure(lambda t: t.numpy(), call()) == want
