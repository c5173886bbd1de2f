"""tf.estimator.experimental's hooks that stop training early."""

import operator
import os

from headrace import _api as tf
from headrace.framework.settings import logging
from headrace.io import gfile, tf_record
from headrace.v1 import collections
from headrace.v1.train import basic_hooks, global_step
from headrace.v1.train.session_run_hook import SessionRunArgs, SessionRunHook
from headrace.v1.train.timer import SecondOrStepTimer
from headrace.v1.variable_scope import get_variable, variable_scope


class _StopOnPredicateHook(SessionRunHook):
    """Stops where a function says so; a variable of the graph holds that it did."""

    def __init__(self, should_stop_fn, run_every_secs=60, run_every_steps=None):
        if not callable(should_stop_fn):
            raise TypeError("`should_stop_fn` must be callable.")
        self._should_stop_fn = should_stop_fn
        self._timer = SecondOrStepTimer(run_every_secs, run_every_steps)

    def begin(self):
        self._step = global_step.get_global_step()
        with variable_scope("signal_early_stopping", reuse=tf.compat.v1.AUTO_REUSE):
            stop = get_variable(
                "STOP",
                [],
                tf.bool,
                tf.compat.v1.constant_initializer(False),
                trainable=False,
                collections=[collections.GraphKeys.GLOBAL_VARIABLES],
            )
        self._stop_op = stop.assign(True, read_value=False)

    def before_run(self, run_context):
        return SessionRunArgs(self._step)

    def after_run(self, run_context, run_values):
        step = run_values.results
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        if self._should_stop_fn():
            logging.info("Requesting early stopping at global step %d", step)
            run_context.session.run(self._stop_op)
            run_context.request_stop()


def make_early_stopping_hook(
    estimator, should_stop_fn, run_every_secs=60, run_every_steps=None
):
    """A hook of `estimator.train` that stops where should_stop_fn() is true; it is asked
    every so many seconds, or steps. TypeError for another estimator or function,
    ValueError for both seconds and steps, or neither."""
    if not hasattr(estimator, "model_fn"):
        raise TypeError(
            f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}"
        )
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError(
            "Only one of `run_every_secs` and `run_every_steps` must be set."
        )
    return _StopOnPredicateHook(should_stop_fn, run_every_secs, run_every_steps)


def _evaluations(eval_dir):
    """[(step, {metric: value})] that events of a folder tell, by step."""
    found = {}
    for path in gfile.glob(os.path.join(eval_dir, "*.tfevents.*")):
        for event in tf_record.summary_iterator(path):
            values = {
                v.tag: v.simple_value
                for v in event.summary.value
                if v.HasField("simple_value")
            }
            if values:
                found[event.step] = values
    return sorted(found.items())


def _hook(estimator, eval_dir, metric, min_steps, run_every, should_stop):
    """A hook that asks should_stop of [(step, value)] of a metric."""
    eval_dir = eval_dir or estimator.eval_dir()

    def should_stop_fn():
        found = [
            (step, values[metric])
            for step, values in _evaluations(eval_dir)
            if step >= min_steps and metric in values
        ]
        return should_stop(found)

    return make_early_stopping_hook(estimator, should_stop_fn, *run_every)


def _stop_at(better, text, estimator, name, threshold, *how):
    def should_stop(found):
        for step, value in found:
            if better(value, threshold):
                logging.info(
                    'At step %s, metric "%s" has value %s which is %s the configured '
                    "threshold (%s) for early stopping.",
                    *(step, name, value, text, threshold),
                )
                return True
        return False

    return _hook(estimator, *how, should_stop)


def _stop_after(better, text, estimator, name, max_steps, *how):
    def should_stop(found):
        best, best_step = None, None
        for step, value in found:
            if best is None or better(value, best):
                best, best_step = value, step
            since = step - best_step
            if since >= max_steps:
                logging.info(
                    'No %s in metric "%s" for %s steps, which is greater than or equal '
                    "to max steps (%s) configured for early stopping.",
                    *(text, name, since, max_steps),
                )
                return True
        return False

    return _hook(estimator, *how, should_stop)


def stop_if_higher_hook(
    estimator,
    metric_name,
    threshold,
    eval_dir=None,
    min_steps=0,
    run_every_secs=60,
    run_every_steps=None,
):
    """A hook that stops once an evaluation, from step `min_steps` on, gave a metric that
    is higher than a threshold. `eval_dir`: where its events are, by default the
    estimator's eval_dir()."""
    how = eval_dir, metric_name, min_steps, (run_every_secs, run_every_steps)
    given = estimator, metric_name, threshold
    return _stop_at(operator.gt, "higher than", *given, *how)


def stop_if_lower_hook(
    estimator,
    metric_name,
    threshold,
    eval_dir=None,
    min_steps=0,
    run_every_secs=60,
    run_every_steps=None,
):
    """As stop_if_higher_hook, for a metric that is lower."""
    how = eval_dir, metric_name, min_steps, (run_every_secs, run_every_steps)
    given = estimator, metric_name, threshold
    return _stop_at(operator.lt, "less than", *given, *how)


def stop_if_no_increase_hook(
    estimator,
    metric_name,
    max_steps_without_increase,
    eval_dir=None,
    min_steps=0,
    run_every_secs=60,
    run_every_steps=None,
):
    """A hook that stops once a metric of evaluations, from step `min_steps` on, has not
    increased for so many steps. `eval_dir` is stop_if_higher_hook's."""
    how = eval_dir, metric_name, min_steps, (run_every_secs, run_every_steps)
    given = estimator, metric_name, max_steps_without_increase
    return _stop_after(operator.gt, "increase", *given, *how)


def stop_if_no_decrease_hook(
    estimator,
    metric_name,
    max_steps_without_decrease,
    eval_dir=None,
    min_steps=0,
    run_every_secs=60,
    run_every_steps=None,
):
    """As stop_if_no_increase_hook, for a metric that has not decreased."""
    how = eval_dir, metric_name, min_steps, (run_every_secs, run_every_steps)
    given = estimator, metric_name, max_steps_without_decrease
    return _stop_after(operator.lt, "decrease", *given, *how)


def make_stop_at_checkpoint_step_hook(
    estimator, last_step, wait_after_file_check_secs=30
):
    """A hook that stops at a step: in one process no other's checkpoints are waited
    for."""
    return basic_hooks.StopAtStepHook(last_step=last_step)
