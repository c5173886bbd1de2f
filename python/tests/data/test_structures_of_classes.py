"""Dataclasses, values of sessions and paths in datasets; what they refuse."""

import dataclasses
import pathlib

import numpy as np
import pytest

import headrace as tf

D = tf.data.Dataset
v1 = tf.compat.v1


@dataclasses.dataclass
class Masked:
    mask: bool
    value: object

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(metadata[0], components[0])


def test_dataclasses_are_structures():
    assert tf.nest.flatten(Masked(True, [1, 2])) == [1, 2]
    assert tf.nest.map_structure(lambda x: x + 1, Masked(True, 1)) == Masked(True, 2)
    made = D.range(3).map(lambda x: Masked(True, x * 2))
    assert made.element_spec == Masked(True, tf.TensorSpec([], tf.int64))
    assert [int(m.value) for m in made] == [0, 2, 4]
    values = made.map(lambda m: m.value + 1).as_numpy_iterator()
    assert list(values) == [1, 3, 5]


def test_dataclasses_as_arguments_of_functions():
    traces = []

    @tf.function
    def f(m):
        traces.append(m.mask)
        return Masked(m.mask, m.value + 1 if m.mask else m.value)

    assert f(Masked(True, tf.constant(1))) == Masked(True, tf.constant(2))
    assert int(f(Masked(True, tf.constant(2))).value) == 3
    assert int(f(Masked(False, tf.constant(2))).value) == 2
    assert traces == [True, False]


def test_sparse_values_become_sparse_tensors():
    value = v1.SparseTensorValue([[0]], [1], [2])
    spec = tf.SparseTensorSpec([2], tf.int32)
    assert D.from_tensors(value).element_spec == spec
    made = D.range(2).map(lambda i: v1.SparseTensorValue([[0]], [i], [2]))
    rows = [tf.sparse.to_dense(e).numpy().tolist() for e in made]
    assert rows == [[0, 0], [1, 0]]


def test_paths(tmp_path):
    path = pathlib.Path(tmp_path / "lines")
    path.write_text("a\nb\n")
    for names in (path, [path]):
        lines = tf.data.TextLineDataset(names)
        assert list(lines.as_numpy_iterator()) == [b"a", b"b"]
    assert list(tf.data.TextLineDataset([]).as_numpy_iterator()) == []


def test_weights_of_samples():
    both = [D.range(3), D.range(3)]
    drawn = D.sample_from_datasets(both, weights=np.array([0.5, 0.5]), seed=1)
    assert sorted(drawn.as_numpy_iterator()) == [0, 0, 1, 1, 2, 2]
    for weights in ([1, 1], tf.constant([1, 1])):
        with pytest.raises(TypeError, match="must be either `tf.float32` or"):
            D.sample_from_datasets(both, weights=weights)
    with pytest.raises(ValueError, match="shape of `weights` should be compatible"):
        D.sample_from_datasets(both[:1], weights=tf.constant([1.0, 2.0]))
    with pytest.raises(TypeError, match="must have compatible element specs"):
        D.sample_from_datasets([D.range(3), D.from_tensors("a")])


def test_refusals():
    with pytest.raises(ValueError, match="Encountered both 7 and 8"):
        D.from_tensors((np.arange(7), np.arange(8))).unbatch()
    with pytest.raises(TypeError, match=r"passed to Dataset.map\(\): <class"):
        D.range(2).map(lambda x: Masked)
    with pytest.raises(TypeError, match="a dataset of `tf.int64` elements"):
        tf.data.TextLineDataset(D.range(2))
    with pytest.raises(TypeError, match=r"elements of shape \[\]"):
        tf.data.TextLineDataset(D.from_tensors([["a"]]))


def test_savers_save_iterators(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        iterator = v1.data.make_initializable_iterator(D.range(10))
        element = iterator.get_next()
        saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
        assert saveable.name == "IteratorV2:0_STATE"
        v1.add_to_collection(v1.GraphKeys.SAVEABLE_OBJECTS, saveable)
        saver = v1.train.Saver()
        session.run(iterator.initializer)
        assert [session.run(element) for _ in range(3)] == [0, 1, 2]
        path = saver.save(session, str(tmp_path / "c"))
        assert session.run(element) == 3
        saver.restore(session, path)
        assert session.run(element) == 3
        with pytest.raises(ValueError, match="external_state_policy"):
            tf.data.experimental.make_saveable_from_iterator(iterator, "perhaps")
    with pytest.raises(TypeError, match="iterator of a graph"):
        tf.data.experimental.make_saveable_from_iterator(iter(D.range(2)))


def test_weights_that_are_all_zero_draw_nothing():
    drawn = D.sample_from_datasets([D.range(3), D.range(3)], weights=[0.0, 0.0])
    assert list(drawn) == []


def test_ragged_values_become_ragged_tensors():
    value = v1.ragged.RaggedTensorValue(np.array([0, 1, 2]), np.array([0, 1, 3]))
    assert [r.numpy().tolist() for r in D.from_tensor_slices(value)] == [[0], [1, 2]]


def test_reductions_keep_the_structure_of_the_state():
    text = r"initial_state=1, output=2"
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        D.range(3).reduce(0, lambda a, b: (a, b))
    with pytest.raises(TypeError, match="'int32'> but got <dtype: 'float32'>"):
        D.range(3).reduce(0, lambda a, b: 1.0)


def test_specs_of_datasets_of_dicts():
    def spec(name, *sizes):
        return tf.data.DatasetSpec({name: tf.TensorSpec(sizes, tf.int32)})

    one, many, other = spec("a", 1, None), spec("a", None, None), spec("b", 1, None)
    assert one.is_subtype_of(many) and not many.is_subtype_of(one)
    assert not one.is_subtype_of(other)
    assert one.most_specific_common_supertype([many]) == many
    assert one.most_specific_common_supertype([other]) is None
    assert one.is_compatible_with(many) and not one.is_compatible_with(other)
