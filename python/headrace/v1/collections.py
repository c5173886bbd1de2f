"""tf.compat.v1's collections of variables and what initializes them."""

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.framework import conversion, dtypes, scopes, slices
from headrace.framework.indexed_slices import IndexedSlices
from headrace.framework.name_scopes import graph_scope
from headrace.graph.graph_keys import GraphKeys
from headrace.graph.ref_variables import RefVariable
from headrace.ops import array_ops, elementwise_ops


def _found(key, scope):
    return stack.default_graph().get_collection(key, scope)


def global_variables(scope=None):
    """The variables of the graph that are saved; `scope` filters names."""
    return _found(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope=None):
    """The variables of the graph that are not saved."""
    return _found(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope=None):
    """The variables of the graph that layers made."""
    return _found(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope=None):
    """The variables of the graph that optimizers change."""
    return _found(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope=None):
    """The variables of the graph of which averages are kept."""
    return _found(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def variables_initializer(var_list, name="init"):
    """An operation that gives every variable its first value."""
    if var_list and not _headrace.is_eager():
        return scopes.group([v.initializer for v in var_list], name)
    return _nothing(name)


def _nothing(name):
    if _headrace.is_eager():
        return None
    return scopes.group([], name)


def global_variables_initializer():
    """An operation that gives all global variables their first values."""
    return variables_initializer(global_variables())


def local_variables_initializer():
    """An operation that gives all local variables their first values."""
    return variables_initializer(local_variables())


def tables_initializer(name="init_all_tables"):
    """An operation that fills all tables of the graph; eagerly None, for they are."""
    if _headrace.is_eager():
        return None
    return scopes.group(_found(GraphKeys.TABLE_INITIALIZERS, None), name)


def is_variable_initialized(variable):
    """Whether the variable has a value."""
    if hasattr(variable, "is_initialized"):
        return variable.is_initialized()
    return raw.IsVariableInitialized(_reference(variable))


def _rank_of_value(variable):
    """The rank, by a run that asks for the value: else it would be known without."""
    value = conversion.convert_to_tensor(variable)
    first = array_ops.reshape(value, [-1])[:1]
    none = raw.Minimum(x=array_ops.size(raw.Where(raw.Equal(x=first, y=first))), y=0)
    return raw.AddV2(x=array_ops.rank(value), y=none)


def assert_variables_initialized(var_list=None):
    """What fails with FailedPreconditionError unless all variables, the global and the
    local ones by default, have values: a tensor of their ranks, None if there is none."""
    if var_list is None:
        var_list = global_variables() + local_variables()
    if not var_list:
        return None
    ranks = [_rank_of_value(variable) for variable in var_list]
    return ranks[0] if len(ranks) == 1 else array_ops.stack(ranks)


def report_uninitialized_variables(
    var_list=None, name="report_uninitialized_variables"
):
    """The names of the variables that have no value yet."""
    if var_list is None:
        var_list = global_variables() + local_variables()
    with graph_scope(name, "report_uninitialized_variables"):
        if not var_list:
            return conversion.constant([], dtypes.string)
        known = array_ops.stack([is_variable_initialized(v) for v in var_list])
        names = conversion.constant([v.op.name for v in var_list], dtypes.string)
        return array_ops.boolean_mask(names, elementwise_ops.logical_not(known))


def _reference(ref):
    return getattr(ref, "_reference", ref)


def assign(ref, value, validate_shape=None, use_locking=None, name=None):
    """Replaces a variable's value; the variable after it."""
    if not _is_reference(ref):
        return ref.assign(value, name=name)
    return raw.Assign(
        _reference(ref),
        value,
        validate_shape=validate_shape is not False,
        use_locking=use_locking is not False,
        name=name,
    )


def _is_reference(ref):
    """Whether it is changed by an op; parts of a variable have methods, too."""
    return isinstance(ref, RefVariable) or not hasattr(ref, "assign")


def _is_resource(ref):
    """Whether it is a variable by handle, or what its assignments return."""
    return isinstance(ref, _headrace.VariableBase) or hasattr(ref, "_waited_for")


def assign_add(ref, value, use_locking=None, name=None):
    """Adds to a variable's value."""
    if not _is_reference(ref):
        return ref.assign_add(value)  # without the name, as upstream
    return raw.AssignAdd(
        _reference(ref), value, use_locking=bool(use_locking), name=name
    )


def assign_sub(ref, value, use_locking=None, name=None):
    """Subtracts from a variable's value."""
    if not _is_reference(ref):
        return ref.assign_sub(value)
    return raw.AssignSub(
        _reference(ref), value, use_locking=bool(use_locking), name=name
    )


_SCATTERS = {
    "add": "Adds",
    "sub": "Subtracts",
    "mul": "Multiplies by",
    "div": "Divides by",
    "min": "Takes the smaller of the old rows and",
    "max": "Takes the larger of the old rows and",
    "update": "Puts",
}


def _scatter(kind, locks=False):
    def scatter(ref, indices, updates, use_locking=locks, name=None):
        if _is_resource(ref):
            method = getattr(ref, "scatter_" + kind)
            return method(IndexedSlices(updates, indices), name=name)
        return _headrace.raw_op("Scatter" + kind.capitalize())(
            ref=_reference(ref),
            indices=indices,
            updates=updates,
            use_locking=use_locking,
            name=name,
        )

    scatter.__name__ = "scatter_" + kind
    scatter.__doc__ = f"""{_SCATTERS[kind]} `updates` in the rows of a variable.

    `ref` is [rows, ...], `indices` an integer tensor of any shape, `updates`
    [*indices.shape, ...] or a scalar, of the variable's dtype. A row that comes twice
    is changed twice. `use_locking` says nothing to resource variables. Indices out of
    range raise InvalidArgumentError. Returns the variable after the change.
    """
    return scatter


scatter_add = _scatter("add")
scatter_sub = _scatter("sub")
scatter_mul = _scatter("mul")
scatter_div = _scatter("div")
scatter_min = _scatter("min")
scatter_max = _scatter("max")
scatter_update = _scatter("update", locks=True)


def _scatter_nd(kind, locks=False):
    def scatter(ref, indices, updates, use_locking=locks, name=None):
        if _is_resource(ref):
            return getattr(ref, "scatter_nd_" + kind)(indices, updates, name=name)
        op = _headrace.raw_op("ScatterNd" + kind.capitalize())
        return op(
            ref=_reference(ref),
            indices=indices,
            updates=updates,
            use_locking=use_locking,
            name=name,
        )

    scatter.__name__ = "scatter_nd_" + kind
    scatter.__doc__ = f"""{_SCATTERS[kind]} `updates` at places of a variable.

    `indices` is [..., k]: each row names a place in the first k dimensions of `ref`;
    `updates` is [*indices.shape[:-1], *ref.shape[k:]]. Indices out of range raise
    InvalidArgumentError. Returns the variable after the change.
    """
    return scatter


scatter_nd_add = _scatter_nd("add")
scatter_nd_sub = _scatter_nd("sub")
scatter_nd_update = _scatter_nd("update", locks=True)


def batch_scatter_update(ref, indices, updates, use_locking=True, name=None):
    """Puts slices in the place of rows, in each part of a batch its own."""
    full = slices.batch_indices(conversion.convert_to_tensor(indices))
    return scatter_nd_update(ref, full, updates, use_locking, name)


def count_up_to(ref, limit, name=None):
    """The value before it is raised by one; an error once it is `limit`."""
    if _is_resource(ref):
        return raw.ResourceCountUpTo(ref.handle, limit=limit, T=ref.dtype, name=name)
    return raw.CountUpTo(_reference(ref), limit=limit, name=name)
