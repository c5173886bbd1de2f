"""tf.compat.v1.summary: operations of a graph that make serialized summaries."""

import re

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.framework import conversion, dtypes, execution
from headrace.framework.settings import logging
from headrace.framework.support import protos
from headrace.v1 import collections

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
    keys = [collections.GraphKeys.SUMMARIES] if keys is None else keys
    stack.default_graph().add_to_collections(keys, tensor)
    return tensor


def _summary(op, name, values, family, keys, tag_input, value_input, **more):
    """A summary of `values` under the name of its scope."""
    if _headrace.is_eager():
        return conversion.constant(b"")
    base = clean_tag(name)
    family = clean_tag(family)
    scope = base if family is None else f"{family}/{base}"
    graph = stack.current()
    with graph.name_scope(scope) as full:
        tag = full.rstrip("/")
        if family is not None:
            tag = f"{family}/{tag}"
        made = _headrace.raw_op(op)(
            **{tag_input: tag, value_input: conversion.convert_to_tensor(values)},
            **more,
            name=full,
        )
    return _collect(made, keys)


def scalar(name, tensor, collections=None, family=None):
    """A serialized Summary of one number."""
    return _summary(
        "ScalarSummary", name, tensor, family, collections, "tags", "values"
    )


def histogram(name, values, collections=None, family=None):
    """A serialized Summary of how values are spread."""
    return _summary(
        "HistogramSummary", name, values, family, collections, "tag", "values"
    )


def image(name, tensor, max_outputs=3, collections=None, family=None):
    """A serialized Summary of at most `max_outputs` pictures, [k, height, width, 1, 3
    or 4], as PNG files."""
    return _summary(
        "ImageSummary",
        name,
        tensor,
        family,
        collections,
        "tag",
        "tensor",
        max_images=max_outputs,
    )


def audio(name, tensor, sample_rate, max_outputs=3, collections=None, family=None):
    """A serialized Summary of at most `max_outputs` sounds, [k, frames] or [k, frames,
    channels], as WAV files."""
    return _summary(
        "AudioSummaryV2",
        name,
        tensor,
        family,
        collections,
        "tag",
        "tensor",
        sample_rate=conversion.convert_to_tensor(sample_rate, dtypes.float32),
        max_outputs=max_outputs,
    )


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
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if summary_description is not None:
        metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    return _summary(
        "TensorSummaryV2",
        name,
        tensor,
        family,
        collections,
        "tag",
        "tensor",
        serialized_summary_metadata=metadata.SerializeToString(),
    )


def text(name, tensor, collections=None):
    """A serialized Summary of strings, shown as Markdown."""
    if tensor.dtype != dtypes.string:
        raise ValueError(
            f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype}"
        )
    metadata = protos.SummaryMetadata()
    metadata.plugin_data.plugin_name = "text"
    return tensor_summary(
        name, tensor, collections=collections, summary_metadata=metadata
    )


def merge(inputs, collections=None, name=None):
    """One serialized Summary of several."""
    execution.only_in_graphs(
        "Merging tf.summary.* ops is not compatible with eager execution."
    )
    if not inputs:
        raise ValueError("merge: no summaries were given")
    merged = raw.MergeSummary(list(inputs), name=name or "MergeSummary")
    return _collect(merged, collections or ())


def merge_all(key=collections.GraphKeys.SUMMARIES, scope=None, name=None):
    """One serialized Summary of all that the graph's collection holds, or None."""
    execution.only_in_graphs(
        "Merging tf.summary.* ops is not compatible with eager execution."
    )
    found = stack.default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None
