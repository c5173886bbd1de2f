"""RowPartition, DynamicRaggedShape and StructuredTensor: as TensorFlow answered (the
sessions of tests/golden), traced, broadcast, in datasets and loops."""

import pytest
import sessions

import headrace as tf

RP = tf.experimental.RowPartition
Shape = tf.experimental.DynamicRaggedShape
Records = tf.experimental.StructuredTensor
FILES = ("row_partitions", "ragged_shapes", "structured_tensors")
SECTIONS = [(name, title) for name in FILES for title in sessions.titles(name)]


@pytest.mark.parametrize("name, title", SECTIONS)
def test_as_recorded(name, title):
    sessions.check(name, title, tf)


def _traced(*specs):
    return tf.function(input_signature=[tf.TensorSpec(s, tf.int64) for s in specs])


def test_partitions_in_traces():
    @_traced([None], [None], [])
    def sizes(splits, ids, length):
        a = RP.from_row_splits(splits)
        b = RP.from_value_rowids(ids, nrows=4)
        c = RP.from_uniform_row_length(length, nrows=3)
        assert (a.static_nrows, b.static_nrows, c.static_nrows) == (None, 4, 3)
        assert c.is_uniform() and c.static_uniform_row_length is None
        return a.row_lengths(), b.row_splits(), c.row_splits(), a.offsets_in_rows()

    given = [tf.constant(x, tf.int64) for x in ([0, 2, 2, 5], [0, 0, 2], 2)]
    assert [x.numpy().tolist() for x in sizes(*given)] == [
        [2, 0, 3],
        [0, 2, 2, 3, 3],
        [0, 2, 4, 6],
        [0, 1, 0, 1, 2],
    ]
    for bad in ([1, 2], [0, 2, 1]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="from_row_splits"):
            sizes(tf.constant(bad, tf.int64), *given[1:])
    with pytest.raises(tf.errors.InvalidArgumentError, match="from_value_rowids"):
        sizes(given[0], tf.constant([0, 7], tf.int64), given[2])

    @_traced([None], [])
    def starts(begin, nvals):
        return RP.from_row_starts(begin, nvals).row_splits()

    assert starts([0, 2], 5).numpy().tolist() == [0, 2, 5]
    with pytest.raises(tf.errors.InvalidArgumentError, match="from_row_starts"):
        starts([0, 6], 5)


def test_traces_know_sizes_of_partitions():
    seen = []

    @tf.function
    def nvals(p):
        seen.append((p.static_nrows, p.static_nvals, p.static_uniform_row_length))
        return p.nvals()

    assert nvals(RP.from_row_splits([0, 2, 5])) == 5
    assert nvals(RP.from_row_splits([0, 1, 2])) == 2
    assert nvals(RP.from_uniform_row_length(2, nrows=3)) == 6
    assert seen == [(2, None, None), (3, 6, 2)]


def test_ragged_tensors_of_partitions():
    p = RP.from_row_lengths([2, 0, 1])
    made = tf.RaggedTensor._from_row_partition(tf.constant([1, 2, 3]), p)
    assert made.to_list() == [[1, 2], [], [3]]
    assert made._row_partition.row_splits().numpy().tolist() == [0, 2, 2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="_from_row_partition"):
        tf.RaggedTensor._from_row_partition(tf.constant([1, 2]), p)
    with pytest.raises(TypeError, match="must be a RowPartition"):
        tf.RaggedTensor._from_row_partition(tf.constant([1, 2]), [0, 2])
    nested = tf.RaggedTensor._from_nested_row_partitions(
        tf.constant([1, 2, 3]), [RP.from_row_lengths([2, 1]), p]
    )
    assert nested.to_list() == [[[1, 2], []], [[3]]]


BROADCASTS = (  # (lengths of two shapes, those of what they make)
    ([3, (1, 4, 2)], [3, (1, 4, 2)], [3, (1, 4, 2)]),
    ([1, 2, (1, 4)], [3, 2, (1, 4, 1, 4, 1, 4)], [3, 2, (1, 4, 1, 4, 1, 4)]),
    ([1, 4, 5], [3, 1, 1], [3, 4, 5]),
    ([3], [4, 2, 1], [4, 2, 3]),
    ([2, (1, 3), 1], [2, (1, 3), (3, 4, 5, 6)], [2, (1, 3), (3, 4, 5, 6)]),
    ([5, (1, 2, 0, 3, 1)], [1, 5, (1, 2, 0, 3, 1)], [1, 5, (1, 2, 0, 3, 1)]),
    ([1, 3, (5, 1, 6)], [2, 1, 1], [2, 3, (5, 1, 6, 5, 1, 6)]),
    ([], [2, (2, 3), (5, 7, 2, 0, 9)], [2, (2, 3), (5, 7, 2, 0, 9)]),
    ([3], [3, (2, 3, 1), 1], [3, (2, 3, 1), 3]),
    (
        [1, 3, (3, 0, 2), 1, 2],
        [2, 1, 1, (7, 2), 1],
        [2, 3, (3, 0, 2, 3, 0, 2), (7, 7, 7, 7, 7, 2, 2, 2, 2, 2), 2],
    ),
    ([2, (2, 1), 2, 1], [1, 1, 2, (2, 1)], [2, (2, 1), 2, (2, 1, 2, 1, 2, 1)]),
)


