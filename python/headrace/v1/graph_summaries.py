"""tf.compat.v1.summary: operations of a graph that make serialized summaries."""

import functools
import re
import warnings

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.framework import conversion, dtypes, execution, name_scopes
from headrace.framework.settings import logging
from headrace.framework.support import protos
from headrace.ops import array_ops
from headrace.summary import media, metadata, state, writing
from headrace.v1 import collections

GraphKeys = collections.GraphKeys
_STEP = GraphKeys.GLOBAL_STEP

_BAD = re.compile(r"[^-/\w\.]")


def clean_tag(name):
    """The name as nodes may be called."""
    if name is None:
        return name
    new = _BAD.sub("_", name).lstrip("/")
    if new != name:
        logging.info("Summary name %s is illegal; using %s instead.", name, new)
    return new


def _collect(tensor, keys):
    keys = [GraphKeys.SUMMARIES] if keys is None else keys
    stack.default_graph().add_to_collections(keys, tensor)
    return tensor


def _step_for_v2():
    """The step at which tf.summary writes here, where it is to write for us: code runs
    eagerly or in a traced function, and there are a default writer and a step. None,
    with a warning, where one is missing."""
    if state.current.writer is None:
        missing = "default summary writer not found."
    else:
        step = state.get_step()
        if step is None:
            step = next(iter(stack.default_graph().get_collection(_STEP)), None)
        if step is not None:
            return step
        missing = (
            "global step not set. To set step for summary writer, use "
            "`tf.summary.SummaryWriter.as_default(step=_)`, "
            "`tf.summary.experimental.set_step()` or "
            "`tf.compat.v1.train.create_global_step()`."
        )
    warnings.warn(
        "Cannot activate TF2 compatibility support for TF1 summary ops: " + missing,
        stacklevel=4,
    )
    return None


def _summary(name, family, keys, emit, written=None):
    """A summary under the name of its scope: what emit(tag, name of the node) gives.

    Where tf.summary is to write instead, `written(name=tag, step=step)` does, and the
    summary is empty.
    """
    base, family = clean_tag(name), clean_tag(family)
    scope = base if family is None else f"{family}/{base}"
    in_graph = not stack.executing_eagerly_outside_functions()
    step = None if in_graph or written is None else _step_for_v2()
    with name_scopes.name_scope(scope) as full:
        tag = full.rstrip("/")
        if family is not None:
            tag = f"{family}/{tag}"
        if step is None:
            made = emit(tag, execution.node_name(full))
            return made if _headrace.is_eager() else _collect(made, keys)
    with name_scopes.name_scope(""):
        written(name=tag, step=step)
    return conversion.constant(b"")


def scalar(name, tensor, collections=None, family=None):
    """A serialized Summary of one number. Where code runs eagerly with a default writer
    and a step, tf.summary.scalar writes it, and what is returned is empty."""

    def emit(tag, name):
        return raw.ScalarSummary(tags=tag, values=tensor, name=name)

    write = functools.partial(writing.scalar, data=tensor)
    return _summary(name, family, collections, emit, write)


def histogram(name, values, collections=None, family=None):
    """A serialized Summary of how values are spread; written like scalar's."""

    def emit(tag, name):
        return raw.HistogramSummary(tag=tag, values=values, name=name)

    write = functools.partial(writing.histogram, data=values)
    return _summary(name, family, collections, emit, write)


def image(name, tensor, max_outputs=3, collections=None, family=None):
    """A serialized Summary of at most `max_outputs` pictures, [k, height, width, 1, 3
    or 4], as PNG files; written like scalar's."""

    def emit(tag, name):
        return raw.ImageSummary(
            tag=tag, tensor=tensor, max_images=max_outputs, name=name
        )

    write = functools.partial(media.image, data=tensor, max_outputs=max_outputs)
    return _summary(name, family, collections, emit, write)


def audio(name, tensor, sample_rate, max_outputs=3, collections=None, family=None):
    """A serialized Summary of at most `max_outputs` sounds, [k, frames] or [k, frames,
    channels], as WAV files; written like scalar's."""

    def emit(tag, name):
        rate = conversion.convert_to_tensor(sample_rate, dtypes.float32)
        return raw.AudioSummaryV2(
            tag=tag, tensor=tensor, sample_rate=rate, max_outputs=max_outputs, name=name
        )

    def write(**more):
        sound = conversion.convert_to_tensor(tensor)
        if sound.shape.rank == 2:
            sound = array_ops.expand_dims(sound, 2)
        media.audio(
            data=sound, sample_rate=sample_rate, max_outputs=max_outputs, **more
        )

    return _summary(name, family, collections, emit, write)


def tensor_summary(
    name,
    tensor,
    summary_description=None,
    collections=None,
    summary_metadata=None,
    family=None,
    display_name=None,
):
    """A serialized Summary of a tensor, with what is said of it."""
    metadata = protos.SummaryMetadata()
    if summary_metadata is not None:  # tensorboard's own class of it, too
        metadata.MergeFromString(summary_metadata.SerializeToString())
    if summary_description is not None:
        metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    serialized = metadata.SerializeToString()

    def emit(tag, name):
        return raw.TensorSummaryV2(
            tag=tag,
            tensor=conversion.convert_to_tensor(tensor),
            serialized_summary_metadata=serialized,
            name=name,
        )

    return _summary(name, family, collections, emit)


def text(name, tensor, collections=None):
    """A serialized Summary of strings, shown as Markdown; written like scalar's.
    ValueError for what is no string."""
    if tensor.dtype != dtypes.string:
        raise ValueError(
            f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype}"
        )
    serialized = metadata.encode("text")

    def emit(tag, name):
        return raw.TensorSummaryV2(
            tag=tag, tensor=tensor, serialized_summary_metadata=serialized, name=name
        )

    write = functools.partial(writing.text, data=tensor)
    return _summary(name, None, collections, emit, write)


def get_summary_description(node_def):
    """The SummaryDescription that the node of a TensorSummary holds, as JSON; ValueError
    for another node, json_format's ParseError for what is no such text."""
    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    description = node_def.attr["description"].s.decode()
    return protos.of_json(description, protos.SummaryDescription())


def merge(inputs, collections=None, name=None):
    """One serialized Summary of several."""
    execution.only_in_graphs(
        "Merging tf.summary.* ops is not compatible with eager execution. Use "
        "tf.contrib.summary instead."
    )
    if not inputs:
        raise ValueError(
            "List argument 'inputs' to 'MergeSummary' Op with length 0 shorter than "
            "minimum length 1."
        )
    with name_scopes.name_scope(name or "Merge"):
        merged = raw.MergeSummary(list(inputs), name=name)
    return _collect(merged, collections or ())


def merge_all(key=GraphKeys.SUMMARIES, scope=None, name=None):
    """One serialized Summary of all that the graph's collection holds, or None."""
    execution.only_in_graphs(
        "Merging tf.summary.* ops is not compatible with eager execution. Use "
        "tf.contrib.summary instead."
    )
    found = stack.default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None
