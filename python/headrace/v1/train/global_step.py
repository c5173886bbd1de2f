"""The counter of training steps of a graph."""

import os

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import dtypes
from headrace.framework.settings import logging
from headrace.framework.variables import ResourceVariable, VariableAggregation
from headrace.ops.random import initializers_v1
from headrace.v1 import meta_graph, variable_scope
from headrace.v1.collections import GraphKeys

_READ_KEY = "global_step_read_op_cache"


def get_global_step(graph=None):
    """The step of the graph, or None where it has none."""
    graph = graph or stack.default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        logging.error("Multiple tensors in global_step collection.")
        return None
    if found:
        step = found[0]
    else:
        try:
            step = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
    assert_global_step(step)
    return step


def create_global_step(graph=None):
    """Makes the step of the graph."""
    graph = graph or stack.default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    if _headrace.is_eager():  # known to the thread's default graph alone
        step = ResourceVariable(0, False, name="global_step", dtype=dtypes.int64)
        graph.add_to_collection(GraphKeys.GLOBAL_STEP, step)
        return step
    keys = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP]
    with graph.as_default():
        first_only = VariableAggregation.ONLY_FIRST_REPLICA
        return counter("global_step", keys, aggregation=first_only)


def counter(name, keys, **more):
    """A variable of the current graph that counts from 0, in collections."""
    with stack.default_graph().name_scope(""):
        return variable_scope.get_variable(
            name,
            shape=[],
            dtype=dtypes.int64,
            initializer=initializers_v1.Zeros(),
            trainable=False,
            collections=keys,
            **more,
        )


def get_or_create_global_step(graph=None):
    """The step of the graph, made where it has none."""
    graph = graph or stack.default_graph()
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


def assert_global_step(global_step_tensor):
    """Raises unless it is an integer scalar."""
    is_tensor = isinstance(
        global_step_tensor, (_headrace.Tensor, _headrace.VariableBase)
    ) or hasattr(global_step_tensor, "_ref")
    if not is_tensor:
        raise TypeError(
            'Existing "global_step" must be a Variable or Tensor: '
            f"{global_step_tensor}."
        )
    if not dtypes.as_dtype(global_step_tensor.dtype).base_dtype.is_integer:
        raise TypeError(
            'Existing "global_step" does not have integer type: '
            f"{global_step_tensor.dtype}"
        )
    shape = global_step_tensor.shape
    if shape.rank is not None and shape.rank != 0:
        raise TypeError(f'Existing "global_step" is not scalar: {shape}')


def global_step(sess, global_step_tensor):
    """The step's value in a session."""
    return int(sess.run(global_step_tensor))


def read_of(graph=None):
    """A tensor that reads the graph's step, made once; None without a step."""
    graph = graph or stack.default_graph()
    found = graph.get_collection(_READ_KEY)
    if found:
        return found[0]
    step = get_global_step(graph)
    if step is None:
        return None
    name = step.name.partition(":")[0]
    # The node that was made with the variable: it stands before all updates in the
    # graph's order, so that a run which updates the step reads it from before.
    value = step
    if hasattr(step, "read_value"):
        value = getattr(step, "_graph_element", step.value)()
    with graph.as_default(), graph.name_scope(f"{name}/"):
        read = value + 0
    graph.add_to_collection(_READ_KEY, read)
    return read


def write_graph(graph_or_graph_def, logdir, name, as_text=True):
    """Writes a graph to a file; its path."""
    graph_def = graph_or_graph_def
    if hasattr(graph_def, "as_graph_def"):
        graph_def = graph_def.as_graph_def()
    logdir = os.fspath(logdir)
    path = os.path.join(logdir, name)
    _headrace.make_folder(logdir)
    meta_graph.write_proto(graph_def, path, as_text)
    return path
