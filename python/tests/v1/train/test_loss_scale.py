"""Loss scales of TensorFlow 1, and optimizers in branches of a session's graph."""

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
mixed = v1.mixed_precision
SGD = v1.train.GradientDescentOptimizer


def test_fixed_scales():
    scale = mixed.FixedLossScale(3)
    assert float(scale()) == 3.0 and repr(scale) == "FixedLossScale(3.0)"
    assert scale.update([tf.constant(1.0)]) == (None, True)
    assert scale.get_config() == {"loss_scale_value": 3.0}
    with pytest.raises(ValueError, match="must be at least 1"):
        mixed.FixedLossScale(0.5)
    for wrong in ("a", tf.constant(3.0)):
        with pytest.raises(ValueError, match="must be a Python int or float"):
            mixed.FixedLossScale(wrong)
    with pytest.raises(TypeError, match="abstract"):
        mixed.LossScale()


def test_dynamic_scales_grow_and_shrink():
    scale, found = mixed.DynamicLossScale(8, 2, 2.0), []
    for g in (1.0, 1.0, 1.0, np.inf, np.nan, np.inf, np.inf, np.inf, 1.0, 1.0):
        update, right = scale.update([tf.constant([g]), None])
        assert update is None
        found.append((float(scale()), bool(right)))
    grown = [(8, True), (16, True), (16, True)]
    shrunk = [(n, False) for n in (8, 4, 2, 1, 1)]
    assert found == [*grown, *shrunk, (1, True), (2, True)]
    rows = tf.IndexedSlices(tf.constant([np.inf]), tf.constant([0]))
    assert not scale.update({"a": rows})[1]
    config = {"initial_loss_scale": 8.0, "increment_period": 2, "multiplier": 2.0}
    assert scale.get_config() == config
    assert mixed.DynamicLossScale.from_config(config).get_config() == config
    assert repr(mixed.DynamicLossScale(8)).startswith(
        "DynamicLossScale(current_loss_scale=8.0, num_good_steps=0, initial_loss_scale"
    )


def test_traced_updates_and_checkpoints(tmp_path):
    scale = mixed.DynamicLossScale(8, 1, 2.0)
    update = tf.function(lambda x: scale.update([x])[1])
    assert bool(update(tf.constant(1.0))) and float(scale()) == 16
    assert not bool(update(tf.constant(np.inf))) and float(scale()) == 8
    path = tf.train.Checkpoint(scale=scale).save(str(tmp_path / "c"))
    names = {name.partition("/.")[0] for name, _ in tf.train.list_variables(path)}
    assert {"scale/current_loss_scale", "scale/good_steps"} <= names


def test_the_optimizer_leaves_out_steps_that_are_not_finite():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.get_variable("x", initializer=2.0)
        factor = v1.placeholder_with_default(1.0, [])
        scale = mixed.DynamicLossScale(8, 2, 2.0)
        optimizer = mixed.MixedPrecisionLossScaleOptimizer(SGD(0.5), scale)
        pairs = optimizer.compute_gradients(x * factor)
        step = v1.train.get_or_create_global_step()
        train = optimizer.apply_gradients(pairs, global_step=step)
        session.run(v1.global_variables_initializer())
        found = []
        for f in (1.0, 1.0, np.inf, 2.0, np.nan, 1.0, 1.0):
            session.run(train, {factor: f})
            found.append(tuple(float(n) for n in session.run([x, scale(), step])))
        names = [v.op.name for v in v1.global_variables()]
        assert names == ["x", "current_loss_scale", "good_steps", "global_step"]
        kept = [v.op.name for v in optimizer.variables()]
        assert kept == ["current_loss_scale", "good_steps"]
        assert (train.name, train.type) == ("GradientDescent", "NoOp")
    # Values of TensorFlow 2.21.
    assert found == [
        (1.5, 8, 1),
        (1.0, 16, 2),
        (1.0, 8, 2),
        (0.0, 8, 3),
        (0.0, 4, 3),
        (-0.5, 4, 4),
        (-1.0, 8, 5),
    ]


@pytest.mark.parametrize("scale", [4.0, "dynamic"])
def test_the_optimizer_eagerly(scale):
    x = tf.Variable(2.0)
    optimizer = mixed.MixedPrecisionLossScaleOptimizer(SGD(0.5), scale)
    optimizer.minimize(lambda: x * x)
    assert float(x) == 0.0


def test_what_the_optimizer_refuses():
    wrap = mixed.MixedPrecisionLossScaleOptimizer
    with pytest.raises(ValueError, match='"opt" must be an instance of Optimizer'):
        wrap(3, 2)
    with pytest.raises(
        ValueError, match="Could not interpret loss scale identifier: x"
    ):
        wrap(SGD(0.5), "x")
    with pytest.raises(ValueError, match="loss_scale cannot be None"):
        wrap(SGD(0.5), None)


def test_the_rewrite_is_asked_for_and_scales_losses():
    enable = mixed.enable_mixed_precision_graph_rewrite
    options = tf.config.optimizer.get_experimental_options
    wrapped = enable(SGD(0.5))
    assert type(wrapped) is mixed.MixedPrecisionLossScaleOptimizer
    assert options()["auto_mixed_precision"] is True
    with pytest.raises(ValueError, match="must not already be an instance"):
        enable(wrapped)
    with pytest.raises(ValueError, match="must be an instance of a tf.train.Optimizer"):
        enable(3)
    with pytest.raises(NotImplementedError, match="optimizers of Keras"):
        enable(tf.keras.optimizers.legacy.SGD(0.5))
    mixed.disable_mixed_precision_graph_rewrite()
    assert options()["auto_mixed_precision"] is False


@pytest.mark.parametrize("frames", [False, True])
@pytest.mark.parametrize("name", ["Adam", "Momentum", "GradientDescent", "Ftrl"])
def test_optimizers_in_branches(name, frames):
    def trained(in_branch):
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.get_variable("x", initializer=[2.0, 1.0])
            y = v1.get_variable(
                "y",
                initializer=[1.0, 1.0],
                constraint=lambda v: tf.minimum(v, 0.9),
            )
            wanted = v1.placeholder(tf.bool, [])
            options = {"momentum": 0.9} if name == "Momentum" else {}
            optimizer = getattr(v1.train, f"{name}Optimizer")(0.1, **options)
            pairs = optimizer.compute_gradients(tf.reduce_sum(x * x * y))
            step = v1.train.get_or_create_global_step()

            def apply():
                return optimizer.apply_gradients(pairs, global_step=step)

            train = tf.cond(wanted, apply, tf.no_op) if in_branch else apply()
            session.run(v1.global_variables_initializer())
            for value in (True, False, True) if in_branch else (True, True):
                session.run(train, {wanted: value})
            names = [v.name for v in v1.global_variables()]
            return session.run([x, y, step]), names

    switch = v1.disable_control_flow_v2 if frames else v1.enable_control_flow_v2
    switch()
    try:
        (found, names), (plain, same) = trained(True), trained(False)
    finally:
        v1.enable_control_flow_v2()
    assert frames or names == same
    for a, b in zip(found, plain):
        np.testing.assert_allclose(a, b, rtol=1e-6)
