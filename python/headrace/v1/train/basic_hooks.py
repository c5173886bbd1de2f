"""Hooks that log, stop, feed and wait."""

import time

import numpy as np

from headrace.context import errors, stack
from headrace.context.properties import read_only
from headrace.framework.settings import logging
from headrace.framework.support import signatures
from headrace.v1.train import global_step
from headrace.v1.train.session_run_hook import SessionRunArgs, SessionRunHook
from headrace.v1.train.timer import NeverTriggerTimer, SecondOrStepTimer


def read_step(user):
    """The tensor that reads the graph's step, for the hook `user`."""
    read = global_step.read_of()
    if read is None:
        raise RuntimeError(f"Global step should be created to use {user}.")
    return read


class _StepHook(SessionRunHook):
    """A hook that each run gives the global step."""

    def before_run(self, run_context):
        """Asks for the global step."""
        return SessionRunArgs(self._global_step_tensor)

    def _due(self, run_context, stale):
        """The step where the hook's timer says to act, else None. What was read beside
        the update, `stale`, may be from before it."""
        if not self._timer.should_trigger_for_step(stale + 1):
            return None
        step = run_context.session.run(self._global_step_tensor)
        return step if self._timer.should_trigger_for_step(step) else None


class LoggingTensorHook(SessionRunHook):
    """Logs values every so many runs or seconds, or at the end."""

    @signatures.keeping(
        "tensors, every_n_iter=None, every_n_secs=None, at_end=False, formatter=None"
    )
    def __init__(self):
        every_n_iter, every_n_secs = self._every_n_iter, self._every_n_secs
        only_at_end = self._at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError(
                "either at_end and/or exactly one of every_n_iter and every_n_secs "
                "must be provided."
            )
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if isinstance(self._tensors, dict):
            self._tag_order = sorted(self._tensors)
        else:
            self._tag_order = list(self._tensors)
            self._tensors = {item: item for item in self._tag_order}
        self._timer = (
            NeverTriggerTimer()
            if only_at_end
            else SecondOrStepTimer(every_n_secs, every_n_iter)
        )

    def begin(self):
        """Looks for the tensors that are given by name."""
        self._timer.reset()
        self._iter_count = 0
        find = stack.default_graph().as_graph_element
        self._current_tensors = {tag: find(t) for tag, t in self._tensors.items()}

    def before_run(self, run_context):
        """Asks for the tensors where it is time to log them."""
        self._should_trigger = self._timer.should_trigger_for_step(self._iter_count)
        return SessionRunArgs(self._current_tensors) if self._should_trigger else None

    def _log_tensors(self, values):
        options = np.get_printoptions()
        np.set_printoptions(suppress=True)
        elapsed, _ = self._timer.update_last_triggered_step(self._iter_count)
        if self._formatter:
            logging.info("%s", self._formatter(values))
        else:
            text = ", ".join(f"{tag} = {values[tag]!s}" for tag in self._tag_order)
            if elapsed is not None:
                logging.info("%s (%.3f sec)", text, elapsed)
            else:
                logging.info("%s", text)
        np.set_printoptions(**options)

    def after_run(self, run_context, run_values):
        """Logs the tensors where it is time."""
        if self._should_trigger:
            self._log_tensors(run_values.results)
        self._iter_count += 1

    def end(self, session):
        """Logs the tensors with at_end."""
        if self._at_end:
            self._log_tensors(session.run(self._current_tensors))


class StopAtStepHook(_StepHook):
    """Stops after so many steps, or at one."""

    def __init__(self, num_steps=None, last_step=None):
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self):
        """Looks for the global step; RuntimeError where the graph has none."""
        self._global_step_tensor = read_step("StopAtStepHook")

    def after_create_session(self, session, coord):
        """Works out the last step where the number of steps was given."""
        if self._last_step is None:
            self._last_step = session.run(self._global_step_tensor) + self._num_steps

    def after_run(self, run_context, run_values):
        """Asks to stop once the last step is done."""
        if run_values.results + 1 < self._last_step:
            return
        # What was read beside the update may be from before it.
        if run_context.session.run(self._global_step_tensor) >= self._last_step:
            run_context.request_stop()


class NanLossDuringTrainingError(RuntimeError):
    """A loss became NaN."""

    def __str__(self):
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Stops when a loss is NaN."""

    def __init__(self, loss_tensor, fail_on_nan_loss=True):
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def before_run(self, run_context):
        """Asks for the loss."""
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context, run_values):
        """On a loss that is no number: asks to stop, or raises.

        It raises NanLossDuringTrainingError with fail_on_nan_loss.
        """
        if not np.isnan(run_values.results):
            return
        message = "Model diverged with loss = NaN."
        if self._fail_on_nan_loss:
            logging.error("%s", message)
            raise NanLossDuringTrainingError
        logging.warn("%s", message)
        run_context.request_stop()


class GlobalStepWaiterHook(SessionRunHook):
    """Waits until other processes have come to a step."""

    def __init__(self, wait_until_step):
        self._wait_until_step = wait_until_step

    def begin(self):
        """Looks for the global step; RuntimeError where the graph has none."""
        self._worker_is_started = False
        self._global_step_tensor = read_step("_GlobalStepWaiterHook")

    def before_run(self, run_context):
        """Before the first run: waits until the global step is there, asking twice a
        second.
        """
        if self._worker_is_started:
            return
        if self._wait_until_step <= 0:
            self._worker_is_started = True
            return
        logging.info(
            "Waiting for global step %d before starting training.",
            self._wait_until_step,
        )
        last_logged = 0
        while True:
            step = run_context.session.run(self._global_step_tensor)
            if step >= self._wait_until_step:
                self._worker_is_started = True
                return
            if step - last_logged > 1000:
                logging.info(
                    "Waiting for global step %d before starting training. "
                    "Current step is %d.",
                    self._wait_until_step,
                    step,
                )
                last_logged = step
            time.sleep(0.5)


class FinalOpsHook(SessionRunHook):
    """Runs something once, at the end of the session."""

    def __init__(self, final_ops, final_ops_feed_dict=None):
        self._final_ops = final_ops
        self._final_ops_feed_dict = final_ops_feed_dict
        self._final_ops_values = None

    final_ops_values = read_only(
        "_final_ops_values", "What the operations gave at the end; None before it."
    )

    def end(self, session):
        """Runs the final operations; final_ops_values has what they gave."""
        if self._final_ops is None:
            return
        try:
            self._final_ops_values = session.run(
                self._final_ops, feed_dict=self._final_ops_feed_dict
            )
        except (errors.OutOfRangeError, StopIteration):
            logging.warn(
                "An OutOfRangeError or StopIteration exception is raised by the code "
                "in FinalOpsHook. This typically means the Ops running by the "
                "FinalOpsHook have a dependency back to some input source, which "
                "should not happen."
            )
            raise


class FeedFnHook(SessionRunHook):
    """Feeds every run what a function returns."""

    def __init__(self, feed_fn):
        self.feed_fn = feed_fn

    def before_run(self, run_context):
        """Feeds what feed_fn() gives."""
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())
