"""Optimizers of programs around the older ones of Keras, as packages write them (moving
averages, steps that look ahead). Values are TensorFlow's."""

import numpy as np
import pytest

import headrace as tf

O = tf.keras.optimizers


class Around(O.legacy.Optimizer):
    """Hands all updates to another optimizer, then shrinks the variable."""

    def __init__(self, inner, shrinks=False, every=2):
        super().__init__("Around")
        self.inner = inner
        self._set_hyper("shrinks", shrinks)
        self._set_hyper("every", every)

    def _create_slots(self, var_list):
        self.inner._create_slots(var_list=var_list)

    def _create_hypers(self):
        self.inner._create_hypers()

    def _prepare_local(self, device, dtype, apply_state):
        return self.inner._prepare_local(device, dtype, apply_state)

    def apply_gradients(self, grads_and_vars, name=None, **kwargs):
        self.inner._iterations = self.iterations
        return super().apply_gradients(grads_and_vars, name, **kwargs)

    def _resource_apply_dense(self, grad, var, apply_state=None):
        assert "apply_state" in self.inner._dense_apply_args
        return self.inner._resource_apply_dense(grad, var, apply_state=apply_state)

    def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
        assert "apply_state" in self.inner._sparse_apply_args
        return self.inner._resource_apply_sparse(
            grad, var, indices, apply_state=apply_state
        )


# Class, the values behind two steps of rate 0.1 for x * x, and the slots of a variable.
ROWS = [
    ("Adam", [0.8004128, 1.800167, 2.8001032], ["m:0", "v:0"]),
    ("SGD", [0.64, 1.28, 1.92], []),
    ("RMSprop", [0.4988707, 1.4738754, 2.466821], ["rms:0"]),
    ("Adagrad", [0.8347374, 1.8315430, 2.8306844], ["accumulator:0"]),
    ("Ftrl", [0.685782, 1.6771111, 2.6748259], ["accumulator:0", "linear:0"]),
    ("Adamax", [0.8051683, 1.8025341, 2.8016562], ["m:0", "v:0"]),
    ("Adadelta", [0.9997153, 1.9997154, 2.9997153], ["accum_grad:0", "accum_var:0"]),
]


@pytest.mark.parametrize("name,expected,slots", ROWS, ids=lambda r: str(r)[:9])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_optimizer_hands_updates_to_another(name, expected, slots, sparse):
    if sparse and name == "SGD":
        pytest.skip("TensorFlow's fails")
    x = tf.Variable([[1.0], [2.0], [3.0]])
    inner = getattr(O.legacy, name)(0.1)
    outer = Around(inner)
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((tf.gather(x, [0, 2]) if sparse else x) ** 2)
        outer.apply_gradients([(tape.gradient(loss, x), x)])
    if sparse:
        expected = [expected[0], 2.0, expected[2]]
    np.testing.assert_allclose(x.numpy().ravel(), expected, rtol=2e-6)
    assert [w.name.split("/")[-1] for w in inner.weights] == slots
    assert (int(outer.iterations), int(inner.iterations)) == (2, 2)
    assert [w.name.split("/")[-1] for w in outer._weights] == ["iter:0"]


def test_hyper_parameters_of_programs_keep_their_kind():
    class Kept(O.legacy.SGD):
        def __init__(self):
            super().__init__(1)
            self._set_hyper("fast", True)
            self._set_hyper("every", 3)

    made = Kept()
    assert "fast" in made._hyper and "slow" not in made._hyper
    made._create_hypers()
    assert made._get_hyper("fast").dtype == tf.bool
    assert made._get_hyper("every").dtype == tf.int32
    assert made._serialize_hyperparameter("every") == 3
    # Around makes no variables of its own: they are what was given.
    around = Around(O.legacy.SGD(0.1))
    x = tf.Variable([1.0])
    around.apply_gradients([(tf.constant([1.0]), x)])
    assert around._serialize_hyperparameter("every") == 2
    assert isinstance(around._serialize_hyperparameter("every"), int)


def test_a_subclass_may_change_the_shared_learning_rate():
    class Tenth(O.legacy.SGD):
        def _prepare_local(self, device, dtype, apply_state):
            super()._prepare_local(device, dtype, apply_state)
            apply_state[(device, dtype)]["lr_t"] /= 10.0

        def _resource_apply_dense(self, grad, var, apply_state=None):
            return super()._resource_apply_dense(grad, var, apply_state=apply_state)

    x = tf.Variable([1.0])
    Tenth(0.5).apply_gradients([(tf.constant([2.0]), x)])
    np.testing.assert_allclose(x, [0.9], rtol=1e-6)


def test_rows_are_set_and_the_value_given():
    x = tf.Variable([[1.0], [2.0], [3.0]])
    found = O.legacy.SGD()._resource_scatter_update(x, [0, 2], [[7.0], [8.0]])
    assert found.numpy().ravel().tolist() == [7.0, 2.0, 8.0]


def test_names_may_be_those_of_older_optimizers():
    assert type(O.get("adam", use_legacy_optimizer=True)) is O.legacy.Adam
    assert type(O.get("adam", use_legacy_optimizer=False)) is O.Adam
    config = {"class_name": "SGD", "config": {"learning_rate": 0.5}}
    for made in (
        O.get(config, use_legacy_optimizer=True),
        O.deserialize(config, use_legacy_optimizer=True),
    ):
        assert type(made) is O.legacy.SGD and float(made.learning_rate) == 0.5
    for call in (lambda: O.get("adam", foo=1), lambda: O.deserialize(config, foo=1)):
        with pytest.raises(TypeError, match=r"Invalid keyword arguments: {'foo': 1}"):
            call()


def test_there_is_one_base_of_newer_optimizers():
    assert O.Optimizer is O.experimental.Optimizer
    assert issubclass(O.Adam, O.experimental.Optimizer)
    assert issubclass(O.experimental.Adam, O.Optimizer)


class Descent(O.Optimizer):
    """A program's own, whose rate is a schedule."""

    def __init__(self, learning_rate):
        super().__init__(name="Descent")
        self._learning_rate = self._build_learning_rate(learning_rate)

    def update_step(self, gradient, variable):
        rate = tf.cast(self.learning_rate, variable.dtype)
        variable.assign_sub(rate * gradient)


def test_optimizers_of_programs_are_saved_with_lists(tmp_path):
    x, made = tf.Variable([1.0]), Descent(0.5)
    made.build([x])
    made.apply_gradients([(tf.constant([1.0]), x)])
    path = tf.train.Checkpoint(made=made).write(str(tmp_path / "c"))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert "made/_iterations/.ATTRIBUTES/VARIABLE_VALUE" in names
    assert "made/iter/.ATTRIBUTES/VARIABLE_VALUE" not in names
