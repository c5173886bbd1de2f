"""tf.import_graph_def."""

from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import tensor as tensor_module
from headrace.framework.conversion import convert_to_tensor


def _serialized(graph_def):
    if not hasattr(graph_def, "SerializeToString"):
        raise TypeError(
            "Argument `graph_def` must be a GraphDef proto. Received type "
            f"{type(graph_def).__name__}."
        )
    return graph_def.SerializeToString()


def _input_name(key):
    """Keys without an index name the first output."""
    if isinstance(key, bytes):
        key = key.decode()
    if not isinstance(key, str):
        raise TypeError(
            "Argument `input_map` must be a dictionary mapping strings to Tensor "
            f"objects. Received key of type {type(key).__name__}."
        )
    return key if key.startswith("^") or ":" in key else key + ":0"


def _checked_elements(return_elements):
    elements = tuple(return_elements or ())
    if not all(isinstance(e, (str, bytes)) for e in elements):
        raise TypeError(
            "Argument `return_elements` must be a list of strings. "
            f"Received {return_elements!r}"
        )
    return [e.decode() if isinstance(e, bytes) else e for e in elements]


def _prefix(graph, name):
    """Where the nodes go, and whether their own names may be changed."""
    if name is None:
        name = "import"
    if not name:
        return graph._core.scope, True
    if name.endswith("/"):
        return name, False
    return graph._core.unique_scope(name), False


def import_graph_def(
    graph_def,
    input_map=None,
    return_elements=None,
    name=None,
    op_dict=None,
    producer_op_list=None,
):
    """Adds the nodes of a GraphDef to the current graph.

    Attributes that this library does not know are left out in any case, which is
    all that `producer_op_list` asks for.
    """
    bytes_ = _serialized(graph_def)
    graph = stack.default_graph()
    elements = _checked_elements(return_elements)
    if input_map is not None and not isinstance(input_map, dict):
        raise TypeError(
            "Argument `input_map` must be a dictionary mapping strings to Tensor "
            f"objects. Received {input_map!r}"
        )
    inputs = {}
    for key, value in (input_map or {}).items():
        if not isinstance(value, tensor_module.SymbolicTensor):
            if name == "":
                raise ValueError(
                    "tf.import_graph_def() requires a non-empty `name` if `input_map` "
                    "contains non-Tensor values. Try calling tf.convert_to_tensor() on "
                    "`input_map` values before calling tf.import_graph_def()."
                )
            value = convert_to_tensor(value)
        inputs[_input_name(key)] = value
    prefix, uniquify = _prefix(graph, name)
    returned, unused = _headrace.import_graph(
        graph._core, bytes_, prefix, uniquify, inputs, elements
    )
    if unused:
        missing = [n for n in map(_input_name, input_map) if n in unused]
        raise ValueError(
            "Attempted to map inputs that were not found in graph_def: "
            f"[{', '.join(missing)}]"
        )
    if return_elements is None:
        return None
    return [
        r if isinstance(r, tensor_module.SymbolicTensor) else graph._operation(r)
        for r in returned
    ]
