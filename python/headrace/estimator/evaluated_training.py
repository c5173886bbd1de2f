"""tf.estimator.train_and_evaluate: training with evaluations in between."""

import os
import time

from headrace.estimator import exporters, roles
from headrace.estimator.estimator import checked_hooks
from headrace.framework.settings import logging
from headrace.framework.support import signatures
from headrace.v1.train.saver_hooks import CheckpointSaverListener


def _check(given, steps):
    """What both specs ask of the input function, the hooks and the number `steps`."""
    if not callable(given["input_fn"]):
        raise TypeError(f"`input_fn` must be callable, given: {given['input_fn']}")
    if given[steps] is not None and given[steps] <= 0:
        raise ValueError(f"Must specify {steps} > 0, given: {given[steps]}")


class TrainSpec(
    signatures.tuple_of(
        "TrainSpec", "input_fn, max_steps=None, hooks=None, saving_listeners=None"
    )
):
    """What to train on, and until which step."""

    @staticmethod
    def _check(given):
        _check(given, "max_steps")
        given["hooks"] = tuple(checked_hooks(given["hooks"]))
        given["saving_listeners"] = tuple(given["saving_listeners"] or ())


class EvalSpec(
    signatures.tuple_of(
        "EvalSpec",
        "input_fn, steps=100, name=None, hooks=None, exporters=None, "
        "start_delay_secs=120, throttle_secs=600",
    )
):
    """What to evaluate on, and how often at most."""

    @staticmethod
    def _check(given):
        _check(given, "steps")
        name = given["name"]
        if name is not None and not isinstance(name, str):
            raise TypeError(f"`name` must be string, given: {name}")
        if given["start_delay_secs"] < 0 or given["throttle_secs"] < 0:
            raise ValueError("Must specify start_delay_secs and throttle_secs >= 0")
        given["hooks"] = tuple(checked_hooks(given["hooks"]))
        given["exporters"] = exporters.checked(given["exporters"])


class _Evaluator(CheckpointSaverListener):
    """Evaluates checkpoints as they are written."""

    def __init__(self, estimator, spec, max_steps):
        self._estimator, self._spec = estimator, spec
        self._max_steps = max_steps
        self._last, self._is_first = None, True
        self._step = None
        self.result, self.exported = None, []

    def begin(self):
        self._last = time.time()

    def after_save(self, session, global_step_value):
        if self._is_first:  # of what was restored or initialized
            self._is_first = False
            return None
        if self._max_steps is None or global_step_value < self._max_steps:
            if time.time() - self._last < self._spec.throttle_secs:
                logging.info(
                    "Skip the current checkpoint eval due to throttle secs (%s secs).",
                    self._spec.throttle_secs,
                )
                return None
        limit = self._max_steps
        self.evaluate(global_step_value, limit and global_step_value >= limit)
        return None

    def end(self, session, global_step_value):
        if self._step != global_step_value:
            self.evaluate(global_step_value, True)

    def evaluate(self, step, is_final):
        """Evaluates and exports the latest checkpoint, which is of that step."""
        spec = self._spec
        self.result = self._estimator.evaluate(
            spec.input_fn, steps=spec.steps, hooks=spec.hooks, name=spec.name
        )
        self._step, self._last = step, time.time()
        self.exported = [
            exporter.export(
                estimator=self._estimator,
                export_path=os.path.join(
                    self._estimator.model_dir, "export", exporter.name
                ),
                checkpoint_path=self._estimator.latest_checkpoint(),
                eval_result=self.result,
                is_the_final_export=bool(is_final),
            )
            for exporter in spec.exporters
        ]


def train_and_evaluate(estimator, train_spec, eval_spec):
    """Trains, and evaluates and exports checkpoints as they are written; (metrics of
    the last evaluation, [what each exporter wrote then]).

    In a cluster that TF_CONFIG names it does what the process is there for: a chief and
    workers train, servers of parameters serve until they are ended, and an evaluator
    evaluates the chief's checkpoints, the last one too.
    """
    if not isinstance(train_spec, TrainSpec):
        raise TypeError(f"`train_spec` must be TrainSpec, given: {train_spec}")
    if not isinstance(eval_spec, EvalSpec):
        raise TypeError(f"`eval_spec` must be EvalSpec, given: {eval_spec}")
    config = estimator.config
    evaluator = _Evaluator(estimator, eval_spec, train_spec.max_steps)
    if config.cluster_spec or config.task_type == "evaluator":
        delays = eval_spec.start_delay_secs, eval_spec.throttle_secs
        roles.run(estimator, train_spec, evaluator, *delays)
        return evaluator.result, evaluator.exported
    logging.info("Running training and evaluation locally (non-distributed).")
    logging.info(
        "Start train and evaluate loop. The evaluate will happen after every "
        "checkpoint. Checkpoint frequency is determined based on RunConfig arguments: "
        "save_checkpoints_steps %s or save_checkpoints_secs %s.",
        config.save_checkpoints_steps,
        config.save_checkpoints_secs,
    )
    estimator.train(
        train_spec.input_fn,
        hooks=train_spec.hooks,
        max_steps=train_spec.max_steps,
        saving_listeners=[*train_spec.saving_listeners, evaluator],
    )
    return evaluator.result, evaluator.exported
