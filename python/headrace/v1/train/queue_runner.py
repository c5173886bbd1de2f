"""tf.compat.v1.train.QueueRunner: threads that fill queues."""

import threading
import weakref

from headrace import _api as tf
from headrace.context import errors, stack
from headrace.context.properties import read_only
from headrace.framework.settings import logging
from headrace.framework.support import protos, signatures
from headrace.v1 import name_scopes
from headrace.v1.collections import GraphKeys


class QueueRunner:
    """A queue and the operations that fill it, a thread each."""

    @signatures.keeping(
        "queue=None, enqueue_ops=None, close_op=None, cancel_op=None, "
        "queue_closed_exception_types=None, queue_runner_def=None, import_scope=None"
    )
    def __init__(self):
        if self._queue_runner_def is None:
            self._begin()
        elif self._queue or self._enqueue_ops:
            raise ValueError("queue_runner_def and queue are mutually exclusive.")
        else:
            self._begin_by(self._queue_runner_def, self._import_scope)
        self._lock = threading.Lock()
        self._runs = weakref.WeakKeyDictionary()  # session -> threads at work
        self._exceptions_raised = []

    def _begin(self):
        if not self._queue or not self._enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        self._enqueue_ops = list(self._enqueue_ops)
        if self._close_op is None:
            self._close_op = self._queue.close()
        if self._cancel_op is None:
            self._cancel_op = self._queue.close(cancel_pending_enqueues=True)
        kinds = self._queue_closed_exception_types or (errors.OutOfRangeError,)
        if not isinstance(kinds, tuple) or not all(
            isinstance(k, type) and issubclass(k, errors.OpError) for k in kinds
        ):
            raise TypeError(
                "queue_closed_exception_types, when provided, must be a tuple of "
                f"tf.error types, but saw: {self._queue_closed_exception_types}"
            )
        self._queue_closed_exception_types = kinds

    def _begin_by(self, proto, scope):
        """Finds the operations that a QueueRunnerDef names; KeyError where the graph
        has them not. The queue is then its operation."""
        if not isinstance(proto, protos.QueueRunnerDef):
            raise TypeError(
                f"queue_runner_def must be a QueueRunnerDef, but saw: {proto!r}"
            )
        graph = stack.default_graph()

        def found(name):
            return graph.as_graph_element(f"{scope}/{name}" if scope else name)

        self._queue = found(proto.queue_name)
        self._enqueue_ops = [found(name) for name in proto.enqueue_op_name]
        self._close_op = found(proto.close_op_name)
        self._cancel_op = found(proto.cancel_op_name)
        codes = list(proto.queue_closed_exception_types) or [errors.OUT_OF_RANGE]
        of_code = errors.exception_type_from_error_code
        self._queue_closed_exception_types = tuple(of_code(code) for code in codes)

    def to_proto(self, export_scope=None):
        """The QueueRunnerDef proto; with an `export_scope` under the names within it,
        None where the queue is not below it."""
        name = self._queue.name
        if export_scope is not None and not name.startswith(export_scope):
            return None
        scope = name_scopes.NameScope(export_scope) if export_scope else None

        def within(name):
            return name if scope is None else scope.without(name)

        kinds = self._queue_closed_exception_types
        return protos.QueueRunnerDef(
            queue_name=within(name),
            enqueue_op_name=[within(op.name) for op in self._enqueue_ops],
            close_op_name=within(self._close_op.name),
            cancel_op_name=within(self._cancel_op.name),
            queue_closed_exception_types=[
                errors.error_code_from_exception_type(kind) for kind in kinds
            ],
        )

    @staticmethod
    def from_proto(queue_runner_def, import_scope=None):
        """A runner of the operations that a QueueRunnerDef names, in `import_scope`."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)

    queue = read_only("_queue", "The queue that is filled.")
    enqueue_ops = read_only(
        "_enqueue_ops",
        "A list of operations, each run again and again by a thread of its own.",
    )
    close_op = read_only(
        "_close_op",
        "The operation that closes the queue; what it holds can still be taken.",
    )
    cancel_op = read_only(
        "_cancel_op",
        "The operation that closes the queue and cancels waiting enqueues.",
    )
    name = read_only("_queue.name", "The name of the queue.")
    queue_closed_exception_types = read_only(
        "_queue_closed_exception_types",
        "The errors that tell a thread that the queue is closed.",
    )
    exceptions_raised = read_only(
        "_exceptions_raised", "What threads raised that had no coordinator to tell."
    )

    def _run(self, sess, enqueue_op, coord):
        """One thread: fills the queue until it is closed or all are to stop."""
        try:
            while not (coord and coord.should_stop()):
                try:
                    sess.run(enqueue_op)
                except self._queue_closed_exception_types:
                    self._leave(sess, close=True)
                    return
            self._leave(sess)
        except Exception as e:
            self._leave(sess)
            if coord:
                coord.request_stop(e)
                return
            logging.error("Exception in QueueRunner: %s", str(e))
            with self._lock:
                self._exceptions_raised.append(e)
            raise

    def _leave(self, sess, close=False):
        """A thread ends; the last one whose source ran dry closes the queue."""
        with self._lock:
            self._runs[sess] -= 1
            last = self._runs[sess] == 0
        if close and last:
            try:
                sess.run(self._close_op)
            except Exception as e:  # the session may be closed
                logging.vlog(1, "Ignored exception: %s", str(e))

    def _close_on_stop(self, sess, coord):
        """Waits for the coordinator, then frees those that wait for room."""
        coord.wait_for_stop()
        try:
            sess.run(self._cancel_op)
        except Exception as e:
            logging.vlog(1, "Ignored exception: %s", str(e))

    def create_threads(self, sess, coord=None, daemon=False, start=False):
        """A thread for each operation, and one that waits for the coordinator;
        none while those of that session are at work."""
        with self._lock:
            if self._runs.get(sess, 0) > 0:
                return []
            self._runs[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        made = []
        for op in self._enqueue_ops:
            name = f"QueueRunnerThread-{self.name}-{op.name}"
            made.append(_thread(name, self._run, (sess, op, coord), daemon))
        if coord:
            name = f"QueueRunnerThread-{self.name}-close_on_stop"
            made.append(_thread(name, self._close_on_stop, (sess, coord), daemon))
        for thread in made:
            if coord:
                coord.register_thread(thread)
            if start:
                thread.start()
        return made


def _thread(name, target, args, daemon):
    return threading.Thread(target=target, args=args, name=name, daemon=daemon)


def add_queue_runner(qr, collection=GraphKeys.QUEUE_RUNNERS):
    """Adds a runner to those that start_queue_runners starts."""
    stack.default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess=None, coord=None, daemon=True, start=True, collection=GraphKeys.QUEUE_RUNNERS
):
    """Starts the graph's runners; their threads."""
    if not stack.default_graph().get_collection(collection) and tf.executing_eagerly():
        raise RuntimeError("Queues are not compatible with eager execution.")
    if sess is None:
        sess = tf.compat.v1.get_default_session()
        if not sess:
            raise ValueError(
                "Cannot start queue runners: No default session is registered. Use "
                "`with sess.as_default()` or pass an explicit session to "
                "tf.start_queue_runners(sess=sess)"
            )
    if not hasattr(sess, "graph"):
        raise TypeError(
            f"sess must be a `tf.Session` object. Given class: {type(sess)}"
        )
    threads = []
    with sess.graph.as_default():
        for runner in sess.graph.get_collection(collection):
            threads += runner.create_threads(
                sess, coord=coord, daemon=daemon, start=start
            )
    return threads
