"""tf.compat.v1.summary: operations of a graph that make serialized summaries."""

import re

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.framework import conversion, execution
from headrace.framework.settings import logging
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


def _summary(op, name, values, family, keys, tag_input, value_input):
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
