"""Public functions called with tensors that have layouts.

The function runs once, on whole values; its results get the layouts that the same call
gives in a scratch graph (`propagation.py`).
"""

import operator

from headrace import _api as tf
from headrace import _names
from headrace._load import _headrace
from headrace.dtensor import gradients, scopes, tensors
from headrace.dtensor.layout import Layout
from headrace.dtensor.propagation import Specs
from headrace.dtensor.rules import whole
from headrace.dtensor.structures import leaves, mapped
from headrace.dtensor.tensors import DTensor, inside, laid, layout_of, with_layout
from headrace.framework import dispatch
from headrace.graph.func_graph import FuncGraph


def mesh_of(values):
    """The mesh of those that have layouts; UnknownError where they are several."""
    meshes = {v.mesh for v in map(layout_of, values) if v is not None}
    if len(meshes) > 1:
        raise tf.errors.UnknownError(
            None,
            None,
            "'tf_device.cluster' op failed during mesh propagation. All inputs to "
            "`tf_device.Cluster` must have same mesh configuration. List of found "
            f"inputs: {', '.join(sorted(m.to_string() for m in meshes))}",
        )
    return meshes.pop() if meshes else scopes.active()


def refuse_plain(name, position, value):
    """UnimplementedError for a tensor without a layout that is no scalar, and no
    integers or texts."""
    small = value.dtype.is_integer or value.dtype == tf.string
    if not value.shape.rank or small or value.dtype in (tf.resource, tf.variant):
        return
    shape = ",".join(map(str, value.shape.as_list()))
    raise tf.errors.UnimplementedError(
        None,
        None,
        f"The op/function {name} got a regular tensor for input {position} (shape "
        f"[{shape}]) but was expecting a DTensor. Currently only scalars and small "
        "integer/string tensors are auto-broadcast to DTensors. For other tensors, "
        "please use copy_to_mesh to make a DTensor explicitly; note that this may be "
        "slow if it happens frequently.",
    )


def run(function, args, kwargs):
    """function(*args, **kwargs), whose results have layouts."""
    given = list(leaves((args, kwargs)))
    mesh = mesh_of(given)
    asked = args, kwargs
    if any(isinstance(v, _headrace.VariableBase) for v in given):
        args, kwargs = mapped(_read, (args, kwargs))
    specs = None
    if not any(callable(v) for v in leaves((args, kwargs))):
        specs = _specs_of_results(function, args, kwargs, mesh)
    with inside(), tensors.no_hook():
        result = function(*args, **kwargs)
    result = _with_specs(result, specs, mesh, {id(v) for v in given})
    gradients.note(function, *asked, result)
    return result


def _read(value):
    has_layout = isinstance(value, _headrace.VariableBase) and layout_of(value)
    return value.value() if has_layout else value


def _specs_of_results(function, args, kwargs, mesh):
    """Of each leaf of the results its specs, or None of one that stays plain; None
    where the function cannot be traced."""
    graph, layouts = FuncGraph("layouts"), {}
    graph.shows_eager = True

    def stand_in(value):
        if isinstance(value, DTensor):
            holder = tf.compat.v1.placeholder(value.dtype, value.shape)
            layouts[holder.name] = value._layout
            return holder
        if not isinstance(value, _headrace.EagerTensor):
            return value
        if value.dtype.is_integer and value.shape.num_elements() < _SMALL:
            return tf.constant(value.numpy(), value.dtype)  # sizes, axes
        return tf.compat.v1.placeholder(value.dtype, value.shape)

    try:
        with graph.as_default():
            traced = function(*mapped(stand_in, args), **mapped(stand_in, kwargs))
    except (TypeError, ValueError, AttributeError, NotImplementedError, RuntimeError):
        return None  # the call itself says what is wrong
    laid_out = _followers(graph, layouts)
    found = Specs(graph, layouts, mesh)

    def specs_of(value):
        known = isinstance(value, _headrace.SymbolicTensor) and value.name in laid_out
        return found.of(value) if known else None

    return [specs_of(t) for t in leaves(traced)]


_SMALL = 1000  # elements: more are data, not the sizes of anything


def _followers(graph, layouts):
    """The names of the tensors that follow from those with layouts; refuse_plain for
    what operations take besides these."""
    found = set(layouts)
    for op in graph.get_operations():
        inputs = op.inputs
        if not any(t.name in found for t in inputs):
            continue
        for i, tensor in enumerate(inputs):
            if tensor.name not in found:
                refuse_plain(op.type, i, tensor)
        found.update(t.name for t in op.outputs)
    return found


def _with_specs(result, specs, mesh, known):
    flat = list(leaves(result))
    if specs is None or len(specs) != len(flat):
        specs = [_whole_specs(v) for v in flat]
    rest = iter(specs)

    def place(value):
        one = next(rest)
        if one is None or not isinstance(value, _headrace.EagerTensor):
            return value
        layout = Layout([*one], mesh)
        return laid(value, layout) if id(value) in known else with_layout(value, layout)

    return mapped(place, result)


def _whole_specs(value):
    """The specs of a whole tensor; None of what is none."""
    if not isinstance(value, _headrace.EagerTensor) or value.shape.rank is None:
        return None
    return whole(value.shape.rank)


# --- where functions are called ---


_CONVERSION = "framework.conversion:convert_to_tensor"
_SHAPES = ("ops.array_ops:shape", "ops.array_ops:shape_n")
_CONSTANTS = ("ops.array_ops:size", "ops.array_ops:rank")


class _Any:
    """What answers for any public function, by its row of api_names.txt."""

    def __contains__(self, row):
        return not tensors.is_inside()

    def __getitem__(self, row):
        return _answers(row)


def _answers(row):
    function = _functions.get(row)
    if function is None:
        loaded = _names.load(row)
        function = _functions[row] = getattr(loaded, "__wrapped__", loaded)

    def answer(*args, **kwargs):
        if not _headrace.is_eager():
            with inside():
                return function(*args, **kwargs)
        if row == _CONVERSION:
            args, kwargs = mapped(_read, (args, kwargs))
            with inside():
                return function(*args, **kwargs)
        if row in _CONSTANTS:
            with inside(), tensors.no_hook():
                return function(*args, **kwargs)
        if row in _SHAPES:  # known without the tensor, but laid out like results
            mesh = mesh_of(leaves((args, kwargs)))
            with inside(), tensors.no_hook():
                return _with_specs(function(*args, **kwargs), None, mesh, ())
        return run(function, args, kwargs)

    return answer


_functions = {}


def _call_operator(public, operands):
    if any(x is None for x in operands) and public in ("math.equal", "math.not_equal"):
        return public == "math.not_equal"
    return _names.public(public)(*operands)


def _item(tensor, key):
    if tensors.is_inside():
        return _headrace.EagerTensor.__getitem__(tensor, key)
    return run(operator.getitem, (tensor, key), {})


def _iterate(tensor):
    if tensors.is_inside():
        return _headrace.EagerTensor.__iter__(tensor)
    return iter(_names.public("unstack")(tensor))


DTensor.__getitem__, DTensor.__iter__ = _item, _iterate
tensors.attach_operators(_call_operator)


def answer_for(kind):
    """Public functions called with objects of that class are answered here."""
    dispatch.call_instead(kind, _Any())


answer_for(DTensor)
