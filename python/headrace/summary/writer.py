"""Summary writers: event files, and which of them is the default one."""

import contextlib
import itertools
import os
import weakref

from headrace._load import _headrace, raw
from headrace.context import sessions, stack
from headrace.context.properties import read_only
from headrace.framework import dtypes, execution, name_scopes
from headrace.framework.trackable import AutoTrackable
from headrace.ops import math_ops
from headrace.summary import state
from headrace.summary.state import INITIALIZERS, SUMMARIES

_numbers = itertools.count()
_FLUSH_MILLIS = 2 * 60 * 1000


class SummaryWriter:
    """What summaries are written to; made by tf.summary.create_file_writer.

    `handle` is the resource that it writes by. In a graph that a session runs, init(),
    flush() and close() give operations.
    """

    def __init__(self, handle=None):
        self._resource, self._init_op, self._closed = handle, None, False

    def _check_open(self):
        if self._resource is None:
            raise NotImplementedError(f"{type(self).__name__} has nothing to write to")
        if self._closed:
            raise RuntimeError(f"SummaryWriter {self!r} is already closed")

    def set_as_default(self, step=None):
        """Makes it this thread's default writer, and `step`, unless it is None, the
        default step. RuntimeError where it is closed."""
        self._check_open()
        state.current.writer = self
        if step is not None:
            state.current.step = step

    @contextlib.contextmanager
    def as_default(self, step=None):
        """A context in which it is the default writer, and `step`, unless it is None,
        the default step; it is flushed at the end. RuntimeError where it is closed."""
        self._check_open()
        old = state.current.writer
        state.current.writer = self
        try:
            with _default_step(step):
                yield self
            self.flush()
        finally:
            state.current.writer = old

    def init(self):
        """The operation that begins the file; eagerly that has been done. RuntimeError
        where it is closed."""
        self._check_open()
        return None if _headrace.is_eager() else self._init_op

    def flush(self):
        """Lets readers of the file see all that was written; nothing where it is
        closed."""
        if self._closed:
            return None
        self._check_open()
        return raw.FlushSummaryWriter(self._resource)

    def close(self):
        """Flushes and closes the file; a graph's can be begun again."""
        if self._closed:
            return None
        if not _headrace.is_eager():
            with stack.current().control_dependencies([self.flush()]):
                return raw.CloseSummaryWriter(self._resource)
        self.flush()
        raw.CloseSummaryWriter(self._resource)
        self._closed = True
        return None


class NoopSummaryWriter(SummaryWriter):
    """Writes nothing, and leaves what is the default as it is."""

    def set_as_default(self, step=None):
        """Changes nothing."""

    @contextlib.contextmanager
    def as_default(self, step=None):
        """A context like none: an outer writer goes on to write."""
        yield

    def init(self):
        """Nothing to do."""

    flush = close = init


def _destroy(handle):
    with stack.entering(None):
        raw.DestroyResourceOp(handle, ignore_lookup_error=True)


class FileSummaryWriter(SummaryWriter):
    """Writes an event file, which ends with close() or with the object."""

    def __init__(self, make, begin):
        super().__init__(make())
        self._init_op = state.collect(INITIALIZERS, begin(self._resource))
        if _headrace.is_eager():
            weakref.finalize(self, _destroy, self._resource)


class SavedSummaryWriter(AutoTrackable, FileSummaryWriter):
    """One that a SavedModel holds: each that loads it begins a file of its own."""

    def __init__(self, make, begin):
        FileSummaryWriter.__init__(self, make, begin)
        self._make, self._begin = make, begin

    resource_handle = read_only("_resource", "The handle: a tensor.")

    def _create_resource(self):
        handle = self._make()
        with execution.control_dependencies([self._begin(handle)]):
            return raw.Identity(handle)

    def _initialize(self):
        """The file has been begun: a resource is there from its making on."""


@contextlib.contextmanager
def _default_step(step):
    """`step` is the default in a block; where it is None, and set_step is called in it,
    that stays in force after it."""
    if step is None:
        yield
        return
    old = state.current.step
    state.current.step = step
    try:
        yield
    finally:
        state.current.step = old


