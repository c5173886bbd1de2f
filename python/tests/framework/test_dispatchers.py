"""Types that functions do not know, and who answers for them."""

import inspect
import pickle
import typing

import numpy as np
import pytest

import headrace as tf
from headrace.framework import dispatch

experimental = tf.experimental


class Masked:
    """A tensor and where it counts."""

    def __init__(self, values, mask):
        self.values = tf.convert_to_tensor(values)
        self.mask = tf.convert_to_tensor(mask)

    def numpy(self):
        return np.where(self.mask.numpy(), self.values.numpy(), -1).tolist()


A = Masked([1.0, -2.0], [True, False])
B = Masked([10.0, 20.0], [True, True])


@pytest.fixture
def register():
    """Registers for the length of a test."""
    made = []

    def apply(decorator, target):
        made.append(decorator(target))
        return target

    yield apply
    for target in made:
        experimental.unregister_dispatch_for(target)


def test_for_api(register):
    def add(x, y):
        return Masked(x.values + y.values, x.mask & y.mask)

    register(experimental.dispatch_for_api(tf.add, {"x": Masked, "y": Masked}), add)
    assert tf.add(A, B).numpy() == [11, -1]
    assert tf.math.add(y=B, x=A, name="n").numpy() == [11, -1]
    assert (tf.constant(1.0) + 1).numpy() == 2
    with pytest.raises(ValueError, match="unsupported type"):
        tf.add(A, 1.0)
    with pytest.raises(ValueError, match="unsupported type"):
        tf.subtract(A, B)


def test_signatures_of_annotations_unions_and_lists(register):
    def concat(values: typing.List[Masked], axis):  # noqa: UP006
        return len(values), axis

    register(experimental.dispatch_for_api(tf.concat), concat)
    assert tf.concat([A, B, A], 0) == (3, 0)
    with pytest.raises(ValueError, match="unsupported type"):
        tf.concat([A, [1.0]], 0)
    assert tf.concat([[1], [2]], 0).shape == [2]

    def either(a, b, name=None):
        return "masked", name

    signature = {0: typing.Union[Masked, tf.Tensor], "y": Masked}  # noqa: UP007
    with pytest.raises(ValueError, match="unknown parameter 'z'"):
        experimental.dispatch_for_api(tf.atan2, {"z": Masked})(lambda y, x: y)
    with pytest.raises(ValueError, match="does not match API's signature"):
        experimental.dispatch_for_api(tf.tensordot, signature)(either)
    with pytest.raises(ValueError, match="does not match API's signature"):
        experimental.dispatch_for_api(tf.tensordot, {0: Masked})(either)


def test_types_that_functions_know_are_not_asked_for(register):
    register(experimental.dispatch_for_api(tf.abs, {"x": int}), lambda x: "int")
    assert tf.abs(-3) == 3
    register(
        experimental.dispatch_for_unary_elementwise_apis(tf.Tensor), lambda f, x: 0
    )
    assert tf.exp(tf.constant(0.0)) == 1.0


def test_two_that_answer_are_refused(register):
    register(experimental.dispatch_for_api(tf.abs, {"x": Masked}), lambda x: "one")
    assert tf.abs(A) == "one"
    register(
        experimental.dispatch_for_unary_elementwise_apis(Masked), lambda f, x: "two"
    )
    assert tf.exp(A) == "two"
    with pytest.raises(ValueError, match="Multiple dispatch targets that .* to abs"):
        tf.abs(A)


def test_a_handler_comes_before_that_of_ragged_tensors(register):
    kinds = tf.RaggedTensor, Masked
    handler = experimental.dispatch_for_binary_elementwise_apis(*kinds)
    register(handler, lambda f, x, y: "mine")
    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])
    assert tf.add(ragged, A) == "mine"
    assert tf.add(ragged, 1.0).to_list() == [[2.0], [3.0, 4.0]]


def test_calls_that_the_function_does_not_have(register):
    register(experimental.dispatch_for_api(tf.atan2, {"y": Masked}), lambda y, x: x)
    assert tf.atan2(A, 3) == 3
    with pytest.raises(TypeError, match="^Missing required positional argument$"):
        tf.atan2(A)
    with pytest.raises(TypeError, match="^Got an unexpected keyword argument 'q'$"):
        tf.atan2(A, 3, q=1)


def test_elementwise(register):
    seen = []

    def unary(function, x):
        seen.append(function)
        return Masked(function(x.values), x.mask)

    def binary(function, x, y):
        x, y = (v if isinstance(v, Masked) else Masked(v, True) for v in (x, y))
        return Masked(function(x.values, y.values), x.mask & y.mask)

    register(experimental.dispatch_for_unary_elementwise_apis(Masked), unary)
    for types in ((Masked, Masked), (Masked, object), (object, Masked)):
        decorator = experimental.dispatch_for_binary_elementwise_apis(*types)
        if types == (Masked, Masked):
            register(decorator, binary)
        else:
            decorator(binary)
    assert tf.abs(A).numpy() == [1, -1] and seen == [tf.abs]
    assert tf.cast(A, tf.int32).values.dtype == tf.int32
    assert tf.clip_by_value(B, 0.0, clip_value_max=15.0).numpy() == [10, 15]
    assert tf.ones_like(input=B, dtype=tf.int64).numpy() == [1, 1]
    assert tf.multiply(A, 3.0).numpy() == [3, -1]
    one = tf.constant(1.0)
    assert (one - B).numpy() == [-9, -19] and (one + B).numpy() == [11, 21]
    assert (one < B).numpy() == [True, True] and (20 * one / B).numpy() == [2, 1]
    assert (one == B).numpy() == [False, False]
    assert (tf.Variable(2.0) * B).numpy() == [20, 40]
    with pytest.raises(ValueError, match="already been registered for"):
        experimental.dispatch_for_unary_elementwise_apis(Masked)(lambda f, x: x)
    with pytest.raises(ValueError, match="unsupported type"):
        tf.reduce_sum(A)


