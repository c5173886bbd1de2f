"""Assertions and casts, those of tf.compat.v1 too; tf.print and tf.timestamp."""

import headrace as tf
import numpy as np
import pytest
from headrace.ops import quantization_ops

v1 = tf.compat.v1


def test_assertions_eagerly():
    assert v1.assert_equal([1, 2], [1, 2]) is None
    with pytest.raises(tf.errors.InvalidArgumentError, match="^m\nd$"):
        v1.assert_equal([1, 2], [1, 3], data=["d"], message="m")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Condition x < y did not"):
        v1.assert_less(1, 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="5"):
        v1.debugging.assert_positive([1, 0], data=[5])
    with pytest.raises(ValueError, match="must have rank 2"):
        v1.assert_rank([1], 2)
    v1.assert_near(1.0, 1.0 + 1e-7)
    v1.assert_scalar(3)


def test_assertions_in_a_graph():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32)
        checks = [
            v1.assert_equal(x, 1.0, data=["got", x], message="m"),
            v1.assert_rank(x, 1),
            v1.assert_rank_at_least(x, 1),
            v1.assert_rank_in(x, (1, 2)),
        ]
        session.run(checks, {x: [1.0, 1.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[m\] \[got\]"):
            session.run(checks[0], {x: [2.0]})
        for check in checks[1:]:
            with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank"):
                session.run(check, {x: 1.0})


def test_casts():
    assert v1.to_float(3).dtype == tf.float32
    assert v1.to_int32(3.7).numpy() == 3
    assert v1.to_complex64(1.0).dtype == tf.complex64


def test_types_of_composites():
    sparse = tf.SparseTensor([[0, 0]], [1], [1, 1])
    tf.debugging.assert_type(sparse, tf.int32)
    with pytest.raises(TypeError, match="must be of type tf.float32; got tf.int32"):
        tf.debugging.assert_type(tf.ragged.constant([[1]]), tf.float32)


def test_print_in_a_graph_is_an_operation(capfd):
    with tf.Graph().as_default(), v1.Session() as session:
        operation = tf.print("value", tf.constant([1, 2]))
        assert isinstance(operation, tf.Operation)
        session.run(operation)
    tf.print(tf.quantization.quantize([0.0, 2.0], 0.0, 2.0, tf.quint8).output)
    assert capfd.readouterr().err == "value [1 2]\n[0 255]\n"


def test_timestamp():
    @tf.function
    def now():
        return tf.timestamp()

    first = now()
    assert first.dtype == tf.float64 and 0 <= float(now() - first) < 60
    assert abs(float(tf.timestamp()) - float(first)) < 60


@pytest.mark.parametrize("what", ["name", "op", "graph", "value_index"])
def test_what_eager_tensors_lack(what):
    x = tf.constant(1)
    assert not hasattr(x, what)
    with pytest.raises(AttributeError, match=f"Tensor.{what} is undefined when eager"):
        getattr(x, what)


def test_losses_of_integers_and_doubles():
    for dtype, want in (("int32", 0.5), ("float64", 0.5)):
        x = np.array([1, 2], dtype)
        loss = v1.losses.mean_squared_error(x, x - np.array([1, 0], dtype))
        assert loss.dtype == tf.float32 and float(loss) == want


SHAPES = [  # the shape, what is said of it, what TensorFlow says
    ((2,), 3, "Specified shape must be an iterable"),
    ((2,), (), "dimension 0 must have size 1.  Received size 2"),
    ((1, 2), (), r"must have rank in \(0, 1\).  Received rank 2"),
    ((1, 3), ("a", ...), "specified shape index 1.  Symbol `...` or `.`"),
    ((1, 3), (..., "a", "b", 4), "must have rank at least 3.  Received rank 2"),
    ((2,), (..., 1), "dimension -1 must have size 1.  Received size 2"),
    (
        (3, 2),
        "NN",
        "Specified by tensor .* dimension 0.  .* dimension 1 must have size 3",
    ),
    ((3, 2), ["3", "3"], "Specified explicitly"),
]


@pytest.mark.parametrize("way", ["eager", "traced"])
@pytest.mark.parametrize(("shape", "says", "error"), SHAPES)
def test_shapes_that_do_not_fit(shape, says, error, way):
    def check(x):
        tf.debugging.assert_shapes([(x, says)])
        return x

    check = tf.function(check) if way == "traced" else check
    with pytest.raises(ValueError, match=error):
        check(tf.zeros(shape))


def test_shapes_that_fit():
    sparse = tf.SparseTensor([[0]], [1.0], [2])
    fits = [(tf.zeros([1]), ()), (tf.zeros([]), "n"), (tf.zeros([2, 1]), ".n")]
    fits += [(sparse, (2,)), (tf.zeros([2]), None), (tf.zeros([9, 2]), ("*", "d"))]
    assert tf.debugging.assert_shapes([*fits, (sparse, "d")]) is None
    with pytest.raises(
        ValueError, match=r"Specified by tensor shape=\(2,\) dtype=float32"
    ):
        tf.debugging.assert_shapes([(sparse, "d"), (tf.zeros([3]), "d")])


def test_shapes_known_as_a_graph_runs():
    with tf.Graph().as_default(), v1.Session() as session:
        x, y, rank = (
            v1.placeholder(d, name=n)
            for d, n in ((tf.float32, "x"), (tf.float32, "y"), (tf.int32, "r"))
        )
        check = v1.debugging.assert_shapes([(x, ("n", "m")), (y, ("n",))])
        session.run(check, {x: [[1.0]], y: [1.0]})
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"by tensor x:0 dimension 0\] \[Tensor y:0 dimension\] \[0\] .* \[1\]",
        ):
            session.run(check, {x: [[1.0]], y: [1.0, 2.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank"):
            session.run(check, {x: [1.0], y: [1.0]})
        check = v1.assert_rank(x, rank)
        session.run(check, {x: [1.0], rank: 1})
        for bad in (2, [1, 2]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="[Rr]ank"):
                session.run(check, {x: [1.0], rank: bad})
        with pytest.raises(TypeError, match="must be of type tf.int32"):
            v1.assert_rank(x, 0.5)
        with pytest.raises(ValueError, match="Rank must be a scalar"):
            v1.assert_rank_in(x, ([1, 2], 1))


@pytest.mark.parametrize("name", ["equal", "less", "greater", "none_equal"])
def test_assertions_that_always_fail_are_refused_while_tracing(name):
    check = getattr(tf.debugging, "assert_" + name)
    x, y = [1, 1, 5], [1, 2, 4]
    with tf.Graph().as_default():
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"(?s)m\nCond.*\[1 1 5\]"
        ):
            check(tf.constant(x), tf.constant(y), message="m")
        if name == "equal":
            same = tf.constant(x)
            assert check(same, same).type == "NoOp"
        with pytest.raises(tf.errors.InvalidArgumentError, match="x > 0 did not hold"):
            tf.debugging.assert_positive([1, -1])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Indices of first 2|1 diff"
    ):
        check(x, y)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"'2', '3', '4', '...'\]"):
        tf.debugging.assert_negative([2, 3, 4, 5])


@pytest.mark.parametrize("op", ["CheckNumerics", "CheckNumericsV2"])
@pytest.mark.parametrize(
    "made",
    [
        tf.math.log,
        lambda x: tf.math.log(x)[:1],
        lambda x: tf.unstack(tf.math.log(x))[0],
        lambda x: tf.concat([x, tf.math.log(x)], 0),
        lambda x: tf.reduce_sum(tf.math.log(x)),
    ],
)
def test_numbers_made_in_a_function_are_checked_in_every_run(op, made):
    """Their memory is known before the run, their values are not."""

    @tf.function(input_signature=[tf.TensorSpec([2])])
    def f(x):
        getattr(tf.raw_ops, op)(tensor=made(x), message="m")
        return tf.constant(1.0)

    for _ in range(3):
        f(tf.constant([1.0, 2.0]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="m : Tensor had"):
            f(tf.constant([np.inf, 2.0]))


def test_checks_of_numbers_as_targets_of_sessions():
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [2])
        halves = tf.split(tf.cast(x, tf.float16), 2)
        checks = [tf.debugging.check_numerics(h, "m").op for h in halves]
        for _ in range(3):
            session.run(checks, {x: [1, 2]})
            with pytest.raises(tf.errors.InvalidArgumentError, match="m : Tensor had"):
                session.run(checks, {x: [1, np.inf]})


def test_what_passes_is_printed_in_every_run(capfd):
    @tf.function(input_signature=[tf.TensorSpec([2])])
    def f(x):
        return tf.compat.v1.Print(x * 2, [x], "seen ") + 1

    for i in range(3):
        assert f(tf.constant([i, 1.0])).numpy().tolist() == [2.0 * i + 1, 3.0]
        assert capfd.readouterr().err.strip() == f"seen [{i} 1]"


def test_quantize_speaks_of_its_older_name_once(caplog, monkeypatch):
    monkeypatch.setattr(quantization_ops, "_warned", set())
    for _ in range(2):
        tf.quantization.quantize([0.0, 2.0], 0.0, 2.0, tf.quint8)
    (message,) = [r.getMessage() for r in caplog.records]
    assert message.startswith(f"From {__file__}:") and "quantize_v2" in message


def test_names_in_texts_of_traced_checks():
    debugging = tf.debugging

    def text_of(check):
        with pytest.raises(
            (ValueError, TypeError, tf.errors.InvalidArgumentError)
        ) as e:
            tf.function(lambda v: (check(v), v)[1])(tf.constant([0.5, 2.0]))
        return str(e.value)

    assert "x (assert_less/x:0) = \n    [3]" in text_of(
        lambda v: debugging.assert_less([3], 2)
    )
    assert "x (q/x:0) = " in text_of(lambda v: debugging.assert_positive(-1, name="q"))
    text = text_of(lambda v: debugging.assert_greater(v, 1.0))
    assert "[x (v:0) = ] [0.5 2] [y (assert_greater/y:0) = ] [1]" in text
    assert "{{node assert_greater/Assert/AssertGuard/Assert}}" in text
    text = text_of(lambda v: debugging.Assert(tf.size(v) > 5, ["few", tf.size(v)]))
    assert "{{node Assert/Assert}}" in text  # texts and int32 are at hand
    assert "Tensor assert_rank_in/x:0 must" in text_of(
        lambda v: debugging.assert_rank_in([1], [2, 3])
    )
    assert "Found: assert_integer/x:0 of dtype <dtype: 'float32'>" in text_of(
        lambda v: debugging.assert_integer(1.5)
    )
    text = text_of(lambda v: debugging.assert_near(v, [0.5, 3.0]))
    assert "[y (assert_near/y:0) = ] [0.5 3]" in text
    text = text_of(lambda v: debugging.assert_all_finite(v / 0.0, "no"))
    assert "{{node VerifyFinite/CheckNumerics}}" in text
