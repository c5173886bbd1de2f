"""tf.types.experimental, and arguments that say what their traces depend on."""

import abc
import dataclasses
import weakref

import headrace as tf
import pytest

types = tf.types.experimental


class Fruit:
    def __init__(self, name, weight):
        self.name, self.weight = name, weight

    def __tf_tracing_type__(self, context):
        return FruitType(self)


class FruitType(types.TraceType):
    def __init__(self, fruit):
        self.fruit = fruit

    def is_subtype_of(self, other):
        return self == other or other.fruit.name == "any"

    def most_specific_common_supertype(self, others):
        same = all(self == other for other in others)
        return self if same else FruitType(Fruit("any", self.fruit.weight))

    def placeholder_value(self, placeholder_context):
        return self.fruit

    def __eq__(self, other):
        return isinstance(other, FruitType) and self.fruit.name == other.fruit.name

    def __hash__(self):
        return hash(self.fruit.name)

    def __repr__(self):
        return f"Fruit[{self.fruit.name}]"


def test_one_trace_a_trace_type():
    seen = []

    @tf.function
    def f(x):
        seen.append(x.name)
        return tf.constant(x.weight)

    fruits = [Fruit("apple", 1), Fruit("apple", 2), Fruit("pear", 3), Fruit("pear", 4)]
    assert [int(f(x)) for x in fruits + fruits] == [1, 1, 3, 3] * 2
    assert seen == ["apple", "pear"]
    assert f.explain_retraces() == [
        "trace 2: x changed from Fruit[apple] to Fruit[pear]"
    ]


def test_supertypes():
    seen = []

    @tf.function(reduce_retracing=True)
    def f(x):
        seen.append(x.name)
        return 1

    for name in ("apple", "pear", "plum", "fig"):
        f(Fruit(name, 1))
    assert seen == ["apple", "any"]


def test_concrete_functions():
    f = tf.function(lambda x, y: y * x.weight)
    f = f.get_concrete_function(Fruit("apple", 2), tf.TensorSpec([]))
    assert float(f(Fruit("apple", 9), tf.constant(3.0))) == 6.0
    with pytest.raises(TypeError, match=r"Can not cast .* to type Fruit\[apple\]"):
        f(Fruit("pear", 1), tf.constant(3.0))


def test_types_with_tensors_are_refused():
    class Box:
        def __tf_tracing_type__(self, context):
            return tf.TensorSpec([2])

    with pytest.raises(NotImplementedError, match="ExtensionType"):
        tf.function(lambda x: 1)(Box())


def test_instances():
    f = tf.function(lambda x: x)
    concrete = f.get_concrete_function(1)
    assert isinstance(f, types.PolymorphicFunction) and isinstance(f, types.Callable)
    assert types.GenericFunction is types.PolymorphicFunction
    assert isinstance(concrete, types.ConcreteFunction)
    assert isinstance(concrete, types.Callable)
    assert not isinstance(concrete, types.PolymorphicFunction)
    assert isinstance(concrete.function_type, types.FunctionType)
    assert isinstance(tf.TensorSpec([]), types.TraceType)
    assert isinstance(Fruit("a", 1), types.SupportsTracingProtocol)
    assert not isinstance(3, types.SupportsTracingProtocol)
    assert isinstance(types.TraceType, abc.ABCMeta)
    with pytest.raises(TypeError, match="abstract"):
        types.TraceType()


def test_arguments_that_no_trace_can_depend_on():
    f = tf.function(lambda x: 1)
    for bad in ({1, 2}, [{1}]):
        with pytest.raises(TypeError, match="Could not generate a generic TraceType"):
            f(bad)
    with pytest.raises(TypeError, match="weakref input"):
        f(weakref.ref(f))


@dataclasses.dataclass
class Masked:
    mask: bool
    value: tf.Tensor

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(*metadata, *components)


def test_dataclasses():
    seen = []

    @tf.function
    def f(x):
        seen.append(x.mask)
        return Masked(not x.mask, x.value * 2.0)

    for mask in (True, False, True):
        got = f(Masked(mask, tf.constant([1.0])))
        assert got.mask is not mask and got.value.numpy().tolist() == [2.0]
    assert seen == [True, False]
    assert "x changed from Masked[" in f.explain_retraces()[0]


def test_dataclasses_in_concrete_functions():
    f = tf.function(lambda x: x.value * 2.0 if x.mask else x.value)
    concrete = f.get_concrete_function(Masked(True, tf.TensorSpec([1])))
    assert concrete(Masked(True, tf.constant([3.0]))).numpy().tolist() == [6.0]
    for other in (Masked(False, tf.constant([3.0])), [tf.constant([3.0])]):
        with pytest.raises(TypeError, match="Can not cast .* to Masked"):
            concrete(other)


def test_dataclasses_in_loops():
    @tf.function
    def f(x, n):
        kept = {"all": [x]}
        for i in tf.range(n):
            kept = {"all": [Masked(x.mask, kept["all"][0].value + 1.0)]}
            last = Masked(False, i)
        return kept["all"][0], last

    kept, last = f(Masked(True, tf.constant([1.0])), tf.constant(3))
    assert kept.mask is True and kept.value.numpy().tolist() == [4.0]
    assert last.mask is False and int(last.value) == 2


def test_attrs():
    attr = pytest.importorskip("attr")

    @attr.s
    class Pair:
        left, right = attr.ib(), attr.ib()

    f = tf.function(lambda p: Pair(p.right, p.left * 2))
    got = f(Pair(tf.constant(1), tf.constant(2)))
    assert (int(got.left), int(got.right)) == (2, 2)
    assert f.experimental_get_tracing_count() == 1
    f(Pair(tf.constant(3), tf.constant(4)))
    assert f.experimental_get_tracing_count() == 1
