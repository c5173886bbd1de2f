"""Ragged and sparse tensors as variables of loops, and what invariants say of them."""

import headrace as tf
import pytest

_ROWS = [[1, 2], [3]]
_SPEC = tf.RaggedTensorSpec([None, None], tf.int32)


def _wider(i, x):
    return i + 1, tf.concat([x, x], 1)


def _longer(i, x):
    return i + 1, tf.concat([x, x], 0)


def _loop(body, invariant=None, start=_ROWS, turns=2):
    """The loop's last variable, as Python lists, and the shape that its trace told."""
    shapes = []

    @tf.function(autograph=False)
    def run():
        x = tf.ragged.constant(start) if isinstance(start, list) else start()
        invariants = None if invariant is None else [tf.TensorShape([]), invariant]
        x = tf.while_loop(
            lambda i, x: i < turns, body, [0, x], shape_invariants=invariants
        )[1]
        shapes.append(x.shape)
        return x

    x = run()
    rank = shapes[0].rank
    return x.to_list(), None if rank is None else shapes[0].as_list()


_WIDE = [row * 4 for row in _ROWS]


@pytest.mark.parametrize(
    "body, invariant, rows, shape",
    [
        (_wider, None, _WIDE, [2, None]),
        (_wider, tf.RaggedTensorSpec([2, None], tf.int32), _WIDE, [2, None]),
        (_wider, tf.TensorShape([None, None]), _WIDE, [None, None]),
        (_wider, [2, None], _WIDE, [2, None]),
        (_wider, tf.TensorShape(None), _WIDE, None),
        (_longer, _SPEC, _ROWS * 4, [None, None]),
        (_longer, tf.TensorShape([None, None]), _ROWS * 4, [None, None]),
    ],
)
def test_values_may_grow_and_rows_where_the_invariant_says_so(
    body, invariant, rows, shape
):
    assert _loop(body, invariant) == (rows, shape)


def test_deeper_and_equal_rows():
    deep = [[[1], [2, 3]], [[]]]
    assert _loop(lambda i, x: (i + 1, tf.concat([x, x], 2)), start=deep)[0] == [
        [[1] * 4, [2, 3] * 4],
        [[]],
    ]

    def uniform():
        inner = tf.ragged.constant([[1, 2], [3], [], [4]])
        return tf.RaggedTensor.from_uniform_row_length(inner, 2)

    assert _loop(lambda i, x: (i + 1, x + 1), start=uniform) == (
        [[[3, 4], [5]], [[], [6]]],
        [2, 2, None],
    )


@pytest.mark.parametrize(
    "body, invariant, error, text",
    [
        (_longer, None, ValueError, r"enters the loop with shape \(3,\)"),
        (_longer, [2, None], ValueError, r"enters the loop with shape \(3,\)"),
        (
            _wider,
            tf.RaggedTensorSpec([3, None], tf.int32),
            TypeError,
            "is not compatible",
        ),
        (_wider, [3, None], TypeError, "is not compatible"),
        (_wider, [None], ValueError, "`ragged_rank` .* must be less than rank"),
        (_wider, tf.TensorSpec([None, None], tf.int32), TypeError, "is not compatible"),
        (_wider, tf.RaggedTensorSpec([None, None]), TypeError, "is not compatible"),
        (
            _wider,
            tf.RaggedTensorSpec([None, None], tf.int32, ragged_rank=0),
            TypeError,
            "is not compatible",
        ),
        (
            _wider,
            tf.RaggedTensorSpec([None, None], tf.int32, row_splits_dtype=tf.int32),
            TypeError,
            "is not compatible",
        ),
        (
            lambda i, x: (i + 1, x.to_tensor()),
            None,
            ValueError,
            "is a sequence, while substructure",
        ),
        (
            lambda i, x: (i + 1, tf.expand_dims(x, 0)),
            None,
            ValueError,
            "Incompatible CompositeTensor TypeSpecs",
        ),
        (
            lambda i, x: (i + 1, tf.cast(x, tf.float32)),
            None,
            ValueError,
            "Incompatible CompositeTensor TypeSpecs",
        ),
        (
            lambda i, x: (i + 1, x.with_row_splits_dtype(tf.int32)),
            None,
            ValueError,
            "Incompatible CompositeTensor TypeSpecs",
        ),
    ],
)
def test_what_does_not_stay_is_refused(body, invariant, error, text):
    with pytest.raises(error, match=text):
        _loop(body, invariant)


def test_in_structures_sessions_and_beside_a_limit():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        state = {"i": tf.constant(0), "r": tf.ragged.constant(_ROWS)}
        shapes = [{"i": tf.TensorShape([]), "r": _SPEC}]
        last = tf.while_loop(
            lambda s: s["i"] < 2,
            lambda s: [{"i": s["i"] + 1, "r": tf.concat([s["r"], [[9]]], 0)}],
            [state],
            shape_invariants=shapes,
            maximum_iterations=1,
        )
        assert session.run(last[0]["r"]).to_list() == [*_ROWS, [9]]


def test_gradients_go_through():
    @tf.function(autograph=False)
    def fourth_power(x):
        rows = tf.RaggedTensor.from_row_splits(x, [0, 2, 3])
        rows = tf.while_loop(lambda i, r: i < 2, lambda i, r: (i + 1, r * r), [0, rows])
        return tf.reduce_sum(rows[1].flat_values)

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fourth_power(x)
    assert tape.gradient(y, x).numpy().tolist() == [4.0, 32.0, 108.0]


def test_invariants_of_sparse_tensors_tell_their_rank():
    def loop(invariant):
        def run():
            x = tf.sparse.from_dense([[1, 0]])
            x = tf.while_loop(
                lambda i, x: i < 2,
                lambda i, x: (i + 1, tf.sparse.concat(0, [x, x])),
                [0, x],
                shape_invariants=[tf.TensorShape([]), tf.TensorShape(invariant)],
            )[1]
            return tf.sparse.to_dense(x)

        return tf.function(run, autograph=False)().numpy().tolist()

    assert loop([2]) == loop([None]) == loop(None) == [[1, 0]] * 4
    with pytest.raises(ValueError, match="Expected a shape with 1 dimension"):
        loop([None, 2])
