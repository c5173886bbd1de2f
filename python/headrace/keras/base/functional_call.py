"""Calls of layers with KerasTensors: shapes are inferred, nodes recorded."""

from collections import abc

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import late, stack
from headrace.framework.type_spec import flat_tensor_specs, of_flat_tensors
from headrace.graph.func_graph import FuncGraph
from headrace.keras import serialization
from headrace.keras.base import tracking
from headrace.keras.base.call_context import context
from headrace.keras.base.keras_tensor import (
    History,
    KerasTensor,
    history,
    is_composite,
    is_described,
    set_history,
)


_VALUES = (KerasTensor, _headrace.SymbolicTensor)


class Node:
    """One call of a layer: what went in, what came out."""

    def __init__(self, layer, args, kwargs, outputs):
        self.layer, self.args, self.kwargs = layer, args, kwargs
        self.inputs, self.outputs = args[0] if args else None, outputs
        leaves = tf.nest.flatten((args, kwargs))
        self.parents = [x for x in leaves if is_described(x)]
        known = [found[0] for found in map(history, self.parents) if found]
        for above in tracking.unique(known):
            above.outbound_nodes.append(self)
        index = len(layer.inbound_nodes)
        layer.inbound_nodes.append(self)
        for i, out in enumerate(tf.nest.flatten(outputs)):
            is_value = isinstance(out, _VALUES) or is_composite(out)
            if is_value and history(out) is None:
                set_history(out, History(layer, index, i))

    def mapped(self, find):
        """(args, kwargs) with every KerasTensor replaced by find(it)."""

        def value(x):
            return find(x) if is_described(x) else x

        return tf.nest.map_structure(value, (self.args, self.kwargs))


_MOST_AXES = 254  # of tensors


_INPUT = "keras_tensor"  # the name of the scratch graph's inputs


def is_symbolic(args, kwargs):
    """Whether a call is one of a model that is being described: KerasTensors take part
    or, in a plain graph, tensors that its layers made of an Input."""
    return _has_keras_tensors(args, kwargs) or (
        not _headrace.is_eager() and _takes_tensors_of_models(args, kwargs)
    )


def _has_keras_tensors(args, kwargs):
    for value in (*args, *kwargs.values()):
        if isinstance(value, KerasTensor):
            return True
        if isinstance(value, (list, tuple, abc.Mapping, abc.MappingView)):
            if any(isinstance(x, KerasTensor) for x in tf.nest.flatten(value)):
                return True
    return False


def _takes_tensors_of_models(args, kwargs):
    graph = stack.plain_graph()
    if graph is None or context.names or "_keras_histories" not in graph.__dict__:
        return False
    given = tf.nest.flatten((args, kwargs))
    if any(is_composite(x) and history(x) is not None for x in given):
        return True
    given = [
        x for x in given if isinstance(x, _headrace.SymbolicTensor) and x.graph is graph
    ]
    late.describe_operations([x for x in given if history(x) is None])
    return any(history(x) is not None for x in given)


def _placeholder(graph, spec):
    place = graph._core.placeholder
    tensors = (place(_INPUT, s.dtype, s.shape, None) for s in flat_tensor_specs(spec))
    return of_flat_tensors(spec, tensors)


def _stand_in(graph, tensor):
    """A symbolic tensor of a scratch graph in place of a KerasTensor."""
    known = tensor.inferred_value
    if known is None or all(x is None for x in known):
        inner = _placeholder(graph, tensor.type_spec)
    else:  # a shape that has these sizes
        of = _placeholder(graph, tf.TensorSpec(known, tf.bool))
        inner = tf.reshape(tf.shape(of), tensor.shape)
    if tensor.mask_spec is not None:
        inner._keras_mask = _placeholder(graph, tensor.mask_spec)
    return inner


def _described(x):
    """The KerasTensor of a tensor of the scratch graph."""
    if getattr(type(x), "_is_composite_tensor", False):
        return KerasTensor.of_spec(tf.type_spec_from_value(x))
    if not isinstance(x, tf.Tensor):
        return x
    mask = getattr(x, "_keras_mask", None)
    spec = None if mask is None else tf.TensorSpec(mask.shape, mask.dtype)
    made = KerasTensor.of_spec(tf.TensorSpec(x.shape, x.dtype), _name_of(x), spec)
    made.inferred_value = _sizes(x)
    return made


