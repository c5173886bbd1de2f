"""Specs flattened, values taken apart by them and put together; methods that TensorFlow
2.21 has beside these of graphs, tables, files and iterators."""

import pytest

import headrace as tf

VECTOR = tf.TensorSpec([2])
RAGGED = tf.RaggedTensorSpec([None, None], tf.int32)
SPARSE = tf.SparseTensorSpec([2, 3], tf.float32)


def test_specs_are_flattened():
    assert VECTOR.flatten() == [VECTOR]
    assert RAGGED.flatten() == [
        tf.TensorSpec([None], tf.int32),
        tf.TensorSpec([None], tf.int64),
    ]
    assert SPARSE.flatten() == [
        tf.TensorSpec([None, 2], tf.int64),
        tf.TensorSpec([None], tf.float32),
        tf.TensorSpec([2], tf.int64),
    ]
    assert tf.OptionalSpec(VECTOR).flatten() == [tf.TensorSpec([], tf.variant)]
    assert tf.NoneTensorSpec().flatten() == []


def test_values_are_taken_apart_and_put_together():
    rows = tf.ragged.constant([[1, 2], [3]])
    parts = RAGGED.to_tensors(rows)
    assert [p.numpy().tolist() for p in parts] == [[1, 2, 3], [0, 2, 3]]
    assert RAGGED.from_tensors(iter(parts)).to_list() == [[1, 2], [3]]
    sparse = tf.sparse.from_dense([[1.0, 0, 0], [0, 2.0, 0]])
    again = SPARSE.from_tensors(iter(SPARSE.to_tensors(sparse)))
    assert again.values.numpy().tolist() == [1, 2]
    (vector,) = VECTOR.to_tensors([1.0, 2.0])
    assert VECTOR.from_tensors(iter([vector])) is vector
    assert VECTOR.cast([1.0, 2.0]).numpy().tolist() == [1, 2]
    nothing = tf.NoneTensorSpec()
    assert nothing.to_tensors(None) == [] and nothing.from_tensors(iter([])) is None
    for wrong in (tf.constant([1.0, 2.0, 3.0]), tf.constant([1, 2])):
        with pytest.raises(TypeError, match="Can not cast TensorSpec"):
            VECTOR.to_tensors(wrong)
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        RAGGED.to_tensors(3)
    with pytest.raises(TypeError, match="Can not cast"):
        RAGGED.cast(tf.constant(1.0))
    with pytest.raises(StopIteration):
        RAGGED.from_tensors(iter([]))


def test_methods_of_others(tmp_path):
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, -2, -3)
    table.insert_or_assign([1], [2])
    assert table.lookup([1, 5]).numpy().tolist() == [2, -1]
    (tmp_path / "f").write_text("a\nb\n")
    file = tf.io.gfile.GFile(str(tmp_path / "f"))
    assert [file.next(), file.next()] == ["a\n", "b\n"]
    with pytest.raises(StopIteration):
        file.next()
    iterator = tf.data.Dataset.range(5).as_numpy_iterator()
    assert next(iterator) == 0
    state = iterator.save()
    assert [next(iterator), next(iterator)] == [1, 2]
    iterator.restore(state)
    assert next(iterator) == 1
    with tf.Graph().as_default() as graph:
        assert graph.num_operations() == 0 and graph.operations == []
        tf.constant(1)
    assert graph.num_operations() == 1 == len(graph.operations)
    assert graph.graph_def_versions == graph.as_graph_def().versions


SPECS = (
    tf.TensorSpec([2], name="q"),
    tf.TensorSpec(None, tf.int32),
    RAGGED,
    SPARSE,
    tf.IndexedSlicesSpec([None, 2]),
    tf.NoneTensorSpec(),
    tf.TensorShape([2, None]),
    tf.TensorShape(None),
    tf.float32,
    tf.type_spec_from_value(tf.experimental.RowPartition.from_row_lengths([1, 2])),
)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_specs_as_messages(spec):
    proto = spec.experimental_as_proto()
    assert isinstance(proto, spec.experimental_type_proto())
    # (Shapes of unknown rank equal nothing.)
    assert repr(type(spec).experimental_from_proto(proto)) == repr(spec)
    if isinstance(spec, tf.TypeSpec):
        again = type(proto).FromString(proto.SerializeToString())
        assert tf.TypeSpec.experimental_from_proto(again) == spec


def test_messages_as_upstream_writes_them():
    proto = RAGGED.experimental_as_proto()
    assert proto.type_spec_class == 3 and proto.num_flat_components == 2
    assert proto.type_spec_class_name == "RaggedTensorSpec"
    shape, dtype, rank, splits = proto.type_state.tuple_value.values
    assert [d.size for d in shape.tensor_shape_value.dim] == [-1, -1]
    assert (dtype.tensor_dtype_value, rank.int64_value) == (3, 1)
    assert splits.tensor_dtype_value == 9
    partition = SPECS[-1].experimental_as_proto()
    assert partition.type_spec_class == 10 and partition.num_flat_components == 1
    with pytest.raises(NotImplementedError, match="OptionalSpec"):
        tf.OptionalSpec(VECTOR).experimental_as_proto()
    with pytest.raises(TypeError, match="no message of a type spec"):
        tf.TypeSpec.experimental_from_proto(3)
    proto.type_state.tuple_value.values.pop()
    proto.type_state.tuple_value.values[2].string_value = "x"
    with pytest.raises(tf.errors.DataLossError, match="no state of RaggedTensorSpec"):
        tf.TypeSpec.experimental_from_proto(proto)
