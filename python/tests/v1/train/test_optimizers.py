"""The optimizers of tf.compat.v1.train."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
train = v1.train

# Values of TensorFlow 2.21 after three steps over rows 0, 2, 0 of a matrix, and a
# vector, and two over all of the matrix.
CASES = {
    "sgd": (lambda: train.GradientDescentOptimizer(0.1), []),
    "momentum": (lambda: train.MomentumOptimizer(0.1, 0.9), ["Momentum"]),
    "nesterov": (
        lambda: train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        ["Momentum"],
    ),
    "adam": (lambda: train.AdamOptimizer(0.1), ["Adam", "Adam_1"]),
    "adagrad": (lambda: train.AdagradOptimizer(0.1), ["Adagrad"]),
    "adadelta": (lambda: train.AdadeltaOptimizer(0.5), ["Adadelta", "Adadelta_1"]),
    "rmsprop": (lambda: train.RMSPropOptimizer(0.1), ["RMSProp", "RMSProp_1"]),
    "centered": (
        lambda: train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
        ["RMSProp", "RMSProp_1", "RMSProp_2"],
    ),
    "ftrl": (lambda: train.FtrlOptimizer(0.1), ["Ftrl", "Ftrl_1"]),
    "shrinkage": (
        lambda: train.FtrlOptimizer(
            0.1,
            l1_regularization_strength=0.01,
            l2_regularization_strength=0.01,
            l2_shrinkage_regularization_strength=0.02,
        ),
        ["Ftrl", "Ftrl_1"],
    ),
}
EXPECTED = {
    "sgd": ([[0.13824, 0.27648], [1.92, 2.56], [1.6384, 1.96608]], [0.544, 0.544]),
    "momentum": (
        [[-1.0746, -2.1492], [1.38, 1.84], [-2.9021, -3.48252]],
        [1.01929, 1.01929],
    ),
    "nesterov": (
        [[-0.4704527, -0.9409055], [0.6672001, 0.8896], [-2.078588, -2.494305]],
        [0.8379385, 0.8379385],
    ),
    "adam": (
        [[0.5235298, 1.517688], [2.868623, 3.868613], [4.500985, 5.500804]],
        [0.82126, 0.82126],
    ),
    "adagrad": (
        [[0.7344093, 1.72532], [2.830684, 3.830295], [4.680771, 5.680092]],
        [0.5981758, 0.5981758],
    ),
    "adadelta": (
        [[0.9990636, 1.999063], [2.99955, 3.99955], [4.998861, 5.99886]],
        [0.5002173, 0.5002173],
    ),
    "rmsprop": (
        [[0.3536079, 1.192246], [2.511806, 3.490573], [3.998927, 4.985087]],
        [0.5399801, 0.5399801],
    ),
    "centered": (
        [[-0.06684896, 0.5368627], [2.33319, 3.300347], [3.142619, 4.104243]],
        [0.687936, 0.687936],
    ),
    "ftrl": (
        [[0.6630733, 1.649575], [2.674826, 3.673798], [4.525356, 5.524185]],
        [0.4787274, 0.4787274],
    ),
    "shrinkage": (
        [[0.659714, 1.645928], [2.670462, 3.669419], [4.518103, 5.516895]],
        [0.4714998, 0.4714998],
    ),
}


def final_values(make, use_resource):
    """(step's name, variables' names, the matrix and the vector after all steps)."""
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable(
            "a/w",
            initializer=tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
            use_resource=use_resource,
        )
        b = v1.get_variable(
            "b", initializer=tf.constant([0.5, 0.5]), use_resource=use_resource
        )
        step = train.get_or_create_global_step()
        rows = tf.gather(w, [0, 2, 0])
        loss = tf.reduce_sum(tf.square(rows)) + tf.reduce_sum(tf.square(b - 1.0))
        optimizer = make()
        sparse = optimizer.minimize(loss, global_step=step)
        dense = optimizer.minimize(tf.reduce_sum(tf.square(w)) + tf.reduce_sum(b))
        session.run(v1.global_variables_initializer())
        for op in [sparse] * 3 + [dense] * 2:
            session.run(op)
        assert session.run(step) == 3
        assert sparse.name == optimizer.get_name()
        names = [v.op.name for v in optimizer.variables()]
        return names, session.run(w), session.run(b)


@pytest.mark.parametrize("use_resource", [True, False], ids=["resource", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_slots(name, use_resource):
    make, slots = CASES[name]
    names, w, b = final_values(make, use_resource)
    wanted = [f"{v}/{s}" for v in ("a/w", "b") for s in slots]
    if name == "adam":
        wanted += ["beta1_power", "beta2_power"]
    assert sorted(names) == sorted(wanted)
    np.testing.assert_allclose(w, EXPECTED[name][0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(b, EXPECTED[name][1], rtol=1e-4, atol=1e-5)


def test_eager_steps_are_the_same():
    v = tf.Variable([1.0, 2.0], name="x")
    optimizer = train.AdamOptimizer(0.1)
    for _ in range(3):
        optimizer.minimize(lambda: tf.reduce_sum(v * v), var_list=[v])
    np.testing.assert_allclose(v.numpy(), [0.7015873, 1.7006245], rtol=1e-6)
    assert [s.name for s in optimizer.variables()] == [
        "beta1_power:0",
        "beta2_power:0",
        "x/Adam:0",
        "x/Adam_1:0",
    ]


def test_traced_steps_are_the_same():
    v = tf.Variable([1.0, 2.0])
    optimizer = train.AdamOptimizer(0.1)

    @tf.function
    def step():
        optimizer.minimize(lambda: tf.reduce_sum(v * v), var_list=[v])

    for _ in range(3):
        step()
    np.testing.assert_allclose(v.numpy(), [0.7015873, 1.7006245], rtol=1e-6)


def test_saved_by_objects_and_by_name(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        v = tf.Variable([1.0], name="v")
        optimizer = train.MomentumOptimizer(0.1, 0.9)
        step = optimizer.minimize(tf.reduce_sum(v * v))
        session.run(v1.global_variables_initializer())
        session.run(step)
        checkpoint = tf.train.Checkpoint(v=v, optimizer=optimizer)
        path = checkpoint.write(str(tmp_path / "objects"))
        momentum = session.run(optimizer.get_slot(v, "momentum"))
    key = "v/.OPTIMIZER_SLOT/optimizer/momentum/.ATTRIBUTES/VARIABLE_VALUE"
    assert tf.train.load_variable(path, key) == momentum


def test_learning_rates_may_be_tensors_and_functions():
    with tf.Graph().as_default(), v1.Session() as session:
        v = tf.Variable(1.0)
        rate = v1.placeholder(tf.float32, [])
        step = train.GradientDescentOptimizer(rate).minimize(v * 1.0)
        session.run(v.initializer)
        session.run(step, {rate: 0.5})
        assert session.run(v) == 0.5
    v = tf.Variable(1.0)
    train.GradientDescentOptimizer(lambda: 0.25).minimize(lambda: v * 1.0)
    assert float(v) == 0.75


def test_wrong_arguments():
    with tf.Graph().as_default():
        optimizer = train.GradientDescentOptimizer(0.1)
        with pytest.raises(ValueError, match="No variables to optimize"):
            optimizer.minimize(tf.constant(1.0))
        v = tf.Variable(1.0)
        with pytest.raises(ValueError, match="No gradients provided"):
            optimizer.minimize(tf.constant(1.0), var_list=[v])
        with pytest.raises(ValueError, match="No variables provided"):
            optimizer.apply_gradients([])
    with pytest.raises(RuntimeError, match="should be a function"):
        optimizer.minimize(tf.constant(1.0), var_list=[tf.Variable(1.0)])
    with pytest.raises(ValueError, match="Must specify the optimizer name"):
        train.GradientDescentOptimizer(0.1, name="")


def test_gradients_of_graphs():
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.constant([1.0, 2.0])
        y = x * x
        (dx,) = tf.gradients(y, [x])
        assert session.run(dx).tolist() == [2, 4]
        (dx,) = tf.gradients([y, 3.0 * x], x, grad_ys=[tf.constant([1.0, 0.0]), None])
        assert session.run(dx).tolist() == [5, 3]
        (second,) = tf.gradients(tf.gradients(x * y, x)[0], x)
        assert session.run(second).tolist() == [6, 12]
        z = tf.constant(1.0)
        assert tf.gradients(y, [z]) == [None]
        (none,) = tf.gradients(y, [z], unconnected_gradients="zero")
        assert session.run(none) == 0
        (part,) = tf.gradients(y * x, x, stop_gradients=[y])
        assert session.run(part).tolist() == [1, 4]
        rows = v1.gradients(tf.gather(x, [0, 0]), x)[0]
        assert isinstance(rows, tf.IndexedSlices)
    with pytest.raises(RuntimeError, match="tf.gradients is not supported when"):
        tf.gradients(x, x)


def test_gradients_inside_functions():
    v = tf.Variable(3.0)

    @tf.function
    def slope(x):
        return tf.gradients(v * x * x, [x, v])

    assert [float(g) for g in slope(tf.constant(2.0))] == [12.0, 4.0]


@pytest.mark.parametrize("use_resource", [True, False])
def test_constraints_hold_after_each_step(use_resource):
    with tf.Graph().as_default(), v1.Session() as session:
        made = dict(
            constraint=lambda x: tf.clip_by_value(x, 0.5, 1.5),
            use_resource=use_resource,
        )
        v = v1.Variable([1.0, 2.0], **made)
        step = train.MomentumOptimizer(1.0, 0.9).apply_gradients([([1.0, 0.1], v)])
        session.run(v1.global_variables_initializer())
        session.run(step)
        np.testing.assert_allclose(session.run(v), [0.5, 1.5])
        rows = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
        with pytest.raises(RuntimeError, match="constraint function on a sparse"):
            train.AdamOptimizer(1.0).apply_gradients([(rows, v)])


def test_constraints_hold_eagerly():
    v = tf.Variable([1.0, 2.0], constraint=lambda x: tf.minimum(x, 0.25))
    train.GradientDescentOptimizer(0.5).apply_gradients([(tf.ones(2), v)])
    np.testing.assert_allclose(v.numpy(), [0.25, 0.25])


def test_tensors_are_no_variables():
    x = tf.constant(2.0)
    sgd = train.GradientDescentOptimizer(1.0)
    pairs = sgd.compute_gradients(lambda: x * x, [x])
    assert float(pairs[0][0]) == 4.0
    with pytest.raises(NotImplementedError, match="Trying to update a Tensor"):
        sgd.apply_gradients(pairs)


def test_variables_are_those_of_the_current_graph():
    adam = train.AdamOptimizer(0.1)
    for name in "ab":
        with tf.Graph().as_default():
            v = v1.get_variable(name, initializer=[1.0, 2.0], use_resource=True)
            adam.minimize(tf.reduce_sum(v * v))
            slots = [x.name for x in adam.variables() if "/" in x.name]
            assert slots == [f"{name}/Adam:0", f"{name}/Adam_1:0"]
    assert adam.variables() == []


def test_slots_of_variables_without_a_shape():
    with tf.Graph().as_default(), v1.Session() as session:
        start = v1.placeholder_with_default(tf.constant([1.0, 1.0]), None)
        v = v1.get_variable("v", initializer=start, validate_shape=False)
        step = train.AdagradOptimizer(1.0, 0.25).apply_gradients([([0.5, 0.0], v)])
        session.run(v1.global_variables_initializer())
        session.run(step)
        np.testing.assert_allclose(session.run(v), [1 - 0.5 / 0.5**0.5, 1.0], 1e-6)


def test_powers_that_adam_counts_with():
    optimizer, v = tf.compat.v1.train.AdamOptimizer(), tf.Variable(1.0)
    optimizer.apply_gradients([(tf.constant(1.0), v)])
    powers = [float(p) for p in optimizer._get_beta_accumulators()]
    assert powers == pytest.approx([0.9**2, 0.999**2], rel=1e-6)


def nodes(*wanted):
    """{name: (inputs, groups)} of the default graph's nodes with these beginnings."""
    return {
        n.name: (list(n.input), list(n.attr["_class"].list.s))
        for n in v1.get_default_graph().as_graph_def().node
        if n.name.startswith(wanted)
    }


