"""tf.compat.v1.data: datasets with their own iterators, types and older names."""

import headrace as tf
import pytest

v1 = tf.compat.v1
D = v1.data.Dataset


def test_all_that_is_made_of_one_is_one(tmp_path):
    lines = tmp_path / "lines"
    lines.write_text("one\ntwo\n")
    files = [str(lines)]
    made = [
        D.range(2),
        D.range(4).map(lambda x: x).batch(2).shuffle(2).repeat(2),
        D.range(4).apply(tf.data.experimental.unique()),
        D.zip((tf.data.Dataset.range(2), D.range(2))),
        D.from_generator(lambda: iter([1]), tf.int32),
        D.range(2).with_options(tf.data.Options()),
        v1.data.TextLineDataset(files),
        v1.data.TFRecordDataset(files),
        v1.data.FixedLengthRecordDataset(files, 1),
        v1.data.experimental.Counter(),
        v1.data.experimental.RandomDataset(seed=1),
        v1.data.experimental.sample_from_datasets([D.range(2), D.range(3)]),
    ]
    for dataset in made:
        assert isinstance(dataset, D) and isinstance(dataset, tf.data.Dataset)
    assert not isinstance(tf.data.Dataset.range(2), D)
    assert not hasattr(tf.data.Dataset, "make_one_shot_iterator")
    assert list(made[6].as_numpy_iterator()) == [b"one", b"two"]
    assert len(D.range(3)) == 3 and int(D.range(3).reduce(0, lambda n, _: n + 1)) == 3


def test_types_of_elements():
    for x in (D.range(3).batch(2), iter(tf.data.Dataset.range(3).batch(2))):
        assert (x.output_types, x.output_classes) == (tf.int64, tf.Tensor)
        assert x.output_shapes.as_list() == [None]
    pair = D.from_tensors({"a": 1, "b": (2.0, "x")})
    assert pair.output_types == {"a": tf.int32, "b": (tf.float32, tf.string)}


def test_their_own_iterators():
    with tf.Graph().as_default(), v1.Session() as session:
        dataset = D.range(3).map(lambda x: x * 2).batch(2)
        once = dataset.make_one_shot_iterator()
        assert once.output_types == tf.int64
        element = once.get_next()
        assert [session.run(element).tolist() for _ in range(2)] == [[0, 2], [4]]
        again = dataset.make_initializable_iterator()
        element = again.get_next()
        for _ in range(2):
            session.run(again.initializer)
            assert session.run(element).tolist() == [0, 2]
    assert int(D.range(3).make_one_shot_iterator().get_next()) == 0
    with pytest.raises(RuntimeError, match="make_initializable_iterator"):
        D.range(3).make_initializable_iterator()


def test_functions_of_the_older_kind():
    plus = D.range(3).map_with_legacy_function(lambda x: x + 1)
    assert list(plus.as_numpy_iterator()) == [1, 2, 3]
    large = D.range(3).filter_with_legacy_function(lambda x: x > 1)
    assert list(large.as_numpy_iterator()) == [2]
    both = v1.data.experimental.map_and_batch_with_legacy_function(lambda x: x + 1, 2)
    batches = D.range(4).apply(both)
    assert [b.tolist() for b in batches.as_numpy_iterator()] == [[1, 2], [3, 4]]


def test_rows_of_sparse_tensors():
    rows = D.from_sparse_tensor_slices(tf.sparse.from_dense([[1, 0], [2, 3]]))
    found = [[part.tolist() for part in row] for row in rows.as_numpy_iterator()]
    assert found == [[[[0]], [1], [2]], [[[0], [1]], [2, 3], [2]]]
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.sparse_placeholder(tf.int32)
        iterator = D.from_sparse_tensor_slices(fed).make_initializable_iterator()
        value = v1.SparseTensorValue([[0, 0], [1, 1]], [5, 6], [2, 2])
        session.run(iterator.initializer, {fed: value})
        element = iterator.get_next()
        indices, values, shape = session.run(element)
        assert (indices.tolist(), values.tolist(), shape.tolist()) == ([[0]], [5], [2])
    with pytest.raises(TypeError, match="must be a `tf.sparse.SparseTensor`"):
        D.from_sparse_tensor_slices([[1]])


def test_older_names_of_specs():
    old = v1.data.experimental
    assert old.Structure is tf.TypeSpec
    assert old.DatasetStructure is tf.data.DatasetSpec
    assert old.OptionalStructure is tf.OptionalSpec
    assert old.TensorStructure(tf.int32, [2]) == tf.TensorSpec([2], tf.int32)
    sparse = old.SparseTensorStructure(tf.int32, [2])
    assert sparse == tf.SparseTensorSpec([2], tf.int32)
    ragged = old.RaggedTensorStructure(tf.int32, [2, None], 1)
    assert ragged == tf.RaggedTensorSpec([2, None], tf.int32, 1)
    array = old.TensorArrayStructure(tf.int32, [2], False, True)
    assert array == tf.TensorArraySpec([2], tf.int32)


def test_what_pipelines_do_not_do_is_said():
    for name in ("DataServiceDatasetV3", "DistributedSave"):
        with pytest.raises(AttributeError, match=f"raw_ops.{name} is not supported: "):
            getattr(tf.raw_ops, name)
    with pytest.raises(AttributeError, match="the data service does not save"):
        tf.data.experimental.distributed_save  # noqa: B018


def test_iterators_of_a_graph_are_different_ones():
    with tf.Graph().as_default(), v1.Session() as session:
        a = v1.data.make_initializable_iterator(D.range(3))
        b = v1.data.make_initializable_iterator(D.from_tensors((1, 2.0)))
        session.run([a.initializer, b.initializer])
        first, second = a.get_next("first"), b.get_next("second")
        assert first.op.name == "first" and second[1].name == "second:1"
        assert session.run([first, second]) == [0, (1, 2.0)]


def test_a_generator_may_give_an_empty_list_of_texts():
    made = D.from_generator(lambda: iter([[], ["a"]]), tf.string, [None])
    assert [x.numpy().tolist() for x in made] == [[], [b"a"]]


def test_one_shot_iterators_beside_each_other():
    """Each dataset's functions, and none of other iterators, go with its own."""
    with tf.Graph().as_default():
        squares = v1.data.Dataset.range(5).map(lambda x: x * x)
        nested = squares.flat_map(lambda x: tf.data.Dataset.range(x).map(lambda y: -y))
        elements = [
            v1.data.make_one_shot_iterator(dataset).get_next()
            for dataset in (squares, nested, squares, v1.data.Dataset.range(7, 9))
        ]
        with v1.Session() as session:
            assert session.run(elements) == [0, 0, 0, 7]
            assert session.run(elements[:3]) == [1, 0, 1]
            assert session.run(elements[:3]) == [4, -1, 4]


def test_one_shot_iterators_have_no_initializer():
    with tf.Graph().as_default():
        iterator = v1.data.make_one_shot_iterator(v1.data.Dataset.range(3))
        with pytest.raises(ValueError, match="The iterator does not have an initiali"):
            iterator.initializer
