"""Summary writers, the default one, the step, and the functions that write."""

import contextlib
import itertools
import os
import threading

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.framework import conversion, dtypes, name_scopes
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops
from headrace.summary import metadata as metadata_


class _State(threading.local):
    writer = None
    step = None
    is_recording = True


_state = _State()
_numbers = itertools.count()


class SummaryWriter:
    """Writes summaries to somewhere; made by tf.summary.create_file_writer."""

    def __init__(self, handle=None):
        self._handle = handle
        self._closed = False

    @contextlib.contextmanager
    def as_default(self, step=None):
        """Makes it the default writer, and `step` the default step, in a block."""
        old_writer, old_step = _state.writer, _state.step
        self.set_as_default(step)
        try:
            yield self
            if not self._closed:
                self.flush()
        finally:
            _state.writer, _state.step = old_writer, old_step

    def set_as_default(self, step=None):
        """Makes it the default writer from here on."""
        self._check_open()
        _state.writer = self
        if step is not None:
            _state.step = step

    def _check_open(self):
        if self._closed:
            raise RuntimeError(f"SummaryWriter is already closed: {self!r}")

    def init(self):
        """The file is begun with the first event; nothing is to be done."""

    def flush(self):
        """Lets readers of the file see all that was written."""
        if self._handle is not None and not self._closed:
            raw.FlushSummaryWriter(self._handle)

    def close(self):
        """Flushes and closes the file."""
        if self._handle is not None and not self._closed:
            raw.FlushSummaryWriter(self._handle)
            raw.CloseSummaryWriter(self._handle)
        self._closed = True

    def __enter__(self):
        self._entered = self.as_default()
        return self._entered.__enter__()

    def __exit__(self, *error):
        return self._entered.__exit__(*error)


class NoopSummaryWriter(SummaryWriter):
    """Writes nothing."""


def create_file_writer(
    logdir, max_queue=None, flush_millis=None, filename_suffix=None, name=None
):
    """A writer of an event file in `logdir`."""
    if logdir is None:
        return NoopSummaryWriter()
    if isinstance(logdir, os.PathLike):
        logdir = os.fspath(logdir)
    # A name of its own: the ops find the file by it.
    name_ = f"summary_writer_{next(_numbers)}:{logdir}"
    handle = raw.SummaryWriter(shared_name=name_, container="")
    raw.CreateSummaryFileWriter(
        handle,
        logdir,
        10 if max_queue is None else max_queue,
        2 * 60 * 1000 if flush_millis is None else flush_millis,
        ".v2" if filename_suffix is None else filename_suffix,
        name=name,
    )
    return SummaryWriter(handle)


def create_noop_writer():
    """A writer that writes nothing."""
    return NoopSummaryWriter()


def flush(writer=None, name=None):
    """Flushes the writer (the default one)."""
    writer = _state.writer if writer is None else writer
    if writer is not None:
        writer.flush()


def get_step():
    """The default step."""
    return _state.step


def set_step(step):
    """Sets the default step: a number, a tensor or a variable."""
    _state.step = step


@contextlib.contextmanager
def record_if(condition):
    """Writes in a block only where the condition holds."""
    old = _state.is_recording
    _state.is_recording = condition
    try:
        yield
    finally:
        _state.is_recording = old


def _default_writer():
    """The default writer, None where nothing is written."""
    writer = _state.writer
    return None if isinstance(writer, NoopSummaryWriter) else writer


def _is_recording():
    condition = _state.is_recording
    return condition() if callable(condition) else condition


def _step_for(step):
    """A step that is given, else the default one."""
    step = _state.step if step is None else step
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or "
            "through tf.summary.experimental.set_step()"
        )
    return step


def check_step(step):
    """Raises the ValueError that `write` would: it would write here, but there is no
    step."""
    if should_record_summaries():
        _step_for(step)


def should_record_summaries():
    """Whether write would write here."""
    recording = _is_recording()
    return conversion.convert_to_tensor(_default_writer() is not None and recording)


@contextlib.contextmanager
def summary_scope(name, default_name="summary", values=None):
    """(tag, scope): the tag that a summary of that name has here."""
    name = name or default_name
    outer = name_scopes.get_current_name_scope()
    tag = f"{outer}/{name}" if outer else name
    with name_scopes.name_scope(name.replace(" ", "_").replace(":", "_")) as scope:
        yield tag, scope


