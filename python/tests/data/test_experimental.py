"""tf.data.experimental's functions; what they give is what upstream gives."""

import sqlite3

import headrace as tf
import numpy as np
import pytest

X = tf.data.experimental
D = tf.data.Dataset
SCALAR = {"x": tf.io.FixedLenFeature([], tf.float32)}


def _values(dataset):
    return [
        tf.nest.map_structure(lambda t: np.asarray(t.numpy()).tolist(), element)
        for element in dataset
    ]


def test_group_by_reducer():
    reducer = X.Reducer(
        lambda key: (tf.constant(0, tf.int64), key),
        lambda state, x: (state[0] + x, state[1]),
        lambda total, key: total * 10 + key,
    )
    grouped = D.range(10).apply(X.group_by_reducer(lambda x: x % 3, reducer))
    assert _values(grouped) == [180, 121, 152]


def test_pad_to_cardinality():
    d = D.range(3).map(lambda x: {"x": x + 1})
    padded = d.apply(X.pad_to_cardinality(5))
    assert [(e["x"], e["valid"]) for e in _values(padded)] == [
        (1, True),
        (2, True),
        (3, True),
        (0, False),
        (0, False),
    ]
    for message, dataset in [
        ("to be a dictionary", D.range(3)),
        ("less than the target", d.repeat(2)),
        ("a known cardinalty", d.repeat()),
    ]:
        with pytest.raises(ValueError, match=message):
            dataset.apply(X.pad_to_cardinality(5))


def test_at():
    d = D.range(5).map(lambda x: x * 2)
    assert int(X.at(d, 3)) == 6
    for index in (-1, 5):
        with pytest.raises(tf.errors.OutOfRangeError, match="out of range"):
            X.at(d, index)
    with pytest.raises(tf.errors.UnimplementedError):
        X.at(d.filter(lambda x: True), 1)
    with pytest.raises(tf.errors.FailedPreconditionError, match="infinite cardinality"):
        X.at(d.repeat(), 1)


def test_at_in_graphs():
    with tf.Graph().as_default():
        place = tf.compat.v1.placeholder_with_default(tf.constant(2, tf.int64), [])
        element = X.at(D.range(4).map(lambda x: x + 1), place)
        assert element.shape == () and element.dtype == tf.int64
        with tf.compat.v1.Session() as session:
            assert session.run(element) == 3
            assert session.run(element, {place: 1}) == 2
            with pytest.raises(tf.errors.OutOfRangeError, match="Index out of range"):
                session.run(element, {place: 4})


def test_devices():
    d = D.range(3)
    assert _values(d.apply(X.prefetch_to_device("/cpu:0", 2))) == [0, 1, 2]
    assert _values(d.apply(X.copy_to_device("/device:CPU:0"))) == [0, 1, 2]
    with pytest.raises(tf.errors.UnimplementedError):
        X.prefetch_to_device("/gpu:0")


def test_tables():
    pairs = D.zip((D.from_tensor_slices(["a", "b"]), D.range(2)))
    words = tf.constant(["b", "z"])
    table = X.table_from_dataset(pairs, default_value=-7)
    assert table.lookup(words).numpy().tolist() == [1, -7]
    table = X.index_table_from_dataset(D.from_tensor_slices(["a", "b"]), vocab_size=1)
    assert table.lookup(words).numpy().tolist() == [-1, -1]
    table = tf.lookup.StaticHashTable(X.DatasetInitializer(pairs), 9)
    assert table.lookup(words).numpy().tolist() == [1, 9]
    with pytest.raises(tf.errors.UnimplementedError, match="num_oov_buckets"):
        X.table_from_dataset(pairs, num_oov_buckets=1)


def _example(value):
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
    features = tf.train.Features(feature={"x": feature})
    return tf.train.Example(features=features).SerializeToString()


