"""tf.__internal__.CompositeTensor: classes of programs that are made of tensors."""

import headrace as tf
import pytest

CompositeTensor = tf.__internal__.CompositeTensor


class PairSpec(tf.TypeSpec):
    def __init__(self, a, bs, tag):
        self.a, self.bs, self.tag = a, bs, tag

    @property
    def value_type(self):
        return Pair

    @property
    def _component_specs(self):
        return {"a": self.a, "bs": list(self.bs)}

    def _to_components(self, value):
        return {"a": value.a, "bs": list(value.bs)}

    def _from_components(self, parts):
        return Pair(parts["a"], parts["bs"], self.tag)

    def _serialize(self):
        return self.a, tuple(self.bs), self.tag


class Pair(CompositeTensor):
    """A tensor, a list of tensors, and a text that is no tensor."""

    def __init__(self, a, bs, tag):
        self.a, self.bs, self.tag = a, bs, tag

    @property
    def _type_spec(self):
        of = tf.type_spec_from_value
        return PairSpec(of(self.a), [of(b) for b in self.bs], self.tag)


def _pair(tag="t"):
    rows = tf.RaggedTensor.from_row_lengths([1, 2, 3], [1, 2])
    return Pair(tf.constant([1.0, 2.0]), [tf.constant(3), rows], tag)


def test_classes():
    assert isinstance(_pair(), CompositeTensor)
    kinds = [tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices]
    kinds += [tf.experimental.ExtensionType, tf.linalg.LinearOperatorIdentity]
    assert all(issubclass(kind, CompositeTensor) for kind in kinds)
    for kind in (tf.Tensor, tf.Variable, tf.TensorArray):
        assert not issubclass(kind, CompositeTensor)

    class Nothing(CompositeTensor):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Nothing()


def test_nest():
    pair = _pair()
    assert tf.nest.flatten(pair) == [pair]
    parts = tf.nest.flatten(pair, expand_composites=True)
    assert [p.numpy().tolist() for p in parts] == [
        *([1.0, 2.0], 3, [1, 2, 3], [0, 1, 3])
    ]
    twice = tf.nest.map_structure(lambda x: x * 2, pair, expand_composites=True)
    assert (twice.tag, twice.a.numpy().tolist()) == ("t", [2.0, 4.0])
    assert twice.bs[1].to_list() == [[2, 4], [6]]
    tf.nest.assert_same_structure(pair, twice, expand_composites=True)
    assert not tf.is_tensor(pair)
    with pytest.raises(ValueError, match="unsupported type"):
        tf.convert_to_tensor(pair)


def test_functions():
    traces = []

    @tf.function
    def run(x):
        traces.append(x.tag)
        return Pair(x.a + 1.0, x.bs, x.tag + "!")

    found = run(_pair())
    assert type(found) is Pair
    assert (found.a.numpy().tolist(), found.tag) == ([2.0, 3.0], "t!")
    assert found.bs[1].to_list() == [[1], [2, 3]]
    run(_pair())
    assert traces == ["t"]
    assert run(_pair("u")).tag == "u!"
    assert traces == ["t", "u"]
    signed = tf.function(lambda x: x.a + 1.0, input_signature=[_pair()._type_spec])
    assert signed(_pair()).numpy().tolist() == [2.0, 3.0]
    pair = _pair()
    with tf.GradientTape() as tape:
        tape.watch(pair.a)
        total = tf.reduce_sum(run(pair).a * 3.0)
    assert tape.gradient(total, pair.a).numpy().tolist() == [3.0, 3.0]


def test_loops_and_branches():
    def twice(i, x):
        return i + 1, Pair(x.a * 2.0, x.bs, x.tag)

    _, found = tf.while_loop(lambda i, _: i < 3, twice, (0, _pair()))
    assert found.a.numpy().tolist() == [8.0, 16.0]
    choose = tf.function(lambda b, x, y: tf.cond(b, lambda: x, lambda: y))
    pair = _pair()
    other = Pair(pair.a * 2.0, pair.bs, "t")
    assert choose(tf.constant(False), pair, other).a.numpy().tolist() == [2.0, 4.0]
    with pytest.raises(NotImplementedError, match="_shape_invariant_to_type_spec"):
        pair._shape_invariant_to_type_spec((2,))
    assert pair._consumers() == []
    assert pair._convert_variables_to_tensors() is pair


def test_specs_and_datasets():
    pair, other = _pair(), _pair()
    assert pair._type_spec == other._type_spec
    assert hash(pair._type_spec) == hash(other._type_spec)
    assert pair._type_spec != _pair("u")._type_spec
    assert pair._type_spec.is_compatible_with(other)
    data = tf.data.Dataset.from_tensors(pair)
    assert data.element_spec == pair._type_spec
    data = data.map(lambda x: Pair(x.a + 5.0, x.bs, x.tag))
    found = next(iter(data))
    assert (found.a.numpy().tolist(), found.tag) == ([6.0, 7.0], "t")
    assert found.bs[1].to_list() == [[1], [2, 3]]
    with pytest.raises(
        AttributeError, match="'PairSpec' object has no attribute '_batc"
    ):
        data.batch(2)
