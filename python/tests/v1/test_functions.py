"""What functions of tf.compat.v1 do otherwise than those of tf; values and messages
are those of TensorFlow 2.21."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
X = np.array([[1.0, 2.0]], "f")


def _sparse():
    return tf.sparse.from_dense(X)


def _plain(value):
    if isinstance(value, tf.SparseTensor):
        value = tf.sparse.to_dense(value)
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value.numpy().tolist()


CASES = {
    "keep_dims": (lambda: v1.reduce_sum(X, keep_dims=True), [[3]]),
    "reduction_indices": (lambda: v1.reduce_sum(X, reduction_indices=[1]), [3]),
    "dimension": (lambda: v1.argmax(X, dimension=1), [1]),
    "dim": (lambda: v1.expand_dims(X, dim=0), [X.tolist()]),
    "squeeze_dims": (lambda: v1.squeeze(X, squeeze_dims=[0]), [1, 2]),
    "softmax_dim": (lambda: v1.nn.softmax(X, dim=0), [[1, 1]]),
    "div": (lambda: v1.div(7, 2), 3),
    "div_floats": (lambda: v1.div(7.0, 2.0), 3.5),
    "to_float": (lambda: v1.to_float([1, 2]), [1, 2]),
    "size": (lambda: v1.size(_sparse()), 2),
    "shape": (lambda: v1.shape(X, out_type=tf.int64), [1, 2]),
    "where": (lambda: v1.where([True, False], [[1], [2]], [[3], [4]]), [[1], [4]]),
    "reduce_join": (lambda: v1.reduce_join([["a", "b"]], [1]), [b"ab"]),
    "sparse_add": (lambda: v1.sparse_add(_sparse(), _sparse(), thresh=3.0), [[0, 4]]),
    "sparse_sum": (lambda: v1.sparse_reduce_sum(_sparse(), reduction_axes=0), [1, 2]),
    "sparse_sum_sparse": (lambda: v1.sparse_reduce_sum_sparse(_sparse(), 1), [3]),
    "sparse_split": (
        lambda: v1.sparse_split(axis=1, num_split=2, sp_input=_sparse()),
        [[[1]], [[2]]],
    ),
    "sparse_to_dense": (lambda: v1.sparse_to_dense([0], [2], 1.0), [1, 0]),
    "setdiff1d": (lambda: v1.setdiff1d([1, 2, 3], [2])[0], [1, 3]),
    "batch_gather": (lambda: v1.batch_gather([[1, 2], [3, 4]], [[1], [0]]), [[2], [3]]),
    "nearest": (
        lambda: v1.image.resize_images(_square(), [3, 3], method=1)[0, :, :, 0],
        [[0, 0, 1], [0, 0, 1], [2, 2, 3]],
    ),
    "aligned": (
        lambda: v1.image.resize_images(_square(), [3, 3], align_corners=True)[
            0, ..., 0
        ],
        [[0, 0.5, 1], [1, 1.5, 2], [2, 2.5, 3]],
    ),
    "average_norm": (lambda: v1.clip_by_average_norm([3.0, 4.0], 1.0), [1.2, 1.6]),
    "moments": (lambda: v1.nn.moments(X, [1], keep_dims=True), [[[1.5]], [[0.25]]]),
    "weighted": (
        lambda: v1.nn.weighted_moments(X, [1], [[1.0, 3.0]]),
        [[1.75], [0.1875]],
    ),
    "sufficient": (
        lambda: v1.nn.sufficient_statistics(X, [0], shift=1.0, keep_dims=True),
        [1, [[0, 1]], [[0, 1]], 1],
    ),
    "relu_layer": (lambda: v1.nn.relu_layer(X, [[1.0], [1.0]], [1.0]), [[4]]),
    "keep_prob": (lambda: v1.nn.dropout(X, keep_prob=1.0), X.tolist()),
    "lbeta": (lambda: v1.lbeta([1.0, 2.0]), -0.6931),
    "cond": (lambda: v1.cond(True, fn1=lambda: [tf.constant(1)], fn2=lambda: [2]), 1),
    "split": (
        lambda: v1.string_split(["a,b,,c"], delimiter=",").values,
        [b"a", b"b", b"c"],
    ),
    "split_all": (
        lambda: v1.string_split(["a,,c"], delimiter=",", skip_empty=False).values,
        [b"a", b"", b"c"],
    ),
    "split_ragged": (
        lambda: v1.strings.split(["a b"], result_type="RaggedTensor").values,
        [b"a", b"b"],
    ),
    "crossing": (
        lambda: v1.nn.softmax_cross_entropy_with_logits(labels=X, logits=X),
        [1.9398],
    ),
}


def _listed(value):
    return value if isinstance(value, list) else [value]


def _square():
    return np.arange(4.0, dtype="f").reshape(1, 2, 2, 1)


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    call, want = CASES[name]
    made = call()
    if getattr(made, "dtype", None) == tf.string:
        assert made.numpy().tolist() == want
    else:
        for got, expected in zip(*map(_listed, (_plain(made), want))):
            np.testing.assert_allclose(got, expected, atol=1e-4)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (
            lambda: v1.reduce_sum(X, axis=0, reduction_indices=1),
            ValueError,
            "Cannot specify both 'reduction_indices' and 'axis'.",
        ),
        (
            lambda: v1.reduce_sum(X, keepdims=True, keep_dims=False),
            ValueError,
            "Cannot specify both 'keep_dims' and 'keepdims'.",
        ),
        (
            lambda: v1.nn.conv2d(X, X, [1], "SAME", filters=X),
            ValueError,
            "Cannot specify both 'filter' and 'filters'.",
        ),
        (lambda: v1.argmax(), TypeError, "argmax.. missing a required argument"),
        (lambda: v1.argmax(X, bad=1), TypeError, "unexpected keyword argument 'bad'"),
        (lambda: v1.expand_dims(X), ValueError, "Must specify an axis argument"),
        (lambda: v1.cond(True, lambda: 1), TypeError, "'false_fn' argument required"),
        (lambda: v1.nn.dropout(X, 0.5, rate=0.3), ValueError, "'keep_prob' and 'rate'"),
        (
            lambda: v1.constant(1.0, shape=[2], verify_shape=True),
            TypeError,
            r"with shape \(2,\), but got shape \(\).",
        ),
        (
            lambda: v1.sparse_split(1, 2, X),
            ValueError,
            "Keyword arguments are required",
        ),
        (
            lambda: v1.assert_equal([1, 2], [1, 3], data=["a", 5]),
            tf.errors.InvalidArgumentError,
            "^a\n5$",
        ),
        (
            lambda: v1.assert_less(3, 2, data=[7], message="m"),
            tf.errors.InvalidArgumentError,
            "^m\n7$",
        ),
        (
            lambda: v1.assert_positive([-1], data=["d", 3], message="m"),
            tf.errors.InvalidArgumentError,
            "^d\n3$",
        ),
        (
            lambda: v1.assert_rank(X, 3, message="m"),
            ValueError,
            "m.  Tensor  must have rank 3.  Received rank 2, shape",
        ),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_in_graphs():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2])
        loss = v1.reduce_mean(
            v1.nn.softmax_cross_entropy_with_logits(labels=x, logits=2 * x)
        )
        slope = v1.gradients(loss, x)[0]
        padded = v1.constant([1, 2], shape=[4])
        sparse = v1.sparse_placeholder(tf.float32, [2, 3])
        assert sparse.dense_shape.op.type == "PlaceholderWithDefault"
        total = v1.sparse_reduce_sum(sparse)
        check = v1.assert_less(x, 5.0, data=["too large", x])
        feeds = {x: X, sparse: v1.SparseTensorValue([[0, 1]], [4.0], [2, 3])}
        made = session.run([loss, padded, total, slope], feeds)
        assert made[1].tolist() == [1, 2, 2, 2] and made[2] == 4
        # No gradient reaches the labels.
        soft = np.exp(2 * X) / np.exp(2 * X).sum()
        np.testing.assert_allclose(made[3], 2 * (soft - X), rtol=1e-5)
        with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
            session.run(check, {x: X + 9})
        unknown = v1.placeholder(tf.float32)
        ranked = v1.assert_rank(unknown, 1, data=["rank"])
        session.run(ranked, {unknown: [1.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="rank"):
            session.run(ranked, {unknown: 1.0})


def test_deprecated_functions_say_so_once_a_place(caplog):
    for _ in range(2):
        v1.to_int32(1.5)
    text = caplog.text
    assert text.count("to_int32 (from headrace) is deprecated") == 1
    assert "Use `tf.cast` instead." in text


def test_hessians():
    @tf.function
    def second(x):
        return tf.hessians(tf.reduce_sum(x * x * x), x)

    made = second(tf.constant([1.0, 2.0]))
    assert made[0].numpy().tolist() == [[6, 0], [0, 12]]


@pytest.mark.parametrize("frames", [False, True])
def test_hessians_of_unknown_shapes(frames):
    switch = v1.disable_control_flow_v2 if frames else v1.enable_control_flow_v2
    switch()
    try:
        with tf.Graph().as_default() as graph:
            x = v1.placeholder(tf.float32, [None])
            z = v1.placeholder(tf.float32, [None, 2])
            w = v1.placeholder(tf.float32)
            made = tf.hessians(tf.reduce_sum(x**3) + x[0] * x[1], x)
            made += tf.hessians(tf.reduce_sum(z**2 * tf.reverse(z, [1])), z)
            made += tf.hessians(tf.reduce_sum(tf.exp(w)), w)
            with pytest.raises(ValueError, match="None values not supported."):
                tf.hessians(tf.reduce_sum(x), x)
        assert [h.shape.rank for h in made] == [2, 4, None]
        assert made[1].shape.as_list() == [None, 2, None, 2]
        feed = {x: [1.0, 2.0, 3.0], z: [[1.0, 2.0]], w: [0.0, 1.0]}
        with v1.Session(graph=graph) as sess:
            first, second, third = sess.run(made, feed)
        assert first.tolist() == [[6, 1, 0], [1, 12, 0], [0, 0, 18]]
        assert second.tolist() == [[[[4, 6]], [[6, 2]]]]
        np.testing.assert_allclose(third, [[1, 0], [0, 2.7182817]], rtol=1e-6)
    finally:
        v1.enable_control_flow_v2()


def test_checks_of_all_numbers():
    with pytest.raises(RuntimeError, match="not compatible with eager execution"):
        v1.add_check_numerics_ops()
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2], name="x")
        halves = tf.split(tf.cast(x, tf.float16), 2, name="halves")
        whole = tf.cast(x, tf.int32) + tf.constant(1)
        log = tf.math.log(x, name="log")
        checked = v1.add_check_numerics_ops()
        assert checked.type == "NoOp"
        found = [op for op in graph.get_operations() if op.type == "CheckNumerics"]
        assert [op.get_attr("message") for op in found] == [
            op.inputs[0].name.encode() for op in found
        ]
        names = {op.inputs[0].name for op in found}
        assert {"x:0", "halves:0", "halves:1", "log:0"} <= names
        assert whole.name not in names
        for before, after in zip(found, found[1:]):
            assert after.control_inputs == [before]
        with tf.control_dependencies([checked]):
            safe = tf.identity(log)
        with v1.Session() as session:
            np.testing.assert_allclose(session.run([log, safe], {x: [1, 1]}), 0)
            with pytest.raises(tf.errors.InvalidArgumentError, match="log:0 : .*NaN"):
                session.run([log, safe], {x: [-1, 1]})
            with pytest.raises(tf.errors.InvalidArgumentError, match="x:0 : .*Inf"):
                session.run([log, safe], {x: [np.inf, 1]})


def test_norms_of_one_type_scale_all_types():
    values = [
        tf.constant([-3.0, 0.0]),
        tf.constant([4.0, 0.0], tf.bfloat16),
        None,
        tf.IndexedSlices(tf.constant([[1.0]], tf.float64), tf.constant([0])),
    ]
    made, norm = tf.clip_by_global_norm(values, 4.0, use_norm=tf.constant(5.0))
    assert norm.dtype == tf.float32 and made[2] is None
    assert [made[i].dtype for i in (0, 1)] == [tf.float32, tf.bfloat16]
    np.testing.assert_allclose(made[0], [-2.4, 0], rtol=1e-6)
    assert float(made[1][0]) == 3.203125
    np.testing.assert_allclose(made[3].values, [[0.8]], rtol=1e-6)


def test_what_assertions_that_hold_give():
    v1, debugging = tf.compat.v1, tf.debugging
    sparse, ragged = tf.sparse.from_dense([[1]]), tf.ragged.constant([[1]])

    def given():
        one = tf.constant(1)
        held = [v1.assert_type(x, tf.int32) for x in (one, sparse, ragged)]
        held += [v1.assert_integer(one), v1.assert_rank(one, 0)]
        assert debugging.assert_type(one, tf.int32) is None
        assert debugging.assert_integer(one) is None
        assert debugging.assert_scalar(one) is None
        return held, v1.assert_scalar(one)

    held, scalar = given()
    assert held == [None] * 5 and scalar == 1
    with tf.Graph().as_default():
        sparse, ragged = tf.sparse.from_dense([[1]]), tf.ragged.constant([[1]])
        held, scalar = given()
        assert [op.type for op in held] == ["NoOp"] * 5 and tf.is_tensor(scalar)
        with pytest.raises(TypeError, match="must be of type"):
            v1.assert_type(sparse, tf.float32)


@pytest.mark.parametrize("name", "sample_from_datasets choose_from_datasets".split())
def test_datasets_of_datasets(name):
    made = getattr(tf.compat.v1.data.experimental, name)
    datasets = [tf.data.Dataset.range(2)] * 2
    rest = [tf.data.Dataset.range(2)] if name[0] == "c" else []
    assert len(list(made(datasets, *rest))) in (2, 4)


def _cells(values, dtype=tf.int64):
    places = [[0, 0], [0, 2], [1, 1]]
    return tf.SparseTensor(places, tf.constant(values, dtype), [2, 4])


def test_sparse_merge():
    merge = v1.sparse.merge
    weights = _cells([1.0, 2.0, 3.0], tf.float32)
    found = merge(_cells([3, 1, 2]), weights, 5)
    assert found.indices.numpy().tolist() == [[0, 1], [0, 3], [1, 2]]
    assert found.values.numpy().tolist() == [2, 1, 3]
    assert found.dense_shape.numpy().tolist() == [2, 5]
    kept = merge(_cells([3, 1, 2]), weights, 5, already_sorted=True)
    assert kept.values.numpy().tolist() == [1, 2, 3]
    several = merge([_cells([3, 1, 2]), _cells([1, 0, 2])], weights, [5, 4])
    assert several.indices.numpy().tolist() == [[0, 1, 0], [0, 3, 1], [1, 2, 2]]
    assert several.dense_shape.numpy().tolist() == [2, 5, 4]
    with pytest.raises(TypeError, match="Input must be a SparseTensor."):
        merge(_cells([3, 1, 2]), 3, 5)
    with pytest.raises(TypeError, match="vocab_size has to be a list of Tensors"):
        merge([_cells([3, 1, 2])], weights, 5)
    with pytest.raises(TypeError, match="vocab_size has to be a Tensor or Python int"):
        merge(_cells([3, 1, 2]), weights, [5])
    with pytest.raises(ValueError, match="have to have equal lengths"):
        merge([_cells([3, 1, 2])], weights, [5, 4])


def test_spectral_names():
    x = np.sin(np.arange(4) * 0.7 + 1).astype("f4")
    np.testing.assert_allclose(v1.spectral.dct(x), tf.signal.dct(x))
    np.testing.assert_allclose(v1.spectral.idct(x), tf.signal.idct(x))


def test_what_may_be_fed_is_not_known():
    with tf.Graph().as_default(), v1.Session() as session:
        given = v1.placeholder_with_default(1, [])
        assert tf.get_static_value(given) is None
        assert tf.get_static_value(tf.equal(given, 1)) is None
        assert tf.get_static_value(tf.equal(tf.constant(1), 1))
        assert session.run(tf.equal(given, 1), {given: 2}) == np.False_


def test_assignments_have_the_names_they_are_given():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.get_variable("x", initializer=[1.0, 2.0])
        assert x.assign([3.0, 4.0], name="set", read_value=False).name == "set"
        assert x.assign_add([1.0, 1.0], name="more", read_value=False).name == "more"
        less = x.assign_sub([1.0, 2.0], name="less", read_value=False)
        session.run(x.initializer)
        session.run(less)
        assert session.run(x).tolist() == [0.0, 0.0]
        with pytest.raises(ValueError, match="Shape mismatch"):
            x.assign([1.0], name="wrong")