@pytest.mark.parametrize("a, b, wanted", BROADCASTS)
def test_shapes_broadcast(a, b, wanted):
    shapes = [Shape.from_lengths(x) for x in (a, b)]
    for pair in (shapes, shapes[::-1]):
        made = tf.broadcast_dynamic_shape(*pair)
        assert made.static_lengths() == wanted
        traced = tf.function(tf.broadcast_dynamic_shape)(*pair)
        assert traced.static_lengths() == wanted
    target = Shape.from_lengths(wanted)
    for shape in shapes:
        count = int(shape._num_elements())
        x = tf.reshape(tf.range(count), shape)
        whole = tf.broadcast_to(x, target)
        assert Shape.from_tensor(whole).static_lengths() == wanted
        # What each element came from: adding zeros broadcasts, too.
        same = x + tf.zeros(target, tf.int32)
        assert _plain(whole) == _plain(same)


def _plain(x):
    return x.to_list() if hasattr(x, "to_list") else x.numpy().tolist()


def test_gradients_of_broadcasts():
    target = Shape.from_row_partitions([RP.from_row_splits([0, 4, 7, 8])])
    x = tf.constant([[3.0], [1.0], [4.0]])

    def total(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.broadcast_to(x, target)
        return tape.gradient(y.flat_values, x)

    for run in (total, tf.function(total)):
        assert run(x).numpy().tolist() == [[4.0], [3.0], [1.0]]


def test_shapes_of_open_sizes():
    @_traced([None])
    def of(sizes):
        shape = Shape([RP.from_row_lengths([3, 3])], sizes)
        assert repr(shape) == (
            "<DynamicRaggedShape lengths=[2, (3, 3), ...] num_row_partitions=1>"
        )
        assert shape.rank is None and shape[:1].static_lengths() == [2]
        for unknown in (lambda: shape[-1], lambda: shape._with_inner_rank(1)):
            with pytest.raises(ValueError, match="Rank must be known"):
                unknown()
        return shape._num_elements()

    assert of(tf.constant([6, 3], tf.int64)) == 18

    @_traced([])
    def partly(n):
        a = Shape([], tf.stack([5, n, 3]))
        made = tf.broadcast_dynamic_shape(a, Shape.from_lengths([1, 3]))
        assert made.static_lengths() == [5, None, 3]
        return made.inner_shape

    assert partly(2).numpy().tolist() == [5, 2, 3]


def test_comparisons_of_ragged_tensors():
    a = tf.RaggedTensor.from_row_splits([[1, 2]], [0, 1])
    b = tf.RaggedTensor.from_row_splits([[3, 4, 5]], [0, 1])
    assert (a == b) is False and (a != b) is True and (a == "x") is False
    narrow = tf.ragged.constant([[1, 2]], row_splits_dtype=tf.int32)
    with pytest.raises(ValueError, match="mismatched row_splits dtypes"):
        tf.ragged.constant([[1, 2]]) + narrow


def test_records_in_loops():
    records = Records.from_pyval([{"x": 1, "y": [1, 2]}, {"x": 3, "y": []}])

    @tf.function
    def add(records, n):
        for _ in tf.range(n):
            records = records.with_updates({"x": lambda x: x + 1})
        return records

    made = add(records, 3)
    assert made.to_pyval() == [{"x": 4, "y": [1, 2]}, {"x": 6, "y": []}]

    @tf.function
    def lists(records):
        with pytest.raises(ValueError, match="only supported in eager mode"):
            records.to_pyval()
        return records.partition_outer_dimension(RP.from_row_lengths([1, 1, 0]))

    assert lists(records).to_pyval() == [
        [{"x": 1, "y": [1, 2]}],
        [{"x": 3, "y": []}],
        [],
    ]


def test_validation_of_fields_in_graphs():
    @tf.function(input_signature=[tf.RaggedTensorSpec([2, None], tf.int32)] * 2)
    def of(a, b):
        made = Records.from_fields({"a": a, "b": b}, [2, None], validate=True)
        return made.merge_dims(0, 1).field_value("b")

    rows = tf.ragged.constant([[1, 2], [3]])
    assert of(rows, rows * 2).numpy().tolist() == [2, 4, 6]
    with pytest.raises(tf.errors.InvalidArgumentError, match="incompatible row_splits"):
        of(rows, tf.ragged.constant([[1], [2, 3]]))
