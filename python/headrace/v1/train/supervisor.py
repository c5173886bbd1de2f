"""tf.compat.v1.train.Supervisor: a session with checkpoints, summaries and queues."""

import contextlib
import os
import time

from headrace.context import errors, stack
from headrace.context.properties import read_only
from headrace.framework import execution, scopes
from headrace.framework.settings import logging
from headrace.framework.support import protos, signatures
from headrace.v1 import collections, file_writer, graph_summaries, meta_graph
from headrace.v1 import saver as savers
from headrace.v1.train import global_step as steps
from headrace.v1.train.coordinator import Coordinator, LooperThread
from headrace.v1.train.session_manager import SessionManager

GraphKeys = collections.GraphKeys


class _Service(LooperThread):
    """A thread of a Supervisor that does something every so many seconds."""

    def __init__(self, sv, sess, seconds):
        super().__init__(sv.coord, seconds)
        self._sv, self._sess = sv, sess

    def run(self):
        # Threads are eager, unless they enter a graph.
        with self._sess.graph.as_default():
            super().run()


class _Summaries(_Service):
    """Writes the merged summaries."""

    def run_loop(self):
        sv = self._sv
        fetches = [sv.summary_op]
        fetches += [] if sv.global_step is None else [sv.global_step]
        found = self._sess.run(fetches)
        step = int(found[1]) if len(found) > 1 else None
        if sv.summary_writer:
            logging.info("Recording summary at step %s.", step)
            sv.summary_writer.add_summary(found[0], step)


class _Speed(_Service):
    """Writes how many steps a second there are."""

    def __init__(self, sv, sess, seconds):
        super().__init__(sv, sess, seconds)
        self._tag = f"{sv.global_step.op.name}/sec"

    def _step(self):
        return steps.global_step(self._sess, self._sv.global_step)

    def start_loop(self):
        self._last_time, self._last_step = time.time(), self._step()

    def run_loop(self):
        step, now = self._step(), time.time()
        seconds = now - self._last_time
        rate = (step - self._last_step) / seconds if seconds > 0 else float("inf")
        self._last_time, self._last_step = now, step
        if self._sv.summary_writer:
            self._sv.summary_writer.add_scalar(self._tag, rate, step)
        logging.log_first_n(logging.INFO, "%s: %g", 10, self._tag, rate)


class _Checkpoints(_Service):
    """Saves checkpoints."""

    def run_loop(self):
        sv = self._sv
        logging.info("Saving checkpoint to path %s", sv.save_path)
        sv.saver.save(self._sess, sv.save_path, global_step=sv.global_step)
        if sv.summary_writer and sv.global_step is not None:
            step = steps.global_step(self._sess, sv.global_step)
            log = protos.SessionLog(
                status=protos.SessionLog.CHECKPOINT, checkpoint_path=sv.save_path
            )
            sv.summary_writer.add_session_log(log, step)


def _first_of(key):
    """The first entry of a collection of the current graph, or None."""
    return next(iter(stack.default_graph().get_collection(key)), None)


def _noted(key, make):
    """The first entry of a collection, else what is made, then noted there."""
    found = _first_of(key)
    if found is None:
        found = make()
        if found is not None:
            stack.default_graph().add_to_collection(key, found)
    return found


def _local_init_op():
    ops = [collections.local_variables_initializer(), collections.tables_initializer()]
    ops = [op for op in ops if op is not None]
    return scopes.group(ops, None) if ops else None


def _default_saver():
    if not collections.global_variables():
        return None
    return savers.Saver()


def _default_step():
    """The tensor global_step of the current graph, where it counts."""
    try:
        step = stack.default_graph().get_tensor_by_name("global_step:0")
    except KeyError:
        return None
    if step.dtype.base_dtype.is_integer:
        return step
    logging.warn("Found 'global_step' is not an int type: %s", step.dtype)
    return None


