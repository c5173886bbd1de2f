"""Tables in buckets: refusals, growth, removal, graphs."""

import headrace as tf
import numpy as np
import pytest

raw = tf.raw_ops
Invalid = tf.errors.InvalidArgumentError


def _long(values):
    return tf.constant(values, tf.int64)


def _table(**more):
    given = {"empty_key": _long(0), "deleted_key": _long(-1), "value_dtype": tf.int64}
    return raw.AnonymousMutableDenseHashTable(**{**given, **more})


def _insert(table, keys, values):
    raw.LookupTableInsertV2(table_handle=table, keys=keys, values=values)


def _find(table, keys, default=-7):
    asked = {"keys": _long(keys), "default_value": _long(default)}
    return raw.LookupTableFindV2(table_handle=table, **asked).numpy().tolist()


@pytest.mark.parametrize(
    "more, text",
    [
        ({"deleted_key": _long(0)}, "Empty and deleted keys cannot be equal"),
        ({"deleted_key": _long([0])}, "got shapes: \\[\\] and \\[1\\]"),
        ({"initial_num_buckets": 3}, "at least 4 and a power of 2, got: 3"),
        ({"initial_num_buckets": 0}, "got: 0"),
        ({"initial_num_buckets": -4}, "got: -4"),
        ({"max_load_factor": 0.0}, "must be between 0 and 1, got: 0"),
        ({"max_load_factor": 1.0}, "must be between 0 and 1, got: 1"),
        ({"max_load_factor": float("nan")}, "got: nan"),
        ({"value_shape": [-1]}, "is not fully defined"),
    ],
)
def test_tables_that_cannot_be(more, text):
    with pytest.raises(Invalid, match=text):
        _table(**more)


def test_tables_for_which_there_is_no_room():
    with pytest.raises((tf.errors.ResourceExhaustedError, Invalid)):
        _table(initial_num_buckets=1 << 60)
    with pytest.raises((tf.errors.ResourceExhaustedError, Invalid)):
        _table(value_shape=[1 << 50])
    with pytest.raises(tf.errors.NotFoundError, match="keys of float"):
        _table(empty_key=0.0, deleted_key=1.0)


def test_reserved_keys_are_refused():
    table = _table()
    _insert(table, _long([1, 2]), _long([10, 20]))
    for key, name in ((0, "empty_key"), (-1, "deleted_key")):
        text = f"Using the {name} as a table key is not allowed"
        with pytest.raises(Invalid, match=text):
            _insert(table, _long([5, key]), _long([1, 2]))
        with pytest.raises(Invalid, match=text):
            _find(table, [key])
        with pytest.raises(Invalid, match=text):
            raw.LookupTableRemoveV2(table_handle=table, keys=_long([key]))
    # What was refused changed nothing.
    assert _find(table, [1, 2, 5]) == [10, 20, -7]


def test_shapes_are_checked():
    table = _table(
        empty_key=_long([0, 0]),
        deleted_key=_long([-1, -1]),
        value_dtype=tf.float32,
        value_shape=[3],
    )
    keys = _long([[1, 2], [3, 4]])
    with pytest.raises(Invalid, match="Expected shape \\[2,3\\] for value, got \\[2"):
        _insert(table, keys, tf.ones([2, 2]))
    with pytest.raises(Invalid, match="Expected key shape \\[2\\] got"):
        _insert(table, _long([1, 2, 3]), tf.ones([3, 3]))
    with pytest.raises(Invalid, match="Expected key shape \\[2\\] got \\[\\]"):
        asked = {"keys": _long(1), "default_value": tf.zeros([3])}
        raw.LookupTableFindV2(table_handle=table, **asked)
    with pytest.raises(Invalid, match="Expected rows of keys"):
        raw.LookupTableImportV2(
            table_handle=table, keys=_long([[1, 2]]), values=tf.ones([2, 3])
        )
    with pytest.raises(Invalid, match="for default value, got \\[2\\]"):
        asked = {"keys": keys, "default_value": tf.zeros([2])}
        raw.LookupTableFindV2(table_handle=table, **asked)


