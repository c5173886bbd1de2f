"""Estimator.evaluate."""

import math
import time

import numpy as np

from headrace.context import stack
from headrace.estimator import warm_start
from headrace.estimator.mode_keys import ModeKeys
from headrace.framework import scopes
from headrace.framework.settings import logging
from headrace.framework.support import protos
from headrace.v1 import collections, file_writer, metrics
from headrace.v1.train import basic_hooks, global_step, monitored_session
from headrace.v1.train.session_run_hook import SessionRunArgs, SessionRunHook

GraphKeys = collections.GraphKeys


class StopAfterNEvalsHook(SessionRunHook):
    """Stops after so many batches, and logs how far it is."""

    def __init__(self, num_evals, done, log_progress=True):
        self._num_evals, self._done = num_evals, done
        every = math.ceil(num_evals / 10) if num_evals else 1
        self._log_frequency = 1 if num_evals is None or num_evals < 20 else every
        self._log_progress = log_progress

    def before_run(self, run_context):
        return SessionRunArgs({"evals_completed": self._done})

    def after_run(self, run_context, run_values):
        done = int(run_values.results["evals_completed"])
        if self._log_progress and self._num_evals is not None:
            if done % self._log_frequency == 0 or done == self._num_evals:
                logging.info("Evaluation [%d/%d]", done, self._num_evals)
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()


def evaluate(estimator, input_fn, steps, hooks, checkpoint_path, name):
    """{metric: value} over the input."""
    path = estimator._checkpoint_for(checkpoint_path, "evaluate")
    graph = estimator._new_graph()
    with graph.as_default():
        made = Evaluation(estimator, input_fn, hooks, steps)
        if estimator._warm_start_settings is not None and path is None:
            warm_start.apply(estimator._warm_start_settings)
        found = made.run(made.spec.scaffold, path)
        write(estimator.eval_dir(name), found, path)
    return found


class Evaluation:
    """The operations of an evaluation in the current graph, which may run more often
    than once.

    Attributes:
      spec: the EstimatorSpec.
    """

    def __init__(self, estimator, input_fn, hooks, steps):
        self._estimator, self._steps = estimator, steps
        self.spec, input_hooks = estimator._spec_and_hooks(input_fn, ModeKeys.EVAL)
        self._values, self._update = _metric_operations(self.spec)
        graph = stack.default_graph()
        self._values[GraphKeys.GLOBAL_STEP] = global_step.get_global_step(graph)
        self._hooks = [*input_hooks, *hooks, *self.spec.evaluation_hooks]
        keys = [GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP]
        counted = global_step.counter("eval_step", keys)
        with graph.control_dependencies([self._update]):
            self._done = counted.assign_add(1)

    def run(self, scaffold, path):
        """{metric: value} with the variables of a checkpoint, or the scaffold's."""
        final = basic_hooks.FinalOpsHook(self._values)
        stop = StopAfterNEvalsHook(self._steps, self._done)
        logging.info("Starting evaluation at %s", _time())
        begun = time.time()
        creator = self._estimator._creator_of_sessions(scaffold, path)
        hooks = [*self._hooks, stop, final]
        with monitored_session.MonitoredSession(creator, hooks) as session:
            while not session.should_stop():
                session.run([self._update, self._done])
        logging.info("Inference Time : %.5fs", time.time() - begun)
        logging.info("Finished evaluation at %s", _time())
        return final.final_ops_values


def _metric_operations(spec):
    """({name: tensor of its value}, the operation that takes a batch in)."""
    metric_ops = dict(spec.eval_metric_ops)
    for taken in ("loss", GraphKeys.GLOBAL_STEP):
        if taken in metric_ops:
            raise ValueError(
                f"Metric with name `{taken}` is not allowed, because Estimator already "
                "defines a default metric with the same name."
            )
    metric_ops["loss"] = metrics.mean(spec.loss)
    pairs = values_and_updates(metric_ops)
    updates = [update for _, update in pairs.values()]
    return {name: value for name, (value, _) in pairs.items()}, scopes.group(
        updates, None
    )


def values_and_updates(metric_ops):
    """{name: (value, what takes a batch in)} of metrics: such pairs, or Keras' metrics
    that were updated."""
    found = {}
    for name, metric in sorted(metric_ops.items()):
        if hasattr(metric, "update_state"):
            _make_local(metric.variables)
            found[name] = metric.result(), scopes.group(metric.updates, None)
        else:
            found[name] = metric
    return found


def _make_local(variables):
    """Variables of metrics are initialized with each session, and not saved."""
    graph = stack.default_graph()
    known = {id(v) for v in graph.get_collection(GraphKeys.LOCAL_VARIABLES)}
    for variable in variables:
        if id(variable) not in known:
            graph.add_to_collection(GraphKeys.LOCAL_VARIABLES, variable)


def _time():
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime())


def _text(values):
    return ", ".join(
        f"{k} = {v!s}" for k, v in sorted(values.items()) if not isinstance(v, bytes)
    )


def write(folder, values, path):
    """Writes the values as summaries of the evaluation's folder."""
    step = int(values[GraphKeys.GLOBAL_STEP])
    logging.info("Saving dict for global step %d: %s", step, _text(values))
    writer = file_writer.FileWriterCache.get(folder)
    summary = protos.Summary()
    for key, value in values.items():
        if value is None or key == GraphKeys.GLOBAL_STEP:
            continue
        if isinstance(value, (np.floating, np.integer, float, int)):
            summary.value.add(tag=key, simple_value=float(value))
        elif isinstance(value, bytes):
            summary.MergeFromString(value)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
            for i, x in enumerate(value.ravel()):
                summary.value.add(tag=f"{key}/{i}", simple_value=float(x))
        else:
            logging.warn(
                "Skipping summary for %s, cannot be a float or np.float32.", key
            )
    writer.add_summary(summary, step)
    if path:
        _write_path(writer, path, step)
    writer.flush()


def _write_path(writer, path, step):
    """Which checkpoint was evaluated, as a text."""
    logging.info("Saving 'checkpoint_path' summary for global step %d: %s", step, path)
    summary = protos.Summary()
    row = summary.value.add(tag="checkpoint_path")
    row.tensor.dtype = 7
    row.tensor.string_val.append(path.encode())
    row.metadata.plugin_data.plugin_name = "text"
    writer.add_summary(summary, step)