class Supervisor:
    """Trains a graph in a session: initialized or restored, with queues that are filled
    and threads that save checkpoints and write summaries in `logdir`.

    What is USE_DEFAULT is found in the graph's collections, or made. The graph cannot be
    changed any more. RuntimeError when eager. MonitoredTrainingSession is its successor.
    """

    USE_DEFAULT = 0

    @signatures.having(
        "self, graph=None, ready_op=0, ready_for_local_init_op=0, is_chief=True, "
        "init_op=0, init_feed_dict=None, local_init_op=0, logdir=None, summary_op=0, "
        "saver=0, global_step=0, save_summaries_secs=120, save_model_secs=600, "
        "recovery_wait_secs=30, stop_grace_secs=120, checkpoint_basename='model.ckpt', "
        "session_manager=None, summary_writer=0, init_fn=None, "
        "local_init_run_options=None"
    )
    def __init__(self, graph, is_chief, init_feed_dict, logdir, init_fn, **given):
        execution.only_in_graphs("Supervisors are incompatible with eager execution.")
        self._graph = graph if graph is not None else stack.default_graph()
        self._is_chief, self._logdir = is_chief, os.fspath(logdir) if logdir else None
        self._init_feed_dict = init_feed_dict
        self._init_fn = None if init_fn is None else lambda session: init_fn(session)
        self._coord = Coordinator()
        self._stop_grace_secs = given["stop_grace_secs"]
        self._save_summaries_secs = given["save_summaries_secs"]
        self._save_model_secs = given["save_model_secs"]
        with self._graph.as_default():
            self._take_operations(given)
        self._take_path_and_writer(given)
        self._session_manager = given["session_manager"] or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=given["recovery_wait_secs"],
            local_init_run_options=given["local_init_run_options"],
        )
        self._check_devices()
        self._graph_added_to_summary = False
        self._graph.finalize()

    def _take_operations(self, given):
        """Keeps the operations that were given, or their defaults."""
        defaults = {
            "ready_op": collections.report_uninitialized_variables,
            "ready_for_local_init_op": lambda: None,
            "init_op": collections.global_variables_initializer,
            "local_init_op": _local_init_op,
            "summary_op": graph_summaries.merge_all,
            "saver": _default_saver,
            "global_step": _default_step,
        }
        of_chief = ("summary_op", "saver", "global_step")
        for name, make in defaults.items():
            value = given[name]
            if value is self.USE_DEFAULT:
                key = GraphKeys.SAVERS if name == "saver" else name
                unwanted = not self._is_chief and name in of_chief
                value = None if unwanted else _noted(key, make)
            setattr(self, f"_{name}", value)

    def _take_path_and_writer(self, given):
        self._save_path, self._summary_writer = None, None
        if not self._is_chief:
            return
        if self._logdir:
            self._save_path = os.path.join(self._logdir, given["checkpoint_basename"])
        writer = given["summary_writer"]
        if writer is self.USE_DEFAULT:
            writer = file_writer.FileWriter(self._logdir) if self._logdir else None
        self._summary_writer = writer

    def _check_devices(self):
        if self._is_chief:
            return
        for op in self._graph.get_operations():
            if op.type in ("Variable", "VariableV2") and not op.device:
                raise ValueError(
                    "When using replicas, all Variables must have their device set: "
                    f"{op}"
                )

    is_chief = read_only("_is_chief", "Whether it initializes and saves.")
    session_manager = read_only("_session_manager", "The SessionManager it uses.")
    coord = read_only("_coord", "The Coordinator of its threads.")
    init_op = read_only("_init_op", "What initializes global variables, or None.")
    init_feed_dict = read_only("_init_feed_dict", "What is fed to init_op, or None.")
    ready_op = read_only("_ready_op", "What reports variables without values, or None.")
    ready_for_local_init_op = read_only(
        "_ready_for_local_init_op",
        "What reports what local_init_op waits for, or None.",
    )
    summary_writer = read_only("_summary_writer", "The FileWriter of events, or None.")
    summary_op = read_only("_summary_op", "The merged summaries, or None.")
    save_summaries_secs = read_only(
        "_save_summaries_secs", "The seconds between two summaries."
    )
    save_model_secs = read_only(
        "_save_model_secs", "The seconds between two checkpoints."
    )
    global_step = read_only("_global_step", "The tensor of the step, or None.")
    saver = read_only("_saver", "The Saver of checkpoints, or None.")
    save_path = read_only("_save_path", "The prefix of checkpoints' files, or None.")

    # --- sessions ---

    def prepare_or_wait_for_session(
        self,
        master="",
        config=None,
        wait_for_checkpoint=False,
        max_wait_secs=7200,
        start_standard_services=True,
    ):
        """A session that is ready, with queue runners and services started unless that
        is not wanted; one that is not the chief waits for the chief to initialize it."""
        self._coord.clear_stop()
        if self._summary_writer:
            self._summary_writer.reopen()
        if self._is_chief:
            session = self._session_manager.prepare_session(
                master,
                init_op=self._init_op,
                saver=self._saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self._init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services:
                logging.info("Starting standard services.")
                self.start_standard_services(session)
        else:
            session = self._session_manager.wait_for_session(
                master, config=config, max_wait_secs=max_wait_secs
            )
        if start_standard_services:
            logging.info("Starting queue runners.")
            self.start_queue_runners(session)
        return session

    @contextlib.contextmanager
    def managed_session(
        self,
        master="",
        config=None,
        start_standard_services=True,
        close_summary_writer=True,
    ):
        """A context manager of a prepared session, which is closed at the end, after all
        threads have stopped. Errors of code inside and of threads are raised, but those
        that mean a clean end, as OutOfRangeError."""
        session = None
        try:
            session = self.prepare_or_wait_for_session(
                master=master,
                config=config,
                start_standard_services=start_standard_services,
            )
            yield session
        except Exception as error:
            self.request_stop(error)
        finally:
            try:
                self.stop(
                    close_summary_writer=close_summary_writer, ignore_live_threads=True
                )
            finally:
                if session is not None:
                    session.close()

    def _write_graph(self):
        graph_def = self._graph.as_graph_def(add_shapes=True)
        if self._logdir:
            steps.write_graph(graph_def, self._logdir, "graph.pbtxt")
        if self._summary_writer and not self._graph_added_to_summary:
            saver_def = self._saver.saver_def if self._saver else None
            meta = meta_graph.export_meta_graph(
                graph=self._graph, graph_def=graph_def, saver_def=saver_def
            )
            self._summary_writer.add_graph(self._graph)
            self._summary_writer.add_meta_graph(meta)
            self._graph_added_to_summary = True

    # --- threads ---

    def start_standard_services(self, sess):
        """Starts the threads that save checkpoints and summaries; they are listed.

        RuntimeError unless it is the chief.
        """
        if not self._is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief "
                "supervisors can write events."
            )
        if not self._logdir:
            logging.warn(
                "Standard services need a 'logdir' passed to the SessionManager"
            )
            return None
        writer, threads = self._summary_writer, []
        if self._global_step is not None and writer:
            step = steps.global_step(sess, self._global_step)
            log = protos.SessionLog(status=protos.SessionLog.START)
            writer.add_session_log(log, step)
        if self._save_summaries_secs and writer:
            if self._summary_op is not None:
                threads.append(_Summaries(self, sess, self._save_summaries_secs))
            if self._global_step is not None:
                threads.append(_Speed(self, sess, self._save_summaries_secs))
        if self._saver and self._save_model_secs:
            threads.append(_Checkpoints(self, sess, self._save_model_secs))
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(self, sess, queue_runners=None):
        """Starts the threads of queue runners, the graph's by default; they are listed."""
        execution.only_in_graphs("Queues are not compatible with eager execution.")
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        threads = []
        for runner in queue_runners:
            threads += runner.create_threads(
                sess, coord=self._coord, daemon=True, start=True
            )
        return threads

    def loop(self, timer_interval_secs, target, args=None, kwargs=None):
        """Starts a thread that calls `target` every so many seconds until it is to stop;
        with None again and again. The thread."""
        looper = LooperThread(self._coord, timer_interval_secs, target, args, kwargs)
        looper.start()
        return looper

    def stop(self, threads=None, close_summary_writer=True, ignore_live_threads=False):
        """Has all threads stop, waits for them, and raises the error of one if there was
        any; then the summaries' file is closed, if wanted."""
        self._coord.request_stop()
        try:
            self._coord.join(
                threads,
                stop_grace_period_secs=self._stop_grace_secs,
                ignore_live_threads=ignore_live_threads,
            )
        finally:
            if close_summary_writer and self._summary_writer:
                log = protos.SessionLog(status=protos.SessionLog.STOP)
                self._summary_writer.add_session_log(log)
                self._summary_writer.close()
                self._graph_added_to_summary = False

    def request_stop(self, ex=None):
        """Has all threads stop; with an error, that stop() is to raise."""
        self._coord.request_stop(ex=ex)

    def should_stop(self):
        """Whether a stop was requested."""
        return self._coord.should_stop()

    def stop_on_exception(self):
        """A context manager that requests a stop for an error inside."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self):
        """Waits until a stop was requested."""
        self._coord.wait_for_stop()

    def summary_computed(self, sess, summary, global_step=None):
        """Writes a summary of the step, by default that of the session now.

        RuntimeError without a writer.
        """
        if not self._summary_writer:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self.global_step is not None:
            global_step = steps.global_step(sess, self.global_step)
        self._summary_writer.add_summary(summary, global_step)

    PrepareSession = prepare_or_wait_for_session
    StartStandardServices = start_standard_services
    StartQueueRunners = start_queue_runners
    Loop = loop
    Stop = stop
    RequestStop = request_stop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


def basic_train_loop(supervisor, train_step_fn, args=None, kwargs=None, master=""):
    """Calls train_step_fn(session, *args, **kwargs) until the Supervisor is to stop.

    A session that its master took away, an AbortedError, is prepared anew.
    """
    while True:
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *(args or ()), **(kwargs or {}))
            return
        except errors.AbortedError:
            continue
