"""What is known of the shapes of sparse tensors while graphs are built. Expected:
TensorFlow 2.21."""

import headrace as tf
import pytest


def _shapes(function, *specs):
    """The static shapes of what a traced function computes of sparse tensors."""
    found = []

    def traced(*tensors):
        found[:] = [x.shape for x in tf.nest.flatten(function(*tensors))]
        return 0

    signature = [tf.SparseTensorSpec(s) for s in specs]
    tf.function(traced, input_signature=signature).get_concrete_function()
    return [None if s.rank is None else tuple(s) for s in found]


_ROWS = {
    "sum": (tf.sparse.add, [[2, 3], [2, 3]], (2, 3)),
    "sum of what both know": (tf.sparse.add, [[None, 3], [2, None]], (2, 3)),
    "sum of unknown rows": (tf.sparse.add, [[None, 3], [None, 3]], (None, None)),
    "reordered": (tf.sparse.reorder, [[None, 3]], (None, 3)),
    "transposed": (tf.sparse.transpose, [[2, 3]], (3, 2)),
    "transposed, unknown rows": (tf.sparse.transpose, [[None, 3]], (None, None)),
    "transposed, unknown rank": (tf.sparse.transpose, [None], None),
    "permuted": (lambda x: tf.sparse.transpose(x, [0, 2, 1]), [[2, 3, 4]], (2, 4, 3)),
    "flat": (lambda x: tf.sparse.reshape(x, [-1]), [[2, 3]], (6,)),
    "reshaped": (lambda x: tf.sparse.reshape(x, [-1, 9]), [[2, 3, 3]], (2, 9)),
    "reshaped, unknown rows": (
        lambda x: tf.sparse.reshape(x, [-1, 9]),
        [[None, 3, 3]],
        (None, None),
    ),
    "joined": (lambda x, y: tf.sparse.concat(0, [x, y]), [[2, 3], [4, 3]], (6, 3)),
    "joined, unknown rows": (
        lambda x, y: tf.sparse.concat(0, [x, y]),
        [[2, 3], [None, 3]],
        (None, 3),
    ),
    "joined along the last": (
        lambda x, y: tf.sparse.concat(-1, [x, y]),
        [[None, 3], [None, 3]],
        (None, 6),
    ),
    "joined, unknown rank": (
        lambda x, y: tf.sparse.concat(0, [x, y]),
        [[2, 3], None],
        (None, None),
    ),
    "joined and widened": (
        lambda x, y: tf.sparse.concat(0, [x, y], expand_nonconcat_dims=True),
        [[2, 3], [2, 4]],
        (4, 4),
    ),
    "identity": (tf.identity, [[None, 3]], (None, 3)),
    "of parts again": (
        lambda x: tf.nest.map_structure(tf.identity, x, expand_composites=True),
        [[None, 3]],
        (None, 3),
    ),
    "of a call": (tf.function(lambda x: x), [[None, 3]], (None, 3)),
    "other values": (
        lambda x: tf.sparse.map_values(tf.abs, x),
        [[None, 3]],
        (None, None),
    ),
}


@pytest.mark.parametrize("row", _ROWS)
def test_shapes_of_results(row):
    function, specs, expected = _ROWS[row]
    assert _shapes(function, *specs) == [expected]


def test_branches_know_what_they_have_in_common():
    def like(x, shape):
        made = tf.SparseTensor(x.indices, x.values * 2.0, x.dense_shape)
        made.set_shape(shape)
        return made

    def cond(*shapes):
        def either(x):
            branches = [lambda s=s: like(x, s) for s in shapes]
            return tf.cond(tf.size(x.values) > 1, *branches)

        return _shapes(either, [None, None])

    assert cond([None, 3], [None, 3]) == [(None, 3)]
    assert cond([2, 3], [None, 3]) == [(None, 3)]
    assert cond([None, 3], [2, None]) == [(None, None)]

    def case(x):
        index = tf.size(x.values)
        return tf.switch_case(index, [lambda: like(x, [2, 3]), lambda: like(x, [4, 3])])

    assert _shapes(case, [None, None]) == [(None, 3)]


def test_loops_may_change_the_shape():
    def grown(x):
        def turn(i, y):
            return i + 1, tf.sparse.concat(0, [y, y])

        return tf.while_loop(lambda i, y: i < 2, turn, [0, x])[1]

    x = tf.sparse.from_dense([[1.0, 0.0]])
    assert tf.function(grown)(x).dense_shape.numpy().tolist() == [4, 2]


def test_what_cannot_be_is_refused_while_tracing():
    with pytest.raises(ValueError, match=r"Shapes \(2, 3\) and \(2, 2\) are"):
        _shapes(tf.sparse.add, [2, 3], [2, 2])
    for shape, message in (
        ([-1, 4], r"Cannot reshape a tensor with 6 elements to shape \[None, 4\] \(4"),
        ([7], r"Cannot reshape a tensor with 6 elements to shape \[7\] \(7 elements"),
        ([-1, -1], "At most one dimension can be inferred"),
    ):
        with pytest.raises(ValueError, match=message):
            _shapes(lambda x, s=shape: tf.sparse.reshape(x, s), [2, 3])


def test_a_transpose_of_unknown_rank_runs():
    transpose = tf.function(
        lambda x: tf.sparse.to_dense(tf.sparse.transpose(x)),
        input_signature=[tf.SparseTensorSpec(None)],
    )
    found = transpose(tf.sparse.from_dense([[1.0, 0.0, 2.0]]))
    assert found.numpy().tolist() == [[1.0], [0.0], [2.0]]


def test_placeholders_have_a_default_shape():
    with tf.Graph().as_default() as graph:
        placeholder = tf.compat.v1.sparse_placeholder(tf.float32, [None, 3], name="sp")
        ops = [(op.name, op.type) for op in graph.get_operations()]
        assert placeholder.shape.as_list() == [None, 3]
        assert placeholder.indices.shape.as_list() == [None, 2]
        with tf.compat.v1.Session() as session:
            assert session.run(placeholder.dense_shape).tolist() == [-1, 3]
    assert ops == [
        ("sp/shape_default", "Const"),
        ("sp/shape", "PlaceholderWithDefault"),
        ("sp/values", "Placeholder"),
        ("sp/indices", "Placeholder"),
    ]