def _name_of(x):
    """The name that a tensor has in the scratch graph, whose inputs have upstream's."""
    if isinstance(x, _headrace.EagerTensor):
        return None
    name, _, index = x.name.rpartition(":")
    if name.startswith(_INPUT):
        name = "Placeholder" + name.removeprefix(_INPUT)
    return f"{name}:{index}"


def _sizes(x):
    """What is known of integers that may be a shape, or one size of it."""
    if x.dtype != tf.int32 or x.shape.rank not in (0, 1):
        return None
    if isinstance(x, _headrace.EagerTensor):
        return None
    if x.shape.rank and not 0 < (x.shape[0] or 0) <= _MOST_AXES:
        return None
    try:
        unknown = _placeholder(x.graph, tf.TensorSpec(None, tf.bool))
        return tf.reshape(unknown, tf.reshape(x, [-1])).shape.as_list()
    except ValueError:  # no shape: numbers below -1, or several of -1
        return None


def _run(layer, args, kwargs, keeps_losses=False):
    """The described outputs of the layer's call in a scratch graph.

    What the layers below add as losses there is kept as described until their next call,
    or dropped.
    """
    graph = FuncGraph("keras_graph")
    with graph.as_default():

        def value(x):
            return _stand_in(graph, x) if isinstance(x, KerasTensor) else x

        inner_args, inner_kwargs = tf.nest.map_structure(value, (args, kwargs))
        outer, context.describes = context.describes, True
        try:
            outputs = layer(*inner_args, **inner_kwargs)
        finally:
            context.describes = outer
        described = tf.nest.map_structure(_described, outputs)
    for below in layer._flatten_layers():
        losses = below._keras.call_losses if keeps_losses else []
        below._keras.call_losses = [_described(x) for x in losses]
        (tracking._losing.add if losses else tracking._losing.discard)(below)
    return described


def _declared(layer, inputs):
    """The outputs of a layer that is not run for KerasTensors, as it tells their shapes."""
    if not serialization.overrides(type(layer), "compute_output_shape"):
        raise NotImplementedError(
            "Please run in eager mode or implement the `compute_output_shape` method on "
            f"your layer ({type(layer).__name__})."
        )
    if not layer.built:
        layer._build_for(inputs)
    shape = layer.compute_output_shape(tf.nest.map_structure(lambda x: x.shape, inputs))
    return KerasTensor(tf.TensorShape(shape), layer.compute_dtype)


def _own(x):
    """x as a tensor that no other call gives."""
    if history(x) is None:
        return x
    if is_composite(x):  # its tensors stay: a run is fed them, or fetches them
        return x._from_components(x._components())
    return tf.identity(x)


def call(layer, args, kwargs):
    """The KerasTensors, or tensors of a plain graph, of layer(*args, **kwargs)."""
    if stack.plain_graph() is not None and not _has_keras_tensors(args, kwargs):
        outputs = tf.nest.map_structure(_own, layer._run_on_values(args, kwargs))
    elif layer._keras.dynamic:
        outputs = _declared(layer, args[0])
    else:
        outputs = _run(layer, args, kwargs, keeps_losses=True)
    Node(layer, args, kwargs, outputs)
    return outputs


def inferred_shape(layer, input_shape):
    """compute_output_shape of a layer that does not say: by a scratch call."""
    outputs = run_shapes(layer, input_shape, layer.dtype)
    return tf.nest.map_structure(lambda t: t.shape, outputs)


def run_shapes(layer, shape, dtype):
    """The described outputs for inputs of a shape, of a list of shapes or of a dict."""
    if isinstance(shape, dict):
        inputs = {k: KerasTensor(s, dtype) for k, s in shape.items()}
    elif isinstance(shape, list) and shape and not isinstance(shape[0], int | None):
        inputs = [KerasTensor(s, dtype) for s in shape]
    else:
        inputs = KerasTensor(shape, dtype)
    return _run(layer, (inputs,), {})


def get_source_inputs(tensor, layer=None, node_index=None):
    """A list of the inputs that a KerasTensor is computed of, each once.

    `layer` and `node_index` name another call than that which gave the tensor.
    """
    if layer is None or node_index:
        layer, node_index, _ = history(tensor)
    found, seen, waiting = [], set(), [layer.inbound_nodes[node_index or 0]]
    while waiting:
        node = waiting.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        if not node.parents:
            found += tf.nest.flatten(node.outputs)
        for parent in node.parents:
            above, index, _ = history(parent)
            waiting.append(above.inbound_nodes[index])
    return tracking.unique(found)
