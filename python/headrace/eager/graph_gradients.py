"""tf.gradients: gradients of a graph's tensors, added to the graph."""

from headrace._load import _headrace
from headrace.context import late, stack
from headrace.eager.backprop import UnconnectedGradients, _unconnected
from headrace.framework import conversion, dtypes, execution, nest
from headrace.framework.indexed_slices import IndexedSlices, from_gradient, to_gradient
from headrace.framework.support import signatures
from headrace.ops import array_ops


class AggregationMethod:
    """How gradients that meet are added: of one kind here, whichever is asked for."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def _check_method(aggregation_method):
    methods = (AggregationMethod.ADD_N, AggregationMethod.EXPERIMENTAL_TREE)
    methods += (AggregationMethod.EXPERIMENTAL_ACCUMULATE_N, None)
    if aggregation_method not in methods:
        raise ValueError(
            "Invalid `aggregation_method` specified. Accepted values are "
            f"`AggregationMethod`'s; received {aggregation_method!r}."
        )


def _check_graph():
    execution.only_in_graphs(
        "tf.gradients is not supported when eager execution is enabled. Use "
        "tf.GradientTape instead."
    )


def _gradients(
    ys, xs, grad_ys, name, stop_gradients, unconnected_gradients, place_with_ops, gated
):
    _check_graph()
    graph = stack.current()
    unconnected = _unconnected(unconnected_gradients)
    wanted = nest.flatten(xs) if isinstance(xs, (list, tuple)) else [xs]
    if any(map(_has_parts, [*wanted, *_listed(ys)])):
        options = (name, stop_gradients, unconnected_gradients, place_with_ops, gated)
        return _of_parts(ys, wanted, grad_ys, *options)
    sources = wanted
    targets = [_inside(graph, _tensor(y)) for y in _listed(ys)]
    with graph.name_scope(name or "gradients"):
        grad_ys = [None] * len(targets) if grad_ys is None else _listed(grad_ys)
        if len(grad_ys) != len(targets):
            raise ValueError(
                f"Length mismatch. Passed {len(grad_ys)} grad_ys for {len(targets)} ys"
            )
        given = [_given(g, y) for g, y in zip(grad_ys, targets)]
        found = _headrace.graph_gradients(
            targets,
            [_edge(graph, x) for x in sources],
            given,
            [
                _edge(graph, x)
                for x in _listed([] if stop_gradients is None else stop_gradients)
            ],
            place_with_ops,
            gated,
        )
        found = [from_gradient(g) for g in found]
        if unconnected == UnconnectedGradients.ZERO:
            found = [_or_zeros(g, x) for g, x in zip(found, sources)]
    return found


def _has_parts(x):
    return hasattr(x, "_gradient_from")


def _parts(value):
    """The tensors whose gradients that of a value is made of."""
    if not _has_parts(value):
        return [value]
    if hasattr(value, "_gradient_parts"):
        return value._gradient_parts()
    return value._components()[:1]


def _all_parts(values):
    return [part for value in values for part in _parts(value)]


def _of_parts(ys, wanted, grad_ys, *options):
    """gradients() where some values are composites (ragged tensors, operators)."""
    if grad_ys is not None:
        grad_ys = _all_parts(_listed(grad_ys))
    found = _gradients(_all_parts(_listed(ys)), _all_parts(wanted), grad_ys, *options)
    rest, out = iter(found), []
    for x in wanted:
        own = [next(rest) for _ in _parts(x)]
        out.append(x._gradient_from(own) if _has_parts(x) else own[0])
    return out


def gradients_v1(
    ys,
    xs,
    grad_ys=None,
    name="gradients",
    colocate_gradients_with_ops=False,
    gate_gradients=False,
    aggregation_method=None,
    stop_gradients=None,
    unconnected_gradients=UnconnectedGradients.NONE,
):
    """tf.compat.v1.gradients: tf.gradients, whose operations are placed with those that
    they are the gradients of where `colocate_gradients_with_ops` is true."""
    options = (bool(colocate_gradients_with_ops), bool(gate_gradients))
    _check_method(aggregation_method)
    return _gradients(
        ys, xs, grad_ys, name, stop_gradients, unconnected_gradients, *options
    )


gradients = signatures.twin(
    gradients_v1,
    "gradients",
    """d(sum of ys)/dx for every x in `xs`: tensors, IndexedSlices, or None.

    `grad_ys` are the ys' own gradients (ones where None). Nothing is sought behind
    `stop_gradients`. With `gate_gradients` the gradients that one operation's function
    makes wait for each other. Inside a function's body, gradients of what it captured
    go on in the graphs around it.
    """,
    "ys, xs, grad_ys, name, gate_gradients, aggregation_method, stop_gradients, "
    "unconnected_gradients",
)


def hessians(ys, xs, gate_gradients=False, aggregation_method=None, name="hessians"):
    """For each x of `xs` the matrix of second derivatives of the sum of `ys`."""
    _check_method(aggregation_method)

    _check_graph()
    made = []
    with stack.current().name_scope(name or "hessians"):
        firsts = gradients(ys, xs, None, "gradients", gate_gradients)
        for first, x in zip(firsts, _listed(xs)):
            if first is None:
                raise ValueError("None values not supported.")
            made.append(_second(first, x))
    return made


def _second(first, x):
    """The derivatives of a first derivative's elements, [x's shape, x's shape]."""
    count, flat = x.shape.num_elements(), array_ops.reshape(first, [-1])

    def row(i):
        return gradients(flat[i], x)[0]

    if count is None:  # a turn of a loop each
        places = array_ops.range(array_ops.size(flat))
        rows = late.map_fn(row, places, fn_output_signature=x.dtype)
        sizes = array_ops.shape(x)
        made = array_ops.reshape(rows, array_ops.concat([sizes, sizes], 0))
        made.set_shape(x.shape.concatenate(x.shape))
        return made
    rows = [row(i) for i in range(count)]
    if any(found is None for found in rows):
        raise ValueError("None values not supported.")
    shape = x.shape.as_list()
    return array_ops.reshape(array_ops.stack(rows), shape + shape)


