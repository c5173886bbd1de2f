"""Ops without a gradient, ops that stop gradients, values that none reaches."""

import numpy as np
import pytest

import headrace as tf

raw = tf.raw_ops
X = np.array([1.0, 2.0, 3.0], np.float32)


WITHOUT = {
    "Bitcast": lambda v: raw.Bitcast(input=v, type=tf.float32),
    "Unique": lambda v: tf.unique(v).y,
    "DrawBoundingBoxesV2": lambda v: tf.image.draw_bounding_boxes(
        tf.reshape(v, [1, 1, 1, 3]), tf.zeros([1, 1, 4]), tf.ones([1, 3])
    ),
    "DatasetToSingleElement": lambda v: tf.data.Dataset.from_tensors(
        v
    ).get_single_element(),
    "Fingerprint": tf.fingerprint,
    "HistogramFixedWidth": lambda v: tf.histogram_fixed_width(v, [0.0, 3.0]),
    "RandomPoissonV2": lambda v: tf.random.poisson([2], v),
    "Lu": lambda v: tf.linalg.lu(tf.linalg.diag(v))[0],
}
STOPPING = {
    "OneHot": lambda v: tf.one_hot([0, 1], 3, on_value=v[0], off_value=v[1]),
    "StatelessRandomBinomial": lambda v: tf.random.stateless_binomial(
        [3], [1, 2], v, 0.5, output_dtype=tf.float32
    ),
    "StopGradient": tf.stop_gradient,
    "ReduceDataset": lambda v: tf.data.Dataset.range(2).reduce(v, lambda a, b: a),
}


def _by_tape(f):
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def _by_graph(f):
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [3])
        return tf.gradients(f(x), x)[0]


@pytest.mark.parametrize("op", list(WITHOUT))
def test_ops_without_a_gradient(op):
    f = WITHOUT[op]
    entry = f"^gradient registry has no entry for: {op}"
    with pytest.raises(LookupError, match=entry):
        _by_tape(f)
    with pytest.raises(LookupError, match=f"gradient registry has no entry for: {op}"):
        tf.function(_by_tape)(f)
    with pytest.raises(
        LookupError, match=rf"^No gradient defined for operation'\w+"
    ) as e:
        _by_graph(f)
    assert f"(op type: {op}" in str(e.value)


@pytest.mark.parametrize("op", list(STOPPING))
def test_ops_that_are_not_differentiable(op):
    f = STOPPING[op]
    assert _by_tape(f) is None
    assert tf.function(_by_tape)(f) is None
    assert _by_graph(f) is None


def test_the_error_comes_only_where_a_gradient_would_flow():
    assert _by_tape(lambda v: (tf.unique(v).y, v * v)[1]).numpy().tolist() == [2, 4, 6]
    through_integers = lambda v: tf.cast(tf.unique(v).idx, tf.float32) * v
    assert _by_tape(through_integers).numpy().tolist() == [0, 1, 2]
    assert _by_tape(lambda v: tf.unique(tf.stop_gradient(v)).y) is None
    for f in (through_integers, lambda v: tf.stop_gradient(tf.unique(v).y) * v):
        assert _by_graph(f) is not None
    with tf.Graph().as_default():
        x, other = (tf.compat.v1.placeholder(tf.float32, [3]) for _ in range(2))
        y = tf.unique(x).y
        assert tf.gradients(y * 2, other) == [None]
        assert tf.gradients(y * 2, x, stop_gradients=y) == [None]
        text = tf.strings.as_string(x)
        assert tf.gradients(tf.strings.to_number(text) * other, x) == [None]


def test_a_call_of_a_function_asks_for_all_its_gradients():
    @tf.function
    def f(v):
        return tf.unique(v).y, v * v

    with pytest.raises(LookupError, match="^No gradient defined for operation'Unique'"):
        _by_tape(lambda v: f(v)[1])


def test_gradients_that_programs_register_are_found_by_graphs():
    with pytest.raises(KeyError):
        tf.RegisterGradient("OneHot")(lambda op, g: None)

    @tf.RegisterGradient("UnravelIndex")
    def gradient(op, g):
        return None, None

    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [3])
        with graph.gradient_override_map({"Square": "NobodysName"}):
            y = tf.square(x)
        with pytest.raises(LookupError, match="^No gradient defined .*op type: Square"):
            tf.gradients(y, x)


@pytest.mark.parametrize("dtype", [tf.int32, tf.bool])
def test_forward_mode_says_none_for_what_has_no_direction(dtype):
    x = tf.constant(X)
    with tf.autodiff.ForwardAccumulator(x, tf.ones(3)) as acc:
        y = tf.cast(x, dtype)
        z = raw.Bitcast(input=x, type=tf.int32)
    assert acc.jvp([y, z]) == [None, None]