def test_examples_in_files(tmp_path):
    path = str(tmp_path / "r")
    records = [_example(float(i)) for i in range(5)]
    X.TFRecordWriter(path, "GZIP").write(D.from_tensor_slices(records))
    batches = X.make_batched_features_dataset(
        path,
        2,
        SCALAR,
        reader_args=["GZIP"],
        num_epochs=1,
        shuffle=False,
    )
    assert [b["x"] for b in _values(batches)] == [[0.0, 1.0], [2.0, 3.0], [4.0]]
    with_label = X.make_batched_features_dataset(
        path, 2, SCALAR, label_key="x", reader_args=["GZIP"]
    )
    assert with_label.element_spec == ({}, tf.TensorSpec([2], tf.float32))
    with pytest.raises(ValueError, match="label_key"):
        X.make_batched_features_dataset(path, 2, SCALAR, label_key="q")
    with pytest.raises(TypeError, match="scalar `tf.string`"):
        X.TFRecordWriter(path).write(D.range(3))
    with pytest.raises(TypeError, match="tf.data.Dataset"):
        X.TFRecordWriter(path).write([1])
    with pytest.raises(TypeError, match="vectors of strings"):
        D.from_tensors(b"").apply(X.parse_example_dataset(SCALAR))


def test_save_and_load(tmp_path):
    X.save(D.range(3), str(tmp_path / "d"))
    assert _values(X.load(str(tmp_path / "d"))) == [0, 1, 2]


@pytest.fixture
def database(tmp_path):
    path = str(tmp_path / "x?.db")
    connection = sqlite3.connect(path)
    connection.execute("create table t(a integer, b text, c real, d blob)")
    rows = [(1, "x", 2.5, b"\0\xff"), (300, None, None, None), (-5, "3y", 1e300, b"")]
    connection.executemany("insert into t values (?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return path


SQL = [
    (
        "a, b, c, d",
        ("int32", "string", "float64", "string"),
        [
            (-5, b"3y", 1e300, b""),
            (1, b"x", 2.5, b"\0\xff"),
            (300, b"", 0.0, b""),
        ],
    ),
    ("a, c", ("uint8", "string"), [(251, b"1.0e+300"), (1, b"2.5"), (44, b"")]),
    ("a, b", ("bool", "float64"), [(True, 3.0), (True, 0.0), (True, 0.0)]),
    ("b, c", ("int16", "int64"), [(3, 2**63 - 1), (0, 2), (0, 0)]),
]


@pytest.mark.parametrize("columns, types, expected", SQL)
def test_rows_of_a_database(database, columns, types, expected):
    query = f"select {columns} from t order by a"
    dataset = X.SqlDataset("sqlite", database, query, types)
    assert dataset.element_spec == tuple(tf.TensorSpec([], t) for t in types)
    for _ in range(2):
        assert _values(dataset) == expected


def test_databases_that_are_refused(database):
    def rows(query="select a from t", types=("int64",), path=database, kind="sqlite"):
        return _values(X.SqlDataset(kind, path, query, types))

    with pytest.raises(tf.errors.InvalidArgumentError, match="mysql, is not supported"):
        rows(kind="mysql")
    with pytest.raises(tf.errors.InvalidArgumentError, match="float32"):
        rows(types=(tf.float32,))
    with pytest.raises(tf.errors.InvalidArgumentError, match="number of columns"):
        rows(types=("int64", "int64"))
    with pytest.raises(tf.errors.UnknownError, match="syntax error"):
        rows("selec")
    with pytest.raises(tf.errors.UnknownError, match="unable to open"):
        rows(path=database + ".not")


def test_orders_of_parallel_batches():
    for deterministic in (True, False, None):
        d = D.range(7).batch(3, num_parallel_calls=2, deterministic=deterministic)
        assert sorted(x for batch in _values(d) for x in batch) == list(range(7))
    with pytest.warns(UserWarning, match="`deterministic` argument has no effect"):
        D.range(7).batch(3, deterministic=False)
