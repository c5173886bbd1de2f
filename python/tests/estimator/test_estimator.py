"""tf.estimator.Estimator."""

import logging
import os
import re

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1


def model_fn(features, labels, mode, params):
    """A line through x; its rate is a parameter."""
    out = tf.keras.layers.Dense(1)(features["x"])
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(
            mode, predictions={"y": out, "x": features["x"]}
        )
    loss = tf.reduce_mean(tf.square(out - labels))
    if mode == tf.estimator.ModeKeys.EVAL:
        off = tf.keras.metrics.MeanAbsoluteError()
        off.update_state(labels, out)
        metrics = {"mse": v1.metrics.mean_squared_error(labels, out), "mae": off}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = v1.train.AdamOptimizer(params["rate"])
    step = optimizer.minimize(loss, global_step=v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def data():
    x = np.linspace(-1, 1, 16, dtype=np.float32)[:, None]
    return tf.data.Dataset.from_tensor_slices(({"x": x}, 3 * x + 1))


def train_data():
    return data().repeat().batch(8)


def eval_data():
    return data().batch(8)


@pytest.fixture
def make(tmp_path):
    def build(**kwargs):
        kwargs.setdefault("params", {"rate": 0.1})
        config = kwargs.pop("config", tf.estimator.RunConfig(tf_random_seed=1))
        return tf.estimator.Estimator(
            model_fn, str(tmp_path / "model"), config, **kwargs
        )

    return build


def names(estimator):
    return set(estimator.get_variable_names())


def test_trains_evaluates_and_predicts(make):
    estimator = make()
    assert estimator.train(train_data, steps=150) is estimator
    assert estimator.latest_checkpoint().endswith("model.ckpt-150")
    found = estimator.evaluate(eval_data)
    assert set(found) == {"loss", "mse", "mae", "global_step"}
    assert found["global_step"] == 150 and found["mse"] < 0.01
    assert found["mse"] == pytest.approx(found["loss"], rel=1e-4)
    rows = list(estimator.predict(eval_data))
    assert len(rows) == 16 and set(rows[0]) == {"x", "y"}
    assert rows[0]["y"][0] == pytest.approx(3 * rows[0]["x"][0] + 1, abs=0.3)
    np.testing.assert_allclose(
        estimator.get_variable_value("dense/kernel"), [[3]], atol=0.3
    )


def test_checkpoints_hold_the_variables_by_name(make):
    estimator = make().train(train_data, steps=2)
    assert names(estimator) == {
        "dense/kernel",
        "dense/bias",
        "dense/kernel/Adam",
        "dense/kernel/Adam_1",
        "dense/bias/Adam",
        "dense/bias/Adam_1",
        "beta1_power",
        "beta2_power",
        "global_step",
    }
    files = set(os.listdir(estimator.model_dir))
    assert {"checkpoint", "graph.pbtxt"} <= files
    for n in (0, 2):
        assert f"model.ckpt-{n}.index" in files and f"model.ckpt-{n}.meta" in files
    assert any(f.startswith("events.out.tfevents.") for f in files)


def test_goes_on_where_it_stopped(make, tmp_path):
    first = make()
    first.train(train_data, steps=3)
    second = make()
    second.train(train_data, steps=3)
    assert second.get_variable_value("global_step") == 6
    second.train(train_data, max_steps=6)  # is there already
    assert second.get_variable_value("global_step") == 6
    second.train(train_data, max_steps=8)
    assert second.get_variable_value("global_step") == 8


def test_events_hold_losses_and_the_graph(make):
    estimator = make().train(train_data, steps=2)
    (events,) = [
        os.path.join(estimator.model_dir, f)
        for f in os.listdir(estimator.model_dir)
        if f.startswith("events")
    ]
    found = list(v1.train.summary_iterator(events))
    assert found[0].file_version == "brain.Event:2"
    kinds = [e.WhichOneof("what") for e in found]
    assert "graph_def" in kinds and "meta_graph_def" in kinds
    losses = [v for e in found for v in e.summary.value if v.tag == "loss"]
    assert len(losses) == 1 and losses[0].simple_value > 0


def test_says_what_it_does(make, caplog, monkeypatch):
    monkeypatch.setattr(tf.get_logger(), "propagate", True)
    with caplog.at_level(logging.INFO):
        make().train(train_data, steps=10)
    lines = "\n".join(r.getMessage() for r in caplog.records)
    wanted = [
        r"Using config: \{'_model_dir': '.*', '_tf_random_seed': 1, ",
        r"Calling model_fn\.",
        r"Done calling model_fn\.",
        r"Create CheckpointSaverHook\.",
        r"Graph was finalized\.",
        r"Running local_init_op\.",
        r"Done running local_init_op\.",
        r"Calling checkpoint listeners before saving checkpoint 0\.\.\.",
        r"Saving checkpoints for 0 into .*model\.ckpt\.",
        r"Calling checkpoint listeners after saving checkpoint 0\.\.\.",
        r"loss = [\d.]+, step = 0",
        r"Saving checkpoints for 10 into .*model\.ckpt\.",
        r"Loss for final step: [\d.]+\.",
    ]
    at = 0
    for pattern in wanted:
        match = re.compile(pattern).search(lines, at)
        assert match, pattern
        at = match.end()


def test_hooks_and_listeners_are_called(make):
    calls = []

    class Hook(tf.estimator.SessionRunHook):
        def begin(self):
            calls.append("begin")

        def after_create_session(self, session, coord):
            calls.append("session")

        def after_run(self, run_context, run_values):
            calls.append("run")

        def end(self, session):
            calls.append("end")

    class Listener(tf.estimator.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            calls.append(f"saved {global_step_value}")

    make().train(train_data, hooks=[Hook()], steps=2, saving_listeners=[Listener()])
    # The saving hook is called first, as upstream's is.
    assert calls == ["begin", "saved 0", "session", "run", "run", "saved 2", "end"]


def test_predictions_in_batches_and_by_key(make):
    estimator = make().train(train_data, steps=1)
    (a, b) = estimator.predict(eval_data, predict_keys="y", yield_single_examples=False)
    assert set(a) == {"y"} and a["y"].shape == b["y"].shape == (8, 1)
    with pytest.raises(ValueError, match="Expected to run at least one output"):
        list(estimator.predict(eval_data, predict_keys=["z"]))


def test_predict_leaves_the_default_graph_alone(make):
    estimator = make().train(train_data, steps=1)
    rows = estimator.predict(lambda: data().repeat().batch(4))
    next(rows)
    assert tf.executing_eagerly()
    assert float(tf.constant(1.0) + 1) == 2.0
    rows.close()
    assert tf.executing_eagerly()


def test_evaluates_so_many_batches(make):
    estimator = make().train(train_data, steps=1)
    some = estimator.evaluate(lambda: data().repeat().batch(4), steps=3, name="some")
    assert some["global_step"] == 1
    assert os.path.isdir(estimator.eval_dir("some"))


def test_input_ends_training(make):
    estimator = make().train(eval_data)
    assert estimator.get_variable_value("global_step") == 2


def test_saves_by_steps_and_keeps_so_many(make):
    config = tf.estimator.RunConfig(save_checkpoints_steps=2, keep_checkpoint_max=2)
    estimator = make(config=config).train(train_data, steps=6)
    state = tf.train.get_checkpoint_state(estimator.model_dir)
    found = [os.path.basename(p) for p in state.all_model_checkpoint_paths]
    assert found == ["model.ckpt-4", "model.ckpt-6"]


def test_warm_start(make, tmp_path):
    first = make().train(train_data, steps=30)
    second = tf.estimator.Estimator(
        model_fn,
        str(tmp_path / "other"),
        params={"rate": 1e-12},
        warm_start_from=first.model_dir,
    )
    second.train(train_data, steps=1)
    np.testing.assert_allclose(
        second.get_variable_value("dense/kernel"),
        first.get_variable_value("dense/kernel"),
        rtol=1e-5,
    )
    assert second.get_variable_value("global_step") == 1


def test_wrong_arguments(make, tmp_path):
    estimator = make()
    with pytest.raises(ValueError, match="both steps and max_steps"):
        estimator.train(train_data, steps=1, max_steps=2)
    with pytest.raises(ValueError, match="Must specify steps > 0, given: 0"):
        estimator.train(train_data, steps=0)
    with pytest.raises(TypeError, match="Hooks must be a SessionRunHook"):
        estimator.train(train_data, hooks=["x"], steps=1)
    with pytest.raises(ValueError, match="has not been trained yet"):
        estimator.get_variable_names()
    with pytest.raises(ValueError, match="must include features argument"):
        tf.estimator.Estimator(lambda x: x, str(tmp_path))
    with pytest.raises(ValueError, match="not expected args"):
        tf.estimator.Estimator(lambda features, wrong: 0, str(tmp_path))
    with pytest.raises(ValueError, match="with different values"):
        tf.estimator.Estimator(
            model_fn, str(tmp_path), tf.estimator.RunConfig(model_dir="/elsewhere")
        )
    with pytest.raises(ValueError, match="should return an EstimatorSpec"):
        tf.estimator.Estimator(lambda features, labels: 0, str(tmp_path)).train(
            train_data, steps=1
        )


def test_specs_are_checked():
    spec, modes = tf.estimator.EstimatorSpec, tf.estimator.ModeKeys
    with tf.Graph().as_default():
        loss = tf.constant(1.0)
        with pytest.raises(ValueError, match="Missing train_op"):
            spec(modes.TRAIN, loss=loss)
        with pytest.raises(ValueError, match="Missing loss"):
            spec(modes.EVAL)
        with pytest.raises(ValueError, match="Missing predictions"):
            spec(modes.PREDICT)
        with pytest.raises(ValueError, match="Loss must be scalar"):
            spec(modes.EVAL, loss=tf.constant([1.0, 2.0]))
        with pytest.raises(TypeError, match="All hooks must be SessionRunHook"):
            spec(modes.EVAL, loss=loss, evaluation_hooks=["x"])
        with pytest.raises(ValueError, match="Mode not recognized"):
            spec("other", loss=loss)


def test_run_configs_are_values():
    config = tf.estimator.RunConfig(model_dir="a")
    other = config.replace(save_checkpoints_steps=5)
    assert (other.save_checkpoints_steps, other.save_checkpoints_secs) == (5, None)
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (None, 600)
    assert config.session_config.allow_soft_placement
    with pytest.raises(ValueError, match="cannot be both set"):
        tf.estimator.RunConfig(save_checkpoints_steps=1, save_checkpoints_secs=1)
    with pytest.raises(ValueError, match="not supported"):
        config.replace(master="x")
    with pytest.raises(NotImplementedError, match="train_distribute"):
        tf.estimator.RunConfig(train_distribute=object())


def test_trains_and_evaluates(make):
    config = tf.estimator.RunConfig(save_checkpoints_steps=10)
    estimator = make(config=config)
    seen = []

    class Hook(tf.estimator.SessionRunHook):
        def end(self, session):
            seen.append(int(session.run(v1.train.get_global_step())))

    found, exported = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(train_data, max_steps=20),
        tf.estimator.EvalSpec(eval_data, throttle_secs=0, hooks=[Hook()]),
    )
    assert found["global_step"] == 20 and exported == []
    assert seen == [10, 20]


def test_inputs_of_arrays(make):
    x = np.linspace(-1, 1, 6, dtype=np.float32)[:, None]
    fn = v1.estimator.inputs.numpy_input_fn(
        {"x": x}, 3 * x + 1, batch_size=4, shuffle=False
    )
    estimator = make().train(fn)
    assert estimator.get_variable_value("global_step") == 2
    with pytest.raises(ValueError, match="mismatched"):
        v1.estimator.inputs.numpy_input_fn({"x": x}, x[:2], shuffle=True)
    with pytest.raises(ValueError, match="shuffle must be provided"):
        v1.estimator.inputs.numpy_input_fn({"x": x}, x)


def test_evaluation_without_a_checkpoint_initializes(make):
    found = make().evaluate(eval_data)
    assert found["global_step"] == 0