def test_sources_that_the_tape_does_not_watch_have_none():
    a, b = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    v, w = tf.Variable(a), tf.Variable(b)
    product = tf.function(lambda x, y: x * y)
    captured = tf.function(lambda: v * w)
    for f in (tf.multiply, product, lambda x, y: tf.concat([x, y], 0)):
        for of in ((a, b), (v, w)):
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(of[0])
                y = f(*of)
            first, second = tape.gradient(y, of)
            assert first is not None and second is None
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
        y = captured()
    assert tape.gradient(y, [v, w])[1] is None
    with tf.GradientTape() as tape:
        y = v * b
    zero = tape.gradient(y, b, unconnected_gradients="zero")
    assert zero.numpy().tolist() == [0.0, 0.0]


def test_sources_watched_late_and_sources_that_are_targets():
    a, b = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(a)
        y = a * b
        tape.watch(b)
    assert tape.gradient(y, b).numpy().tolist() == [1.0, 2.0]
    with tf.GradientTape() as tape:
        tape.watch(a)
    assert tape.gradient(b, b).numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "f",
    [
        lambda v: tf.math.top_k(v, 2).indices,
        lambda v: tf.linalg.slogdet(tf.linalg.diag(v))[0],
        lambda v: tf.nn.max_pool_with_argmax(tf.reshape(v, [1, 3, 1, 1]), 1, 1, "SAME")[
            1
        ],
        lambda v: (
            raw.FusedBatchNormV3(
                x=tf.reshape(v, [3, 1, 1, 1]),
                scale=[1.0],
                offset=[0.0],
                mean=[],
                variance=[],
            ).batch_mean
        ),
    ],
    ids=["integers", "sign", "argmax", "batch_mean"],
)
def test_outputs_that_no_gradient_reads_give_zeros(f):
    assert _by_tape(f).numpy().tolist() == [0.0, 0.0, 0.0]
    assert _by_graph(f) is not None


def test_gradients_through_optionals():
    def f(v):
        square, same = tf.experimental.Optional.from_value((v * v, v)).get_value()
        return square + same

    assert _by_tape(f).numpy().tolist() == [3.0, 5.0, 7.0]
    assert tf.function(_by_tape)(f).numpy().tolist() == [3.0, 5.0, 7.0]
    first = lambda v: tf.experimental.Optional.from_value((v * v, v)).get_value()[0]
    assert _by_tape(first).numpy().tolist() == [2.0, 4.0, 6.0]


def test_linspace_has_gradients():
    line = lambda v: tf.linspace(v[0], v[1], 3) * tf.constant([1.0, 2.0, 3.0])
    for f in (line, tf.function(line)):
        np.testing.assert_allclose(_by_tape(f), [2.0, 4.0, 0.0])
    rng = np.random.default_rng(0)
    for _ in range(20):  # to the bit: start + i * step, and the end itself
        a, b = rng.normal(size=2).astype("f")
        step = np.float32((b - a) / np.float32(6))
        wanted = np.append(a + step * np.arange(6, dtype="f"), b)
        for found in (tf.linspace(a, b, 7), tf.linspace([a], [b], 7)[:, 0]):
            np.testing.assert_array_equal(found, wanted)
    assert tf.linspace(1.0, 2.0, 0).shape == [0]
    assert tf.linspace(1.0, 2.0, tf.constant(1)).numpy().tolist() == [1.0]
    with pytest.raises(TypeError, match="must be of type integer"):
        tf.linspace(1.0, 2.0, 1.5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="num >= 0: -1"):
        tf.linspace(1.0, 2.0, -1)


@pytest.mark.parametrize(
    "target, given, error, text",
    [
        ("c", None, TypeError, "must set grad_ys"),
        ("c", "x", TypeError, "Gradient type float32 generated for complex-valued"),
        ("x", "c", TypeError, "complex64 generated for real or integer-valued tensor"),
        ("x", "d", TypeError, "Gradient type float64"),
        ("s", None, TypeError, "Expected string"),
        ("x", "two", ValueError, "Length mismatch. Passed 2 grad_ys for 1 ys"),
    ],
)
def test_what_gradients_may_begin_with(target, given, error, text):
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [3])
        of = {
            "x": x * 2,
            "c": tf.cast(x, tf.complex64),
            "d": tf.cast(x, tf.float64),
            "s": tf.strings.as_string(x),
        }
        of["two"] = [x, x]
        with pytest.raises(error, match=text):
            tf.gradients(of[target], x, grad_ys=of[given] if given else None)
        assert tf.gradients(of["c"], x, grad_ys=of["c"])[0] is not None


def test_an_operation_may_take_the_gradient_of_another_kind():
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = tf.constant([-2.0, 3.0])
        with graph.gradient_override_map({"Sign": "Identity"}):
            y = tf.sign(x)
        slope = v1.gradients(y, x, grad_ys=tf.constant([5.0, 7.0]))[0]
        assert session.run([y, slope])[1].tolist() == [5, 7]
        with graph.gradient_override_map({"Sign": "MatMul"}):  # has attributes more
            y = tf.sign(x)
        with pytest.raises(LookupError):
            v1.gradients(y, x)
