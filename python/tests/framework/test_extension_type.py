"""Extension types: what goes beyond the sessions that TensorFlow answered."""

from __future__ import annotations

import copy
import pickle
import typing

import numpy as np
import pytest

import headrace as tf

ExtensionType = tf.experimental.ExtensionType


class Masked(ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor


class Named(ExtensionType):
    x: tf.Tensor
    name: str | int | None = None
    sizes: tuple[int, ...] = ()


class Tree(ExtensionType):
    """Its own name is among its annotations."""

    value: tf.Tensor
    children: typing.Tuple[Tree, ...] = ()  # noqa: UP006
    by_name: typing.Mapping[str, Tree] = {}


class Batchable(tf.experimental.BatchableExtensionType):
    values: tf.Tensor
    part: Masked | tf.Tensor
    scale: int = 1


def test_annotations_are_texts_here():
    assert Named([1], sizes=[2, 3]).sizes == (2, 3)
    with pytest.raises(
        TypeError, match=r"name: expected str \| int \| None, got 'float'"
    ):
        Named(1, 2.5)
    tree = Tree(1, [Tree(2), Tree(3)], {"a": Tree(4)})
    assert [int(t.value) for t in tree.children] == [2, 3]
    with pytest.raises(TypeError, match=r"children\[0\]: expected 'Tree', got 'int'"):
        Tree(1, [2])
    doubled = tf.nest.map_structure(lambda t: 2 * t, tree, expand_composites=True)
    assert int(doubled.by_name["a"].value) == 8


def test_a_name_that_comes_later():
    scope = {"tf": tf, "__name__": "later"}
    exec("class A(tf.experimental.ExtensionType):\n    b: B\n", scope)
    with pytest.raises(TypeError, match="b: Unsupported type annotation 'B'"):
        scope["A"](1)


def test_names_of_the_class_and_of_those_around_it():
    class Local(ExtensionType):
        x: tf.Tensor

    class Outer(ExtensionType):
        class Kind(ExtensionType):
            x: tf.Tensor

        kind: Kind
        sizes: tuple[int, ...] = (1,)
        local: Local | None

    with pytest.raises(TypeError, match="local: Unsupported type annotation 'Local"):
        Outer(Outer.Kind(1), local=None)
    with pytest.raises(TypeError, match="kind: expected 'Kind', got 'int'"):
        Outer(1, local=None)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, None])
def test_copies(again):
    again = again or (lambda x: pickle.loads(pickle.dumps(x)))
    x = Named([1, 2], "n", (3,))
    assert bool(again(x) == x)
    assert again(x._type_spec) == x._type_spec
    with pytest.raises(AttributeError, match="Cannot mutate attribute `x`"):
        again(x).x = 3


def test_constructors_of_bases():
    class Base(ExtensionType):
        x: tf.Tensor

        def __init__(self, x):
            self.x = x

    class Own(Base):
        y: int

        def __init__(self, x):
            super().__init__(x)
            self.y = 7

    class OfFields(Masked):
        def __init__(self, values):
            super().__init__(values, tf.ones_like(values))

    assert (Own(1).y, int(Own(1).x)) == (7, 1)
    assert OfFields([1, 2]).mask.numpy().tolist() == [1, 1]


def test_specs_that_constructors_ask_for_are_not_kept():
    class Grown(ExtensionType):
        x: tf.Tensor

        def __init__(self, x):
            self.x = tf.constant(x)
            assert self._type_spec.x.shape == [1]
            self.x = tf.concat([self.x, self.x], 0)

    assert Grown([1])._type_spec.x.shape == [2]


def test_methods_of_specs_know_their_class():
    class Scaled(ExtensionType):
        x: tf.Tensor

        class Spec:
            def __init__(self, shape):
                self.x = tf.TensorSpec(shape)

            def __repr__(self):
                return "<" + super().__repr__() + ">"

    shown = "<Scaled.Spec(x=TensorSpec(shape=(2,), dtype=tf.float32, name=None))>"
    assert repr(Scaled.Spec([2])) == repr(Scaled([1.0, 2.0])._type_spec) == shown