def test_assertions(register):
    def check(function, x, y):
        function(x.values, y.values)
        return "checked"

    register(
        experimental.dispatch_for_binary_elementwise_assert_apis(Masked, Masked), check
    )
    assert tf.debugging.assert_less(A, B) == "checked"
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.debugging.assert_equal(A, B)


def test_refusals():
    with pytest.raises(ValueError, match="does not support dispatch"):
        experimental.dispatch_for_api(tf.constant, {"value": Masked})
    with pytest.raises(ValueError, match="was not registered"):
        experimental.unregister_dispatch_for(test_refusals)
    with pytest.raises(TypeError, match="signatures must be dictionaries"):
        experimental.dispatch_for_api(tf.abs, Masked)
    with pytest.raises(ValueError, match="at least one signature"):
        experimental.dispatch_for_api(tf.abs)(lambda x: x)
    with pytest.raises(ValueError, match="not currently supported by dispatch"):
        experimental.dispatch_for_api(tf.abs, {"x": "Masked"})(lambda x: x)


def test_dispatchers_of_last_resort(monkeypatch):
    monkeypatch.setattr(dispatch, "_global_dispatchers", [])
    internal = tf.__internal__.dispatch

    class Det(internal.OpDispatcher):
        def handle(self, args, kwargs):
            if any(isinstance(x, Masked) for x in args):
                return "det"
            return self.NOT_SUPPORTED

    class All(internal.GlobalOpDispatcher):
        def handle(self, op, args, kwargs):
            if any(isinstance(x, Masked) for x in [*args, *kwargs.values()]):
                return op
            return self.NOT_SUPPORTED

    Det().register(tf.linalg.det)
    All().register()
    assert tf.linalg.det(A) == "det"
    assert tf.linalg.inv(input=A) is tf.linalg.inv
    with pytest.raises(ValueError, match="unsupported type"):
        tf.linalg.det(object())
    dispatch._kind(tf.linalg.det).dispatchers.clear()


def test_functions_of_ones_own(register):
    @tf.__internal__.dispatch.add_dispatch_support(iterable_parameters=["ys"])
    def add_to_all(x, ys, name=None):
        """Adds x."""
        return [x + y for y in ys]

    def masked(x, ys):
        return [y.values + x for y in ys]

    register(
        experimental.dispatch_for_api(add_to_all, {"ys": typing.List[Masked]}),  # noqa: UP006
        masked,
    )
    assert add_to_all(1, iter([2, 3])) == [3, 4]
    assert add_to_all(1.0, (y for y in [A]))[0].numpy().tolist() == [2, -1]
    assert list(inspect.signature(add_to_all).parameters) == ["x", "ys", "name"]
    assert add_to_all.__doc__ == "Adds x."


def test_public_functions_stay_functions():
    assert tf.abs is tf.math.abs and tf.abs.__name__ == "abs"
    assert list(inspect.signature(tf.matmul).parameters)[:2] == ["a", "b"]
    assert pickle.loads(pickle.dumps(tf.nn.relu)) is tf.nn.relu
    assert "absolute" in tf.abs.__doc__ and repr(tf.abs).startswith("<function abs at")
    assert inspect.isroutine(tf.abs)


def test_an_op_that_takes_no_ragged_tensors_says_so():
    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])
    with pytest.raises(
        ValueError, match=r"tf\.linalg\.det does not take RaggedTensors"
    ):
        tf.linalg.det(ragged)
    with pytest.raises(ValueError, match=r"tf\.pad does not .*to_tensor"):
        tf.pad([ragged], [[0, 0]])
    with pytest.raises(ValueError, match="has no len"):
        tf.raw_ops.Abs(x=ragged)


def test_sparse_tensors_in_functions_that_keep_zeros():
    sparse = tf.sparse.from_dense([[0.0, -4.0], [9.0, 0.0]])
    assert tf.abs(sparse).values.numpy().tolist() == [4, 9]
    assert tf.sqrt(x=tf.square(sparse)).values.numpy().tolist() == [4, 9]
    assert tf.cast(sparse, tf.int32).dtype == tf.int32
    halves = tf.divide(tf.cast(sparse, tf.int32), 2)
    assert halves.dtype == tf.float64 and halves.values.numpy().tolist() == [-2, 4.5]
    assert tf.identity(sparse).dense_shape.numpy().tolist() == [2, 2]
    with pytest.raises(ValueError, match="unsupported type"):
        tf.exp(sparse)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.sparse.SparseTensor([[0, 1]], [-3.0], [1, 2])
        value = session.run(tf.abs(graph))
        assert isinstance(value, tf.compat.v1.SparseTensorValue)
        assert value.values.tolist() == [3]
