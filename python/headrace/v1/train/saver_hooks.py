"""Hooks that save checkpoints and write summaries."""

import os

from headrace.context import stack
from headrace.framework.settings import logging
from headrace.framework.support import protos, signatures
from headrace.io import gfile
from headrace.v1 import collections, file_writer, meta_graph, timelines
from headrace.v1.train import basic_hooks, global_step
from headrace.v1.train.session_run_hook import SessionRunArgs, SessionRunHook
from headrace.v1.train.timer import SecondOrStepTimer


class CheckpointSaverListener:
    """Called before and after each checkpoint that a CheckpointSaverHook saves."""

    def begin(self):
        """Before the session is made."""

    def before_save(self, session, global_step_value):
        """Before a checkpoint is written."""

    def after_save(self, session, global_step_value):
        """After a checkpoint was written; True asks to stop training."""

    def end(self, session, global_step_value):
        """At the end of the session."""


def saver_of_collection():
    """The one saver of the graph's collection, or None."""
    key = collections.GraphKeys.SAVERS
    savers = stack.default_graph().get_collection(key)
    if not savers:
        return None
    if len(savers) > 1:
        raise RuntimeError(
            f"More than one item in collection {key}. Please indicate which one to "
            "use by passing it to the constructor."
        )
    return savers[0]


class CheckpointSaverHook(basic_hooks._StepHook):
    """Saves checkpoints every so many steps or seconds, at the start and the end."""

    @signatures.keeping(
        "checkpoint_dir, save_secs=None, save_steps=None, saver=None, "
        "checkpoint_basename='model.ckpt', scaffold=None, listeners=None, "
        "save_graph_def=True"
    )
    def __init__(self):
        logging.info("Create CheckpointSaverHook.")
        if self._saver is not None and self._scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._checkpoint_dir = os.fspath(self._checkpoint_dir)
        self._save_path = os.path.join(self._checkpoint_dir, self._checkpoint_basename)
        self._timer = SecondOrStepTimer(self._save_secs, self._save_steps)
        self._listeners = self._listeners or []

    def begin(self):
        """Opens the summaries' file,
        looks for the global step and tells the listeners."""
        self._summary_writer = file_writer.FileWriterCache.get(self._checkpoint_dir)
        self._global_step_tensor = basic_hooks.read_step("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session, coord):
        """Writes the graph and the first checkpoint."""
        step = session.run(self._global_step_tensor)
        graph = stack.default_graph()
        if self._save_graph_def:
            global_step.write_graph(
                graph.as_graph_def(add_shapes=True), self._checkpoint_dir, "graph.pbtxt"
            )
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(self._meta_graph(graph))
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def _meta_graph(self, graph):
        saver = self._get_saver()
        saver_def = None if saver is None else saver.saver_def
        return meta_graph.export_meta_graph(
            graph=graph, saver_def=saver_def, collection_list=[]
        )

    def after_run(self, run_context, run_values):
        """Saves where it is time, and stops where a listener asks for it."""
        step = self._due(run_context, run_values.results)
        if step is not None:
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session):
        """Saves the last step, unless it was saved; tells the listeners."""
        last_step = session.run(self._global_step_tensor)
        if last_step != self._timer.last_triggered_step():
            self._save(session, last_step)
        for listener in self._listeners:
            listener.end(session, last_step)

    def _save(self, session, step):
        """Saves; whether a listener asks to stop."""
        logging.info(
            "Calling checkpoint listeners before saving checkpoint %d...", step
        )
        for listener in self._listeners:
            listener.before_save(session, step)
        logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        self._get_saver().save(
            session,
            self._save_path,
            global_step=step,
            write_meta_graph=self._save_graph_def,
        )
        self._log_checkpoint(step)
        logging.info("Calling checkpoint listeners after saving checkpoint %d...", step)
        stops = False
        for listener in self._listeners:
            if listener.after_save(session, step):
                logging.info(
                    "A CheckpointSaverListener requested that training be stopped. "
                    "listener: %s",
                    listener,
                )
                stops = True
        return stops

    def _log_checkpoint(self, step):
        log = protos.SessionLog(
            status=protos.SessionLog.CHECKPOINT, checkpoint_path=self._save_path
        )
        self._summary_writer.add_session_log(log, step)

    def _get_saver(self):
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        found = saver_of_collection()
        if found is None:
            raise RuntimeError(
                f"No items in collection {collections.GraphKeys.SAVERS}. Please add a "
                "saver to the collection or provide a saver or scaffold."
            )
        self._saver = found
        return found


