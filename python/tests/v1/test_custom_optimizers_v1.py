"""Optimizers that users write for graphs; the values are TensorFlow's."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1


class Summing(v1.train.Optimizer):
    """By the sum of all gradients; variables of references, 100 times as fast."""

    def __init__(self, rate):
        super().__init__(False, "Summing")
        self._rate = rate

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._get_or_make_slot(v, tf.ones(v.shape), "one", "One")

    def _prepare(self):
        self._rate_t = tf.convert_to_tensor(self._call_if_callable(self._rate))

    def _apply_dense(self, grad, var):
        return v1.assign_sub(var, self._rate_t * grad * self.get_slot(var, "one"))

    def _apply_sparse(self, grad, var):
        return v1.scatter_sub(var, grad.indices, grad.values * self._rate_t)

    def _resource_apply_dense(self, grad, handle):
        return handle.assign_sub(
            self._rate_t * self.get_slot(handle, "m").assign_add(grad)
        )

    def _resource_apply_sparse(self, grad, handle, indices):
        return tf.raw_ops.ResourceScatterAdd(
            resource=handle.handle, indices=indices, updates=-self._rate_t * grad
        )


def run(make, resource, steps=2):
    with tf.Graph().as_default():
        v = v1.get_variable("v", initializer=[1.0, 2.0], use_resource=resource)
        rows = [[1.0, 2.0], [3.0, 4.0]]
        e = v1.get_variable("e", initializer=rows, use_resource=resource)
        loss = tf.reduce_sum(v * v) + tf.reduce_sum(tf.gather(e, [1, 1]) ** 2)
        opt = make()
        step = v1.train.get_or_create_global_step()
        train = opt.minimize(loss, global_step=step)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(steps):
                session.run(train)
            names = sorted(x.name for x in v1.global_variables())
            return session.run([v, e, step]), names, opt


@pytest.mark.parametrize("rate", [0.1, lambda: 0.1])
def test_an_optimizer_of_ones_own(rate):
    (v, e, step), names, opt = run(lambda: Summing(rate), resource=False)
    np.testing.assert_allclose(v, [0.64, 1.28], rtol=1e-6)
    np.testing.assert_allclose(e, [[1, 2], [1.08, 1.44]], rtol=1e-6)
    assert step == 2 and opt.get_slot_names() == ["m", "one"]
    assert {"v/One:0", "v/Summing:0", "e/One:0", "global_step:0"} <= set(names)
    (v, e, step), _, _ = run(lambda: Summing(rate), resource=True)
    np.testing.assert_allclose(v, [0.44, 0.88], rtol=1e-6)
    np.testing.assert_allclose(e, [[1, 2], [1.08, 1.44]], rtol=1e-6)


def test_eagerly_and_in_functions():
    for around in (lambda f: f, tf.function):
        v, opt = tf.Variable([1.0, 2.0]), Summing(0.1)
        loss = lambda: tf.reduce_sum(v * v)  # noqa: B023, E731
        step = around(lambda: opt.minimize(loss, var_list=[v]))  # noqa: B023
        step(), step()
        np.testing.assert_allclose(v, [0.44, 0.88], rtol=1e-6)


class Counting(v1.train.AdamOptimizer):
    """Adam that counts its steps behind the updates."""

    def _create_slots(self, var_list):
        super()._create_slots(var_list)
        first = min(var_list, key=lambda v: v.name)
        self._create_non_slot_variable(0.0, "count", colocate_with=first)

    def _finish(self, update_ops, name_scope):
        with tf.control_dependencies(update_ops):
            count = self._get_non_slot_variable("count", v1.get_default_graph())
            counted = count.assign_add(1.0)
        return super()._finish([*update_ops, counted.op], name_scope)


def test_an_optimizer_that_is_extended():
    with tf.Graph().as_default():
        v = v1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
        opt = Counting(0.1)
        train = opt.minimize(tf.reduce_sum(v * v))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(train), session.run(train)
            count = opt._get_non_slot_variable("count", v1.get_default_graph())
            value, steps = session.run([v, count])
        np.testing.assert_allclose(value, [0.8004126, 1.8001668], rtol=1e-6)
        assert steps == 2 and train.name == "Adam"