# Names, inputs and places as TensorFlow 2.21 has them.
def test_nodes_of_updates():
    v1.disable_resource_variables()
    try:
        with tf.Graph().as_default():
            with v1.variable_scope("s"):
                v = v1.get_variable("v", [3], initializer=tf.zeros_initializer())
            grad = tf.constant([1.0, 2.0, 3.0], name="grad")
            train.AdamOptimizer().apply_gradients([(grad, v)])
            there = [b"loc:@s/v"]
            assert nodes("beta1", "s/v/Adam/", "Adam") == {
                "beta1_power/initial_value": ([], there),
                "beta1_power": ([], there),
                "beta1_power/Assign": (
                    ["beta1_power", "beta1_power/initial_value"],
                    there,
                ),
                "beta1_power/read": (["beta1_power"], there),
                "s/v/Adam/Initializer/zeros": ([], there),
                "s/v/Adam/Assign": (["s/v/Adam", "s/v/Adam/Initializer/zeros"], there),
                "s/v/Adam/read": (["s/v/Adam"], there),
                "Adam/learning_rate": ([], []),
                "Adam/beta1": ([], []),
                "Adam/beta2": ([], []),
                "Adam/epsilon": ([], []),
                "Adam/update_s/v/ApplyAdam": (
                    ["s/v", "s/v/Adam", "s/v/Adam_1", "beta1_power/read"]
                    + ["beta2_power/read", "Adam/learning_rate", "Adam/beta1"]
                    + ["Adam/beta2", "Adam/epsilon", "grad"],
                    there,
                ),
                "Adam/mul": (
                    ["beta1_power/read", "Adam/beta1", "^Adam/update_s/v/ApplyAdam"],
                    there,
                ),
                "Adam/Assign": (["beta1_power", "Adam/mul"], there),
                "Adam/mul_1": (
                    ["beta2_power/read", "Adam/beta2", "^Adam/update_s/v/ApplyAdam"],
                    there,
                ),
                "Adam/Assign_1": (["beta2_power", "Adam/mul_1"], there),
                "Adam": (
                    ["^Adam/update_s/v/ApplyAdam", "^Adam/Assign", "^Adam/Assign_1"],
                    [],
                ),
            }
    finally:
        v1.enable_resource_variables()


def test_nodes_of_an_update_that_counts():
    v1.disable_resource_variables()
    try:
        with tf.Graph().as_default():
            v = v1.get_variable("v", [3], initializer=tf.zeros_initializer())
            step = train.get_or_create_global_step()
            grad = tf.constant([1.0, 2.0, 3.0])
            optimizer = train.GradientDescentOptimizer(0.1)
            optimizer.apply_gradients([(grad, v)], global_step=step)
            rate = "GradientDescent/learning_rate"
            update = "GradientDescent/update_v/ApplyGradientDescent"
            counted = [b"loc:@global_step"]
            assert nodes("GradientDescent") == {
                rate: ([], []),
                update: (["v", rate, "Const"], [b"loc:@v"]),
                "GradientDescent/update": ([f"^{update}"], []),
                "GradientDescent/value": (["^GradientDescent/update"], counted),
                "GradientDescent": (["global_step", "GradientDescent/value"], counted),
            }
    finally:
        v1.enable_resource_variables()