def create_file_writer(
    logdir,
    max_queue=None,
    flush_millis=None,
    filename_suffix=None,
    name=None,
    experimental_trackable=False,
    experimental_mesh=None,
):
    """A writer of a new event file in the folder `logdir`, which is made.

    `max_queue`: the number of summaries that wait before they are written, 10 where it
    is None; `flush_millis`: how long they wait at most, two minutes where it is None;
    `filename_suffix`: the end of the file's name, ".v2" where it is None. With
    `experimental_trackable` a SavedModel may hold it. No `logdir` gives a writer that
    writes nothing. ValueError for tensors of a graph where code runs eagerly,
    NotImplementedError for `experimental_mesh`.
    """
    if logdir is None:
        return NoopSummaryWriter()
    if experimental_mesh is not None:
        raise NotImplementedError(
            "create_file_writer: experimental_mesh is not supported"
        )
    if isinstance(logdir, os.PathLike):
        logdir = os.fspath(logdir)
    given = {
        "logdir": logdir,
        "max_queue": 10 if max_queue is None else max_queue,
        "flush_millis": _FLUSH_MILLIS if flush_millis is None else flush_millis,
        "filename_suffix": ".v2" if filename_suffix is None else filename_suffix,
    }
    kind = SavedSummaryWriter if experimental_trackable else FileSummaryWriter
    shared = f"summary_writer_{os.getpid()}_{next(_numbers)}"

    def make():
        return raw.SummaryWriter(shared_name=shared, container="")

    def begin(handle):
        end = file_suffix(given["filename_suffix"])
        return raw.CreateSummaryFileWriter(handle, **{**given, "filename_suffix": end})

    with stack.init_scope() if stack.inside_function() else contextlib.nullcontext():
        given = {k: _outside_of_graphs(k, v) for k, v in given.items()}
        with name_scopes.graph_scope(name, "create_file_writer"):
            return kind(make, begin)


def _outside_of_graphs(name, value):
    """An argument: eager tensors as data, which graphs of their own may hold."""
    if isinstance(value, _headrace.EagerTensor):
        return value.numpy()
    if _headrace.is_eager() and isinstance(value, _headrace.SymbolicTensor):
        raise ValueError(
            f"Invalid graph Tensor argument '{name}={value}' to eagerly executed "
            "create_file_writer()."
        )
    return value


def file_suffix(suffix):
    """The suffix with what tells files of one second apart, before it: the process and
    a number; in graphs, which may begin many files, the time."""
    process = f".{os.getpid()}."
    if _headrace.is_eager():
        return raw.StringJoin([f"{process}{next(_numbers)}", suffix])
    micros = math_ops.cast(raw.Timestamp() * 1e6, dtypes.int64)
    return raw.StringJoin([process, raw.AsString(micros), suffix])


def create_noop_writer():
    """A writer that writes nothing, and leaves what is the default as it is."""
    return NoopSummaryWriter()


def flush(writer=None, name=None):
    """Flushes a writer, the default one where it is None; in a graph the operation that
    does. ValueError for what is no writer."""
    writer = state.current.writer if writer is None else writer
    if writer is None:
        return execution.no_op()
    if isinstance(writer, SummaryWriter):
        return writer.flush()
    raise ValueError(f"Invalid argument to flush(): {writer!r}")


def initialize(graph=None, session=None):
    """Runs, in a session, what begins the files of its graph's writers, and writes the
    graph, unless it is None, to the default one. Eagerly there is nothing to do.

    RuntimeError where there is no default writer, ValueError where no session is given
    nor a default one.
    """
    if _headrace.is_eager():
        return
    if state.current.writer is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    session = sessions.get_default_session() if session is None else session
    if session is None:
        raise ValueError(
            "Argument `session must be passed if no default session exists"
        )
    session.run(stack.default_graph().get_collection(INITIALIZERS))
    if graph is not None:
        data = graph.as_graph_def(add_shapes=True).SerializeToString()
        wire = raw.Placeholder(dtype=dtypes.string, shape=[])
        write = raw.WriteGraphSummary(state.current.writer._resource, 0, wire)
        session.run(write, feed_dict={wire: data})


def all_v2_summary_ops():
    """The results of tf.summary's functions in the default graph where a writer was in
    force: a list of tensors; None where code runs eagerly."""
    if _headrace.is_eager():
        return None
    return stack.default_graph().get_collection(SUMMARIES)
