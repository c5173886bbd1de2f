"""Traced programs of one int32 scalar."""

import pytest

import headrace as tf


def run(function, x=5):
    """What tf.function of a program of one int32 scalar gives."""
    return tf.function(function)(tf.constant(x))


def refused(function, error, *texts):
    """The program cannot be traced, and the error says so."""
    with pytest.raises(error) as caught:
        run(function)
    for text in texts:
        assert text in str(caught.value)


def types(function, x=5):
    """The operations of its graph, those of bodies too."""
    graph = tf.function(function).get_concrete_function(tf.constant(x)).graph
    bodies = graph.as_graph_def().library.function
    nodes = [n.op for f in bodies for n in f.node_def]
    return nodes + [op.type for op in graph.get_operations()]