def write(tag, tensor, step=None, metadata=None, name=None):
    """Writes a tensor to the default writer; whether it was written."""
    writer = _default_writer()
    if writer is None:
        return conversion.convert_to_tensor(False)
    recording = _is_recording()
    if isinstance(recording, _headrace.SymbolicTensor):
        raise NotImplementedError(
            "tf.summary.record_if with a symbolic condition is not supported"
        )
    if not bool(recording):
        return conversion.convert_to_tensor(False)
    step = _step_for(step)
    writer._check_open()
    if metadata is None:
        metadata = b""
    elif hasattr(metadata, "SerializeToString"):
        metadata = metadata.SerializeToString()
    value = tensor() if callable(tensor) else tensor
    raw.WriteSummary(
        writer._handle,
        math_ops.cast(step, dtypes.int64),
        conversion.convert_to_tensor(value),
        tag,
        metadata,
        name=name,
    )
    return conversion.convert_to_tensor(True)


def scalar(name, data, step=None, description=None):
    """Writes one number."""
    with summary_scope(name, "scalar_summary") as (tag, _):
        value = math_ops.cast(data, dtypes.float32)
        if value.shape.rank not in (None, 0):
            raise ValueError(f"Expected scalar shape, saw shape: {value.shape}.")
        info = metadata_.encode("scalars", metadata_.SCALAR, description=description)
        return write(tag, value, step, info)


def text(name, data, step=None, description=None):
    """Writes strings, shown as Markdown."""
    with summary_scope(name, "text_summary") as (tag, _):
        value = conversion.convert_to_tensor(data, dtypes.string)
        info = metadata_.encode("text", metadata_.TENSOR, description=description)
        return write(tag, value, step, info)


def histogram(name, data, step=None, buckets=None, description=None):
    """Writes how values are distributed: rows of left edge, right edge, count."""
    buckets = 30 if buckets is None else int(buckets)
    with summary_scope(name, "histogram_summary") as (tag, _):
        flat = math_ops.cast(array_ops.reshape(data, [-1]), dtypes.float64)
        low, high = reduction_ops.reduce_min(flat), reduction_ops.reduce_max(flat)
        width = (high - low) / buckets
        places = math_ops.cast(
            elementwise_ops.floor(elementwise_ops.divide_no_nan(flat - low, width)),
            dtypes.int32,
        )
        places = elementwise_ops.minimum(places, buckets - 1)
        counts = reduction_ops.reduce_sum(
            array_ops.one_hot(places, buckets, dtype=dtypes.float64), axis=0
        )
        edges = array_ops.linspace(low, high, buckets + 1)
        rows = array_ops.stack([edges[:-1], edges[1:], counts], axis=1)
        info = metadata_.encode("histograms", metadata_.TENSOR, description=description)
        return write(tag, rows, step, info)


def write_raw_pb(tensor, step=None, name=None):
    """Writes serialised Summary protos."""
    writer = _default_writer()
    if writer is None:
        return conversion.convert_to_tensor(False)
    step = math_ops.cast(_step_for(step), dtypes.int64)
    raw.WriteRawProtoSummary(writer._handle, step, tensor, name=name)
    return conversion.convert_to_tensor(True)


def graph(graph_data):
    """Writes a tf.Graph, or a GraphDef, to the default writer; whether it was written.

    ValueError for what is neither, and inside traced functions and graphs.
    """
    if not stack.executing_eagerly():
        raise ValueError("graph() cannot be invoked inside a graph context.")
    if hasattr(graph_data, "as_graph_def"):
        graph_data = graph_data.as_graph_def()
    elif type(graph_data).__name__ != "GraphDef":
        raise ValueError(
            "Argument 'graph_data' is not tf.Graph or tf.compat.v1.GraphDef. Received "
            f"graph_data={graph_data} of type {type(graph_data).__name__}."
        )
    writer = _default_writer()
    if writer is None or not bool(_is_recording()):
        return conversion.convert_to_tensor(False)
    writer._check_open()
    raw.WriteGraphSummary(writer._handle, 0, graph_data.SerializeToString())
    return conversion.convert_to_tensor(True)