def _listed(values):
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _tensor(y):
    if isinstance(y, IndexedSlices):
        return y.values
    return conversion.convert_to_tensor(y)


def _given(gradient, target):
    """The gradient to begin with at `target`; None stands for ones.

    TypeError where the two are of different kinds, and where a complex target has
    none: ones do not stand for a direction there.
    """
    if gradient is None:
        if target.dtype.is_complex:
            raise TypeError(
                f"Gradients of complex tensors ({target}) must set grad_ys "
                f"(y.dtype = {target.dtype.name})"
            )
        if target.dtype == dtypes.string:
            raise TypeError("Expected string, but got 1 of type 'int'.")
        return None
    if isinstance(gradient, IndexedSlices):
        _check_kind(gradient, target)
        return to_gradient(gradient)
    if not isinstance(gradient, _headrace.Tensor):
        gradient = conversion.convert_to_tensor(gradient, dtype=target.dtype)
    _check_kind(gradient, target)
    if not gradient.shape.is_compatible_with(target.shape):
        raise ValueError(
            f"Gradient of shape {gradient.shape} for a tensor of shape {target.shape}"
        )
    return gradient


def _check_kind(gradient, target):
    of, to = gradient.dtype, target.dtype
    if to.is_floating or to.is_integer:
        fits = of.is_integer or of.is_floating
        kind, wanted = "real or integer-valued tensor", "real or integer"
    elif to.is_complex:
        fits, kind, wanted = of.is_complex, "complex-valued tensor", "real"
    else:
        fits, kind, wanted = of == to, f"{to.name} tensor", to.name
    if fits and to.is_floating and of != to:
        fits, wanted = False, to.name
    if not fits:
        raise TypeError(
            f"Gradient type {of.name} generated for {kind} {target} with type "
            f"{to.name} must be {wanted}"
        )


def _edge(graph, x):
    """What the graph calls a tensor or variable whose gradient is wanted."""
    if isinstance(x, _headrace.VariableBase):
        handle = x.handle
        return handle if _reached(graph, handle) else graph._core.capture(handle)
    if hasattr(x, "_ref"):
        return x._ref()
    x = conversion.convert_to_tensor(x)
    return x if _reached(graph, x) else graph._core.capture(x)


def _reached(graph, x):
    """Whether gradients go to the tensor where it is: in `graph` or around it."""
    if isinstance(x, _headrace.EagerTensor):
        return False
    for around in reversed(stack.entered()):
        if around is None:
            return False
        if _headrace.graph_id(x) == around._core.id:
            return True
        if not around.building_function:
            return False
    return x.graph is graph


def _inside(graph, x):
    """What a function being traced calls a tensor of the graphs around it."""
    if graph.building_function and x.graph is not graph:
        return graph.capture(x)
    return x


def _or_zeros(gradient, x):
    if gradient is not None:
        return gradient
    return array_ops.zeros_like(conversion.convert_to_tensor(x))