def _traces(*values):
    """How many traces values make."""
    function = tf.function(lambda x: tf.constant(1))
    for value in values:
        function(value)
    return function.experimental_get_tracing_count()


def test_traces_know_what_is_static():
    assert _traces(Named(1, "a"), Named(2, "a"), Named(1, "a")) == 1
    assert _traces(Named(1, "a"), Named(2, "b"), Named(1, None)) == 3
    assert _traces(Named(1, 1), Named(2, True), Named(2, 1)) == 2
    assert _traces(Named(1, sizes=[1]), Named(1, sizes=[2])) == 2
    assert _traces(Tree(1), Tree(1, [Tree(2)]), Tree(3, [Tree(4)])) == 2
    assert _traces(Tree(1, (), {"a": Tree(1)}), Tree(1, (), {"b": Tree(1)})) == 2


def test_traces_know_datasets_iterators_optionals_arrays_and_shapes():
    numbers = [tf.data.Dataset.from_tensor_slices(x) for x in ([1], [1.0], [2])]
    assert _traces(*numbers) == 2
    assert _traces(*map(iter, numbers)) == 2
    assert _traces(*map(tf.experimental.Optional.from_value, (1, 1.0, 2))) == 2
    of_two = tf.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2)
    any_rows = tf.RaggedTensor.from_row_lengths([1, 2, 3, 4], [1, 3])
    assert _traces(of_two, any_rows, of_two) == 2
    places = [[0, 0], [1, 1]]
    sparse = [
        tf.SparseTensor(places, [1, 2], size) for size in ([2, 2], [2, 3], [2, 2])
    ]
    assert _traces(*sparse) == 2


def test_retracing_is_reduced():
    function = tf.function(lambda x: x.x, reduce_retracing=True)
    for n in range(1, 5):
        assert function(Named(list(range(n)), "a")).shape == [n]
    assert function.experimental_get_tracing_count() == 2
    spec = Named.Spec(tf.TensorSpec([None], tf.int32), "a", ())
    assert function.get_concrete_function(spec) is not None
    assert function.experimental_get_tracing_count() == 2


def test_sources_and_targets_of_gradients():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = Named(x * 2)
    text = "Type Named is not supported as a gradient source or gradient target"
    with pytest.raises(ValueError, match=text):
        tape.gradient(y, x)
    with pytest.raises(ValueError, match=text):
        tape.gradient(y.x, [x, y])
    assert tape.gradient(y.x, x).numpy().tolist() == [2, 2]


def test_branches_of_other_kinds():
    @tf.function
    def branch(p, a, other):
        return tf.cond(p, lambda: a, lambda: other(a))

    for other in (lambda a: a.x, lambda a: Named(a.x, "other")):
        with pytest.raises(TypeError, match="same number, type, and overall structure"):
            branch(tf.constant(True), Named(1, "a"), other)


def test_invariants_of_loops_are_specs():
    def loop(x, invariant):
        run = lambda x: tf.while_loop(  # noqa: E731
            lambda x: tf.size(x.x) < 3,
            lambda x: (Named(tf.concat([x.x, x.x], 0), "a"),),
            (x,),
            shape_invariants=(invariant,),
        )
        return tf.function(run)(x)[0]

    spec = Named.Spec(tf.TensorSpec([None], tf.int32), "a", ())
    assert loop(Named([5], "a"), spec).x.numpy().tolist() == [5] * 4
    with pytest.raises(TypeError, match="use a Named.Spec instead of a TensorShape"):
        loop(Named([5], "a"), tf.TensorShape([None]))


def test_functions_of_each_part():
    x = Named([1, 2], "a")
    for function in (tf.identity, tf.stop_gradient):
        assert bool(function(x) == x)
    assert tf.concat([x], 0) is x
    assert not tf.is_tensor(x)


