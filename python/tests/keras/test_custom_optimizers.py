"""Optimizers that users write, by both interfaces of Keras; the values are tf_keras'."""

import headrace as tf
import numpy as np
import pytest

K = tf.keras
legacy = K.optimizers.legacy
GRADIENT = tf.constant([1.0, 2.0])
ROWS = tf.IndexedSlices(
    tf.constant([[1.0, 1.0], [2.0, 2.0]]), tf.constant([1, 1]), tf.constant([2, 2])
)


def near(values, expected):
    np.testing.assert_allclose(values, expected, rtol=2e-6)


def variables():
    return tf.Variable([1.0, 2.0], name="v"), tf.Variable([[1.0, 2.0], [3.0, 4.0]])


class Momentum(K.optimizers.Optimizer):
    def __init__(self, learning_rate=0.1, mu=0.9, name="Momentum", **kwargs):
        super().__init__(name=name, **kwargs)
        self._learning_rate = self._build_learning_rate(learning_rate)
        self.mu = mu

    def build(self, var_list):
        super().build(var_list)
        if hasattr(self, "_built") and self._built:
            return
        self.count = self.add_variable([], initializer="ones", name="count")
        self.ms = [
            self.add_variable_from_reference(v, "m", initial_value=tf.zeros_like(v))
            for v in var_list
        ]
        self._built = True

    def update_step(self, gradient, variable):
        m = self.ms[self._index_dict[self._var_key(variable)]]
        m.assign(self.mu * m + gradient)
        variable.assign_sub(tf.cast(self.learning_rate, variable.dtype) * m)
        self.count.assign_add(1.0)

    def get_config(self):
        rate = self._serialize_hyperparameter(self._learning_rate)
        return {**super().get_config(), "learning_rate": rate, "mu": self.mu}


class LegacyMomentum(legacy.Optimizer):
    def __init__(self, learning_rate=0.1, mu=0.9, name="Old", **kwargs):
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("mu", mu)

    def _create_slots(self, var_list):
        for v in var_list:
            self.add_slot(v, "m")

    def _prepare_local(self, var_device, var_dtype, apply_state):
        super()._prepare_local(var_device, var_dtype, apply_state)
        mu = tf.identity(self._get_hyper("mu", var_dtype))
        apply_state[(var_device, var_dtype)]["mu"] = mu

    def _resource_apply_dense(self, grad, var, apply_state=None):
        key = var.device, var.dtype.base_dtype
        known = (apply_state or {}).get(key) or self._fallback_apply_state(*key)
        m = self.get_slot(var, "m")
        return var.assign_sub(known["lr_t"] * m.assign(known["mu"] * m + grad))

    def _resource_apply_sparse(self, grad, var, indices):
        rate = self._decayed_lr(var.dtype.base_dtype)
        return self._resource_scatter_add(var, indices, -rate * grad)

    def get_config(self):
        names = ("learning_rate", "decay", "mu")
        own = {n: self._serialize_hyperparameter(n) for n in names}
        return {**super().get_config(), **own}


@pytest.mark.parametrize("make", [Momentum, LegacyMomentum])
@pytest.mark.parametrize("traced", [False, True])
def test_an_optimizer_of_ones_own(make, traced):
    v, _ = variables()
    opt = make()

    def step():
        opt.apply_gradients([(GRADIENT, v)])

    step = tf.function(step) if traced else step
    for _ in range(3):
        step()
    near(v, [0.439, 0.878])
    assert int(opt.iterations) == 3
    again = make.from_config(opt.get_config())
    near([float(again.learning_rate), float(again.mu)], [0.1, 0.9])


@pytest.mark.parametrize("make", [Momentum, LegacyMomentum])
def test_it_trains_a_model(make):
    dense = K.layers.Dense(1, kernel_initializer="ones")
    model = K.Sequential([K.Input([2]), dense])
    model.compile(make(0.05), "mse")
    found = model.fit(np.ones([4, 2]), np.zeros([4, 1]), epochs=3, verbose=0)
    near(found.history["loss"], [4.0, 1.959999918937683, 0.19360004365444183])


def test_names_and_values_of_its_variables():
    v, rows = variables()
    new, old = Momentum(), LegacyMomentum()
    new.apply_gradients([(GRADIENT, v)])
    assert [x.name for x in new.variables] == [
        "iteration:0",
        "Momentum/count:0",
        "Momentum/m/v:0",
    ]
    assert float(new.count) == 2
    for _ in range(3):
        old.apply_gradients([(GRADIENT, v), (ROWS, rows)])
    near(rows, [[1.0, 2.0], [2.1, 3.1]])
    assert [x.name for x in old.variables()][:2] == ["Old/iter:0", "Old/v/m:0"]
    assert old.get_slot_names() == ["m"]
    near(old.get_weights()[1], [2.71, 5.42])
    assert sorted(old.get_config()) == ["decay", "learning_rate", "mu", "name"]