class StepCounterHook(basic_hooks._StepHook):
    """Logs and writes steps per second."""

    @signatures.keeping(
        "every_n_steps=100, every_n_secs=None, output_dir=None, summary_writer=None"
    )
    def __init__(self):
        if (self._every_n_steps is None) == (self._every_n_secs is None):
            raise ValueError(
                "exactly one of every_n_steps and every_n_secs should be provided."
            )
        self._timer = SecondOrStepTimer(self._every_n_secs, self._every_n_steps)
        self._last_global_step = None

    def begin(self):
        """Opens the summaries' file and looks for the global step."""
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = file_writer.FileWriterCache.get(self._output_dir)
        self._global_step_tensor = basic_hooks.read_step("StepCounterHook")
        step = global_step.get_global_step()
        self._summary_tag = step.name.partition(":")[0] + "/sec"

    def _log_and_record(self, elapsed_steps, elapsed_time, step):
        rate = elapsed_steps / elapsed_time
        if self._summary_writer is not None:
            self._summary_writer.add_scalar(self._summary_tag, rate, step)
        logging.info("%s: %g", self._summary_tag, rate)

    def after_run(self, run_context, run_values):
        """Logs and writes the steps a second where it is time; warns of a step that
        stands.
        """
        stale = run_values.results
        step = self._due(run_context, stale)
        if step is not None:
            seconds, steps = self._timer.update_last_triggered_step(step)
            if seconds:
                self._log_and_record(steps, seconds, step)
        if stale == self._last_global_step:
            logging.log_first_n(
                logging.WARN,
                "It seems that global step (tf.train.get_global_step) has not been "
                "increased. Current value (could be stable): %s vs previous value: %s. "
                "You could increase the global step by passing "
                "tf.train.get_global_step() to Optimizer.apply_gradients or "
                "Optimizer.minimize.",
                5,
                stale,
                self._last_global_step,
            )
        self._last_global_step = stale


class SummarySaverHook(SessionRunHook):
    """Writes summaries every so many steps or seconds."""

    @signatures.keeping(
        "save_steps=None, save_secs=None, output_dir=None, summary_writer=None, "
        "scaffold=None, summary_op=None"
    )
    def __init__(self):
        if (self._scaffold is None) == (self._summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._timer = SecondOrStepTimer(self._save_secs, self._save_steps)

    def begin(self):
        """Opens the summaries' file and looks for the global step."""
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = file_writer.FileWriterCache.get(self._output_dir)
        self._next_step = None
        self._global_step_tensor = basic_hooks.read_step("SummarySaverHook")

    def _summaries(self):
        """The tensors of serialized summaries, or None."""
        op = self._summary_op
        if op is None and self._scaffold.summary_op is not None:
            op = self._scaffold.summary_op
        if op is None or isinstance(op, list):
            return op
        return [op]

    def before_run(self, run_context):
        """Asks for the summaries where it is time."""
        self._request_summary = (
            self._next_step is None
            or self._timer.should_trigger_for_step(self._next_step)
        )
        fetches = {"global_step": self._global_step_tensor}
        if self._request_summary and self._summaries() is not None:
            fetches["summary"] = self._summaries()
        return SessionRunArgs(fetches)

    def after_run(self, run_context, run_values):
        """Writes the summaries that were asked for."""
        if self._summary_writer is None:
            return
        step = run_values.results["global_step"] + 1
        if self._next_step is None or self._request_summary:
            step = run_context.session.run(self._global_step_tensor)
        if self._next_step is None:
            log = protos.SessionLog(status=protos.SessionLog.START)
            self._summary_writer.add_session_log(log, step)
        if self._request_summary:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results.get("summary", ()):
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session=None):
        """Hands what was written to the file."""
        if self._summary_writer is not None:
            self._summary_writer.flush()


class ProfilerHook(SessionRunHook):
    """Writes a timeline of a step, timeline-STEP.json for chrome://tracing, every so many
    steps or seconds, and what ran in it to the summaries.

    Both go to `output_dir`. `show_dataflow` shows which results operations took,
    `show_memory` what they allocated, as far as sessions tell. ValueError unless one of
    `save_steps` and `save_secs` is given; RuntimeError if the graph has no global step.
    """

    @signatures.keeping(
        "save_steps=None, save_secs=None, output_dir='', show_dataflow=True, "
        "show_memory=False"
    )
    def __init__(self):
        self._timer = SecondOrStepTimer(self._save_secs, self._save_steps)
        self._writer = file_writer.FileWriterCache.get(self._output_dir)
        self._next_step = None

    def begin(self):
        """Looks for the global step."""
        self._next_step = None
        self._global_step_tensor = basic_hooks.read_step("ProfilerHook")

    def before_run(self, run_context):
        """Asks for the step, and where it is time for what runs."""
        self._wanted = self._next_step is not None and (
            self._timer.should_trigger_for_step(self._next_step)
        )
        options = None
        if self._wanted:
            kind = protos.RunOptions
            options = kind(trace_level=kind.FULL_TRACE)
        fetches = {"global_step": self._global_step_tensor}
        return SessionRunArgs(fetches, options=options)

    def after_run(self, run_context, run_values):
        """Writes the timeline that was asked for."""
        stale = run_values.results["global_step"]
        if self._next_step is None:
            self._timer.update_last_triggered_step(stale)
        step = stale + 1
        if self._wanted:
            step = int(run_context.session.run(self._global_step_tensor))
            self._timer.update_last_triggered_step(step)
            self._write(run_context.session.graph, step, run_values.run_metadata)
        self._next_step = step + 1

    def _write(self, graph, step, metadata):
        path = os.path.join(self._output_dir, f"timeline-{step}.json")
        logging.info("Saving timeline for %d into '%s'.", step, path)
        graph = graph if self._show_dataflow else None
        text = timelines.chrome_trace(metadata.step_stats, graph, self._show_memory)
        with gfile.GFile(path, "w") as file:
            file.write(text)
        self._writer.add_run_metadata(metadata, f"step_{step}", step)

    def end(self, session=None):
        """Hands what was written to the file."""
        self._writer.flush()