def test_ragged_parts_in_batches():
    class Rows(tf.experimental.BatchableExtensionType):
        rows: tf.RaggedTensor
        inner: Inner

    rows = Rows(tf.ragged.constant([[1], [2, 3]]), Inner([4, 5]))
    dataset = tf.data.Dataset.from_tensor_slices(rows)
    assert [x.rows.numpy().tolist() for x in dataset] == [[1], [2, 3]]
    (batch,) = dataset.batch(2)
    assert batch.rows.to_list() == [[1], [2, 3]]
    assert batch.inner.x.numpy().tolist() == [4, 5]
    sums = tf.map_fn(
        lambda r: Inner(tf.reduce_sum(r.rows) + r.inner.x),
        rows,
        fn_output_signature=Inner.Spec(tf.TensorSpec([], tf.int32)),
    )
    assert sums.x.numpy().tolist() == [5, 10]


class Inner(tf.experimental.BatchableExtensionType):
    x: tf.Tensor


class Tenfold(tf.experimental.ExtensionTypeBatchEncoder):
    """What it encodes is ten times what it holds."""

    def encode(self, spec, value, minimum_rank=0):
        return {"ten": value.x * 10}

    def encoding_specs(self, spec):
        return {"ten": spec.x}

    def decode(self, spec, encoded_value):
        return Encoded(encoded_value["ten"] // 10, spec.name)


class Encoded(tf.experimental.BatchableExtensionType):
    x: tf.Tensor
    name: str
    __batch_encoder__ = Tenfold()


def test_encoders_of_ones_own():
    x = Encoded([1, 2, 3], "e")
    dataset = tf.data.Dataset.from_tensor_slices(x)
    assert [int(e.x) for e in dataset] == [1, 2, 3]
    assert next(iter(dataset.batch(3))).x.numpy().tolist() == [1, 2, 3]
    tensors = x._type_spec._to_tensor_list(x)
    assert [t.numpy().tolist() for t in tensors] == [[10, 20, 30]]
    doubled = tf.map_fn(lambda e: Encoded(e.x * 2, "e"), x)
    assert doubled.x.numpy().tolist() == [2, 4, 6]


def test_states_of_reductions():
    dataset = tf.data.Dataset.from_tensor_slices(Inner([1, 2, 3]))
    total = dataset.reduce(Inner(0), lambda a, e: Inner(a.x + e.x))
    assert int(total.x) == 6
    with pytest.raises(NotImplementedError, match="Dataset.window"):
        tf.data.Dataset.from_tensors(Masked(1, 2)).window(2)


def test_vectorized_maps():
    x = Inner(np.arange(3))
    found = tf.vectorized_map(lambda e: Inner(e.x * 2), x)
    assert found.x.numpy().tolist() == [0, 2, 4]
    with pytest.raises(ValueError, match="must provide a `BatchableTypeSpec`"):
        tf.vectorized_map(lambda e: Named(e.x), x)


def test_specs_are_taken_apart_like_values():
    spec = Tree(1, [Tree(2.0)])._type_spec
    flat = tf.nest.flatten(spec, expand_composites=True)
    assert [s.dtype for s in flat] == [tf.int32, tf.float32]
    made = tf.nest.pack_sequence_as(spec, [3, 4.0], expand_composites=True)
    assert (made.value, made.children[0].value) == (3, 4.0)


def test_models_are_trained_on_them():
    class Filled(tf.experimental.BatchableExtensionType):
        values: tf.Tensor
        shape = property(lambda self: self.values.shape)

    x = Filled(np.ones([6, 2], np.float32))
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    model = tf.keras.Sequential([tf.keras.layers.Lambda(lambda x: x.values), dense])
    assert model.predict(x, batch_size=4, verbose=0).tolist() == [[2.0]] * 6
    model.compile("sgd", "mse")
    assert model.evaluate(x, np.ones([6, 1]), verbose=0) == 1.0
    history = model.fit(x, np.ones([6, 1]), batch_size=6, epochs=2, verbose=0)
    assert history.history["loss"][1] < history.history["loss"][0] == 1.0