def test_rates_that_change():
    schedule = K.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    opt = Momentum(schedule)
    assert opt.get_config()["learning_rate"]["class_name"] == "ExponentialDecay"
    opt = Momentum()
    opt.learning_rate = 0.3
    near(opt.get_config()["learning_rate"], 0.3)

    class Plain(legacy.Optimizer):
        def __init__(self, rate):
            super().__init__("Plain")
            self._set_hyper("learning_rate", rate)

        def _resource_apply_dense(self, grad, var, apply_state):
            key = var.device, var.dtype.base_dtype
            return var.assign_sub(apply_state[key]["lr_t"] * grad)

    opt, (v, rows) = Plain(schedule), variables()
    for _ in range(3):
        opt.apply_gradients([(GRADIENT, v)])
    near(v, [0.825, 1.65])
    assert sorted(opt.get_config()) == ["name"]
    with pytest.raises(NotImplementedError, match="Plain updates no variable"):
        opt.apply_gradients([(ROWS, rows)])
    with pytest.raises(NotImplementedError, match="Bare updates no variable"):
        type("Bare", (K.optimizers.Optimizer,), {})("b").apply_gradients(
            [(GRADIENT, v)]
        )


def test_rules_that_are_extended():
    class Decay(legacy.Adam):
        def __init__(self, wd=0.1, **kwargs):
            super().__init__(**kwargs)
            self._set_hyper("wd", wd)

        def _faded(self, var):
            return var.assign_sub(self._get_hyper("wd", var.dtype) * var)

        def _resource_apply_dense(self, grad, var, apply_state=None):
            with tf.control_dependencies([self._faded(var)]):
                return super()._resource_apply_dense(grad, var, apply_state)

        def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
            with tf.control_dependencies([self._faded(var)]):
                return super()._resource_apply_sparse(grad, var, indices, apply_state)

    v, rows = variables()
    opt = Decay(learning_rate=0.1)
    for _ in range(3):
        opt.apply_gradients([(GRADIENT, v), (ROWS, rows)])
    near(v, [0.45800063, 1.1870003])
    near(rows, [[0.729, 1.458], [1.9160002, 2.6450002]])
    assert "beta_1" in opt.get_config() and opt.get_slot_names() == ["m", "v"]

    class Twice(K.optimizers.SGD):
        def update_step(self, gradient, variable):
            return super().update_step(2 * gradient, variable)

    v, _ = variables()
    opt = Twice(0.1, momentum=0.5, weight_decay=0.1)
    for _ in range(2):
        opt.apply_gradients([(GRADIENT, v)])
    near(v, [0.4821, 0.9642])


def test_copies_of_a_strategy():
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    for make in (Momentum, LegacyMomentum):
        with strategy.scope():
            v, opt = tf.Variable([1.0, 2.0]), make()
        strategy.run(lambda: opt.apply_gradients([(GRADIENT * 1, v)]))  # noqa: B023
        near(v, [0.8, 1.6])


def test_what_legacy_optimizers_let_subclasses_define():
    told = []

    class Told(tf.keras.optimizers.legacy.SGD):
        def _compute_gradients(self, loss, var_list, grad_loss=None, tape=None):
            told.append("compute")
            return super()._compute_gradients(loss, var_list, grad_loss, tape)

        def _transform_loss(self, loss):
            told.append("loss")
            return loss * 2.0

        def _transform_unaggregated_gradients(self, grads_and_vars):
            told.append("unaggregated")
            return grads_and_vars

        def _aggregate_gradients(self, grads_and_vars):
            told.append("aggregate")
            return super()._aggregate_gradients(grads_and_vars)

        def _transform_gradients(self, grads_and_vars):
            told.append("gradients")
            return [(g + 1.0, v) for g, v in grads_and_vars]

    order = ["compute", "loss", "unaggregated", "aggregate", "gradients"]
    variable = tf.Variable(1.0)
    optimizer = Told(0.1)
    optimizer.minimize(lambda: variable * 3.0, [variable])
    assert told == order
    assert abs(float(variable) - 0.3) < 1e-6
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile(Told(0.1), "mse")
    told.clear()
    model.train_on_batch(tf.ones((1, 1)), tf.ones((1, 1)))
    assert told == order
    with pytest.raises(ValueError, match="`tape` is required when a `Tensor` loss is"):
        optimizer.minimize(variable * 3.0, [variable])


def test_a_tape_that_records_again():
    variable = tf.Variable(0.8)
    tape = tf.GradientTape(persistent=True)
    with tape:
        y = variable * variable
    with tape._ensure_recording():
        z = y * 3.0
    assert abs(float(tape.gradient(z, variable)) - 4.8) < 1e-6
    with tape, tape._ensure_recording():
        z = variable * 4.0
    assert tape.gradient(z, variable) == 4.0
