"""What says of a graph's operations where they are placed and how they are compiled."""

import contextlib

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.framework import conversion, execution, nest
from headrace.framework.devices import device
from headrace.graph.operation import Operation


def colocate_with(op, ignore_existing=False):
    """tf.compat.v1.colocate_with: Graph.colocate_with of the current graph; the device
    of `op` where operations run at once."""
    if not _headrace.is_eager():
        return stack.current().colocate_with(op, ignore_existing)
    if op is None:
        return contextlib.nullcontext()
    return device(op.device)


def device_v1(device_name_or_function):
    """tf.compat.v1.device: Graph.device of the current graph, which takes functions of
    operations, too; tf.device where operations run at once."""
    if not _headrace.is_eager():
        return stack.current().device(device_name_or_function)
    if callable(device_name_or_function):
        raise RuntimeError(
            "tf.device does not support functions when eager execution is enabled."
        )
    return device(device_name_or_function)


def container(container_name):
    """tf.compat.v1.container: Graph.container of the default graph."""
    return stack.default_graph().container(container_name)


_jit_scopes = 0


@contextlib.contextmanager
def jit_scope(compile_ops=True, separate_compiled_gradients=False):
    """tf.xla.experimental.jit_scope: marks the operations of a graph made inside for
    compilation by XLA. The marks are kept for what reads the graph; running it here
    changes by nothing. RuntimeError where operations run at once."""
    global _jit_scopes
    execution.only_in_graphs(
        "xla.experimental.jit_scope is not supported when eager execution is "
        "enabled. Try use it inside tf.function."
    )
    if callable(compile_ops):
        raise NotImplementedError(
            "xla.experimental.jit_scope: compile_ops must be True or False, functions "
            "of operations are not supported"
        )
    graph = stack.current()
    inner = graph._node_attrs.get("_XlaScope")
    if inner is None:
        inner = f"jit_scope_{_jit_scopes}"
        _jit_scopes += 1
    marks = {"_XlaCompile": bool(compile_ops), "_XlaScope": inner}
    if separate_compiled_gradients:
        marks["_XlaSeparateCompiledGradients"] = True
    with graph._attributes(marks):
        yield


def compile_once(computation, inputs=None):
    """tf.xla.experimental.compile: `computation(*inputs)`, run as all else.

    Gives a list for a single value; in graphs an operation for None and for operations
    alone.
    """
    inputs = [] if inputs is None else inputs
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("inputs must be a list")
    given = nest.map_structure(conversion.convert_to_tensor, list(inputs))
    if _headrace.is_eager():
        value = nest.map_structure(_output, computation(*given))
        return value if nest.is_nested(value) or value is None else [value]
    with jit_scope():
        value = computation(*given)
        flat = nest.flatten(value)
        waited = [x for x in flat if isinstance(x, Operation)]
        if all(x is None or isinstance(x, Operation) for x in flat):
            return execution.group(*waited, name="output_operations")
        with stack.current().control_dependencies(waited):
            made = nest.map_structure(_output, value)
    return made if nest.is_nested(made) else [made]


def _output(x):
    if x is None or isinstance(x, Operation):
        return x
    return raw.Identity(conversion.convert_to_tensor(x))
