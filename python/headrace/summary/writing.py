"""Summaries of tensors, of protos and of graphs, and the functions for numbers, texts
and distributions."""

import contextlib
import re

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.control_flow import branches
from headrace.framework import conversion, dtypes, name_scopes
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops
from headrace.summary import metadata as metadata_
from headrace.summary import state

_NO_SCOPE = re.compile(r"[^A-Za-z0-9_.\\/>-]")  # what names of scopes do not have


@contextlib.contextmanager
def summary_scope(name, default_name="summary", values=None):
    """A context in which a summary is made; `as` gives (tag, scope).

    The tag is `name` (`default_name` where that is None or empty) within the name scope
    outside; it is not made unique. The scope has only the characters that scopes have.
    """
    name = name or default_name
    outer = name_scopes.get_current_name_scope()
    tag = f"{outer}/{name}" if outer else name
    with name_scopes.name_scope(_NO_SCOPE.sub("", name) or default_name) as scope:
        yield tag, scope


def _checked_step(step):
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or "
            "through tf.summary.experimental.set_step()"
        )
    step = conversion.convert_to_tensor(step, dtypes.int64)
    if step.shape.rank != 0 and step.shape.num_elements() not in (1, None):
        raise ValueError(
            f"Argument `step` must be a scalar. Received step with shape {step.shape}."
        )
    return step


def check_step(step):
    """Raises the ValueError that `write` would: it would write here, but there is no
    step."""
    if state.recording() is not False:
        _checked_step(state.get_step() if step is None else step)


def _not_written():
    return conversion.constant(False)


def _recorded(default_name, name, step, emit):
    """Writes, where that is to be done, by `emit(writer's handle, step, name)`; a bool
    tensor: whether it was done."""
    with name_scopes.graph_scope(name, default_name) as scope:
        writer, step = state.current.writer, state.get_step() if step is None else step
        if writer is None:
            return _not_written()

        def record():
            writer._check_open()
            done = emit(writer._resource, _checked_step(step), scope)
            if _headrace.is_eager():
                return conversion.constant(True)
            with stack.current().control_dependencies([done]):
                return conversion.constant(True)

        known = state.recording()
        if isinstance(known, bool):
            written = record() if known else _not_written()
        else:
            written = branches.cond(known, record, _not_written, name="summary_cond")
        return state.collect(state.SUMMARIES, written)


def write(tag, tensor, step=None, metadata=None, name=None):
    """Writes a tensor, or what a function gives, to the default writer; a bool tensor:
    whether it was written.

    `step`: an int64 scalar, by default what set_step was given; `metadata`: a
    SummaryMetadata, its bytes, or a string tensor of them. ValueError without a step.
    """
    if hasattr(metadata, "SerializeToString"):
        metadata = metadata.SerializeToString()

    def emit(writer, step, name):
        value = conversion.convert_to_tensor(tensor() if callable(tensor) else tensor)
        info = b"" if metadata is None else metadata
        return raw.WriteSummary(writer, step, value, tag, info, name=name)

    return _recorded("write_summary", name, step, emit)


def write_raw_pb(tensor, step=None, name=None):
    """Writes serialized Summary protos, a string tensor of any shape, as one event; a
    bool tensor: whether it was written. ValueError without a step, DataLossError for
    what is no Summary."""

    def emit(writer, step, name):
        value = conversion.convert_to_tensor(tensor)
        if value.shape.rank != 0:  # messages in a row are one with all their values
            value = raw.ReduceJoin(array_ops.reshape(value, [-1]), [0])
        return raw.WriteRawProtoSummary(writer, step, value, name=name)

    return _recorded("write_raw_pb", name, step, emit)


def graph(graph_data):
    """Writes a tf.Graph, or a GraphDef, to the default writer; whether it was written.

    ValueError for what is neither, and inside traced functions and graphs.
    """
    if not stack.executing_eagerly():
        raise ValueError("graph() cannot be invoked inside a graph context.")
    writer = state.current.writer
    if state.recording() is not True:
        return conversion.constant(False)
    if hasattr(graph_data, "as_graph_def"):
        graph_data = graph_data.as_graph_def(add_shapes=True)
    elif type(graph_data).__name__ != "GraphDef":
        raise ValueError(
            "Argument 'graph_data' is not tf.Graph or tf.compat.v1.GraphDef. Received "
            f"graph_data={graph_data} of type {type(graph_data).__name__}."
        )
    writer._check_open()
    raw.WriteGraphSummary(writer._resource, 0, graph_data.SerializeToString())
    return conversion.constant(True)


def scalar(name, data, step=None, description=None):
    """Writes one number, as float32. A bool tensor: whether it was written; ValueError
    for another shape than [], and without a step."""
    info = metadata_.encode("scalars", description=description)
    with summary_scope(name, "scalar_summary") as (tag, _):
        value = conversion.convert_to_tensor(data)
        if value.shape.rank not in (None, 0):
            raise ValueError(f"Expected scalar shape, saw shape: {value.shape}.")
        return write(tag, math_ops.cast(value, dtypes.float32), step, info)


def text(name, data, step=None, description=None):
    """Writes strings, of any shape, shown as Markdown. A bool tensor: whether it was
    written; TypeError for what is no string, ValueError without a step."""
    info = metadata_.encode("text", description=description)
    with summary_scope(name, "text_summary") as (tag, _):
        value = conversion.convert_to_tensor(data)
        if value.dtype != dtypes.string:
            raise TypeError(
                f"tensor must be of type tf.string; got tf.{value.dtype.name}"
            )
        return write(tag, value, step, info)


def histogram(name, data, step=None, buckets=None, description=None):
    """Writes how numbers are distributed, over `buckets` (30) ranges of one width. A
    bool tensor: whether it was written; ValueError without a step.

    What is written is float64, [buckets, 3]: rows of left edge, right edge (which
    belongs to the last range alone) and count. Where all numbers are the same they are
    counted in the last row; without numbers the rows are zeros.
    """
    info = metadata_.encode("histograms", description=description)
    with summary_scope(name, "histogram_summary") as (tag, _):
        return write(tag, lambda: _buckets(data, buckets), step, info)


def _buckets(data, count):
    count = 30 if count is None else max(int(count), 0)
    flat = math_ops.cast(array_ops.reshape(data, [-1]), dtypes.float64)
    if count == 0:
        return array_ops.zeros([0, 3], dtypes.float64)
    zero = conversion.constant(0, dtypes.float64)
    empty = array_ops.size(flat) == 0  # the least of nothing is infinite
    low = array_ops.where(empty, zero, reduction_ops.reduce_min(flat))
    high = array_ops.where(empty, zero, reduction_ops.reduce_max(flat))
    width = (high - low) / count
    places = elementwise_ops.minimum(
        elementwise_ops.floor((flat - low) / width), count - 1
    )
    places = array_ops.where(width > 0, places, count - 1)
    places = array_ops.where(raw.IsNan(width), -1, places)  # NaNs are nowhere
    counts = reduction_ops.reduce_sum(
        array_ops.one_hot(
            math_ops.cast(places, dtypes.int32), count, dtype=dtypes.float64
        ),
        axis=0,
    )
    edges = array_ops.linspace(low, high, count + 1)
    return array_ops.stack([edges[:-1], edges[1:], counts], axis=1)