@pytest.mark.parametrize("kind", [tf.int32, tf.int64, tf.string])
def test_many_keys_come_and_go(kind):
    """Deleted keys take no room for ever, and none is lost when buckets double."""
    draw = np.random.RandomState(0)

    def keys(numbers):
        numbers = tf.constant(numbers, tf.int64)
        return (
            tf.strings.as_string(numbers)
            if kind == tf.string
            else tf.cast(numbers, kind)
        )

    reserved = keys([-1, -2])
    table = _table(
        empty_key=reserved[0], deleted_key=reserved[1], initial_num_buckets=4
    )
    wanted = {}
    for _ in range(60):
        numbers = draw.randint(0, 200, 10)
        _insert(table, keys(numbers), _long(numbers * 3))
        wanted.update({n: n * 3 for n in numbers.tolist()})
        gone = draw.randint(0, 200, 9)
        raw.LookupTableRemoveV2(table_handle=table, keys=keys(gone))
        for n in gone.tolist():
            wanted.pop(n, None)
        assert raw.LookupTableSizeV2(table_handle=table).numpy() == len(wanted)
    found = raw.LookupTableFindV2(
        table_handle=table, keys=keys(np.arange(200)), default_value=_long(-7)
    )
    assert found.numpy().tolist() == [wanted.get(n, -7) for n in range(200)]
    # What is exported fills another table.
    parts = raw.LookupTableExportV2(table_handle=table, Tkeys=kind, Tvalues=tf.int64)
    other = _table(empty_key=reserved[0], deleted_key=reserved[1])
    raw.LookupTableImportV2(table_handle=other, keys=parts[0], values=parts[1])
    assert raw.LookupTableSizeV2(table_handle=other).numpy() == len(wanted)


def test_names_and_types():
    given = {"empty_key": _long(0), "deleted_key": _long(-1), "shared_name": "a_dense"}
    table = raw.MutableDenseHashTableV2(value_dtype=tf.int64, **given)
    same = raw.MutableDenseHashTableV2(value_dtype=tf.int64, **given)
    _insert(table, _long([3]), _long([4]))
    assert _find(same, [3]) == [4]
    with pytest.raises(Invalid, match="int64->int32 with int64-int64 for table a_den"):
        raw.MutableDenseHashTableV2(value_dtype=tf.int32, **given)


def test_shapes_in_graphs():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        table = _table(value_shape=[2], value_dtype=tf.float32)
        asked = tf.compat.v1.placeholder(tf.int64)
        add = raw.LookupTableInsertV2(
            table_handle=table, keys=_long([5]), values=tf.constant([[1.0, 2.0]])
        )
        found = raw.LookupTableFindV2(
            table_handle=table, keys=_long([5, 6]), default_value=tf.zeros([2])
        )
        open_ = raw.LookupTableFindV2(
            table_handle=table, keys=asked, default_value=tf.zeros([2])
        )
        kinds = {"Tkeys": tf.int64, "Tvalues": tf.float32}
        keys, values = raw.LookupTableExportV2(table_handle=table, **kinds)
        assert found.shape == [2, 2] and open_.shape.rank is None
        assert keys.shape.as_list() == [None, None]
        assert values.shape.as_list() == [None, 2]
        assert add is None or session
        assert session.run(open_, {asked: [[9]]}).tolist() == [[[0, 0]]]


def test_the_class_uses_them():
    table = tf.lookup.experimental.DenseHashTable(
        tf.string, tf.int64, -1, "", "gone", initial_num_buckets=8
    )
    table.insert(["a", "b"], _long([1, 2]))
    table.remove(["a"])
    assert table.lookup(["a", "b"]).numpy().tolist() == [-1, 2]
    keys, _ = table.export()
    assert sorted(set(keys.numpy()[:, 0])) == [b"", b"b", b"gone"]
    with pytest.raises(Invalid, match="empty_key"):
        table.insert([""], _long([1]))
