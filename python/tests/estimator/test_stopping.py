"""Hooks that stop training, evaluations amid it, and added metrics."""

import logging
import os

import headrace as tf
import numpy as np
import pytest

E, v1 = tf.estimator, tf.compat.v1
X = np.linspace(-1, 1, 16).astype(np.float32)
LABELS = (X > 0).astype(np.int32)


def rows(repeat=1):
    def input_fn():
        dataset = tf.data.Dataset.from_tensor_slices(({"x": X[:, None]}, LABELS))
        return dataset.batch(8).repeat(repeat)

    return input_fn


@pytest.fixture
def model(tmp_path):
    config = E.RunConfig(tf_random_seed=1, save_checkpoints_steps=10)
    columns = [tf.feature_column.numeric_column("x")]
    return E.LinearClassifier(columns, str(tmp_path / "m"), config=config)


def step_of(model):
    return int(model.get_variable_value("global_step"))


def test_stops_where_a_function_says_so(model):
    calls = []

    def should_stop():
        calls.append(1)
        return len(calls) == 2

    hook = E.experimental.make_early_stopping_hook(
        model, should_stop, run_every_secs=None, run_every_steps=5
    )
    model.train(rows(None), hooks=[hook], steps=50)
    assert step_of(model) == 6  # asked at steps 0 and 5
    assert model.get_variable_value("signal_early_stopping/STOP")


def events(model, values):
    with tf.Graph().as_default(), v1.summary.FileWriter(model.eval_dir()) as writer:
        for step, value in values:
            row = v1.Summary.Value(tag="m", simple_value=value)
            writer.add_summary(v1.Summary(value=[row]), step)


@pytest.mark.parametrize(
    "name, limit, values, stops",
    [
        ("higher", 2.0, [(1, 1.0), (2, 3.0)], True),
        ("higher", 2.0, [(1, 1.0), (2, 2.0)], False),
        ("lower", 2.0, [(1, 3.0), (2, 1.0)], True),
        ("lower", 2.0, [(1, 3.0)], False),
        ("no_increase", 4, [(1, 1.0), (2, 2.0), (6, 2.0)], True),
        ("no_increase", 5, [(1, 1.0), (2, 2.0), (6, 2.0)], False),
        ("no_decrease", 4, [(1, 3.0), (2, 2.0), (6, 2.5)], True),
        ("no_decrease", 4, [(1, 3.0), (4, 2.0), (6, 1.0)], False),
    ],
)
def test_stops_by_evaluations(model, name, limit, values, stops):
    events(model, values)
    make = getattr(E.experimental, f"stop_if_{name}_hook")
    hook = make(model, "m", limit, run_every_secs=None, run_every_steps=1)
    model.train(rows(None), hooks=[hook], steps=3)
    assert step_of(model) == (1 if stops else 3)


def test_stops_amid_train_and_evaluate(model, caplog, monkeypatch):
    monkeypatch.setattr(tf.get_logger(), "propagate", True)
    hook = E.experimental.stop_if_lower_hook(
        model, "loss", 100.0, run_every_secs=None, run_every_steps=1, min_steps=15
    )
    with caplog.at_level(logging.INFO):
        E.train_and_evaluate(
            model,
            E.TrainSpec(rows(None), max_steps=60, hooks=[hook]),
            E.EvalSpec(rows(), throttle_secs=0),
        )
    assert step_of(model) == 20
    assert (
        "which is less than the configured threshold (100.0) for early" in caplog.text
    )
    assert "Requesting early stopping at global step 19" in caplog.text


def test_wrong_hooks(model):
    make = E.experimental.make_early_stopping_hook
    with pytest.raises(ValueError, match="Only one of `run_every_secs` and `run_every"):
        make(model, lambda: True, run_every_secs=60, run_every_steps=3)
    with pytest.raises(TypeError, match="`should_stop_fn` must be callable"):
        make(model, 3)
    with pytest.raises(TypeError, match="must have type `tf.estimator.Estimator`"):
        make(3, lambda: True)
    with pytest.raises(ValueError, match="Either every_secs or every_steps should be"):
        make(model, lambda: True, run_every_secs=None)
    stop = E.experimental.make_stop_at_checkpoint_step_hook(model, 2)
    model.train(rows(None), hooks=[stop])
    assert step_of(model) == 2


def test_evaluates_amid_training(model):
    hook = E.experimental.InMemoryEvaluatorHook(
        model, rows(), name="mem", every_n_iter=5
    )
    model.train(rows(None), hooks=[hook], steps=12)
    folder = model.eval_dir("mem")
    found = {}
    for path in os.listdir(folder):
        for event in v1.train.summary_iterator(os.path.join(folder, path)):
            values = {v.tag: v.simple_value for v in event.summary.value}
            if values:
                found[event.step] = values
    assert list(found) == [0, 5, 10, 12]
    assert found[0]["loss"] == pytest.approx(np.log(2), rel=1e-5)
    last = model.evaluate(rows())
    assert found[12]["loss"] == pytest.approx(last["loss"], rel=1e-5)
    with pytest.raises(ValueError, match="invalid every_n_iter=0."):
        E.experimental.InMemoryEvaluatorHook(model, rows(), every_n_iter=0)


def test_added_metrics(model):
    def more(features, predictions):
        mean = tf.keras.metrics.Mean()
        mean.update_state(predictions["logistic"])
        return {"keras": mean, "pair": v1.metrics.mean(predictions["logistic"])}

    both = E.add_metrics(model, more)
    both.train(rows(2))
    found = both.evaluate(rows())
    assert found["keras"] == pytest.approx(found["prediction/mean"], rel=1e-5)
    assert found["pair"] == pytest.approx(found["prediction/mean"], rel=1e-5)
    assert step_of(model) == 4
    with pytest.raises(ValueError, match="has following not expected args: .'x'"):
        E.add_metrics(model, lambda x: 1)
    with pytest.raises(TypeError, match="unsupported callable"):
        E.add_metrics(model, 3)
