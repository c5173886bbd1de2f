"""tf.compat.v1.variable_scope and get_variable: variables shared by name."""

import enum
import functools
import inspect
import threading

from headrace._load import _headrace
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.eager import custom_gradient
from headrace.framework import conversion, dtypes, tensor_shape
from headrace.framework import variables as framework_variables
from headrace.framework.name_scopes import name_scope
from headrace.framework.support import signatures
from headrace.graph.graph_variables import GraphVariable
from headrace.graph.ref_variables import RefVariable
from headrace.ops.random import initializers_v1
from headrace.v1 import collections, partitioned_variables


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _ReuseMode.AUTO_REUSE
_resource_by_default = [True]


def enable_resource_variables():
    """Variables are resources from now on, unless they ask otherwise."""
    _resource_by_default[0] = True


def disable_resource_variables():
    """Variables are references from now on, unless they ask otherwise."""
    _resource_by_default[0] = False


def resource_variables_enabled():
    """Whether tf.compat.v1.Variable makes resource variables unless told."""
    return _resource_by_default[0]


class _Called(threading.local):
    def __init__(self):
        self.templates = []


_called = _Called()


def templates_called():
    """The templates whose functions run in this thread, the innermost last."""
    return _called.templates


def _store():
    """The variables that get_variable made, by name: of the current graph, or eagerly
    of the template that is called; there None outside of templates."""
    if not _headrace.is_eager():
        return stack.default_graph()._named_variables
    return _called.templates[-1]._eager_variables if _called.templates else None


# What a scope says of the variables made under it, and scopes inside take over.
_INHERITED = ("initializer", "regularizer", "caching_device", "partitioner")
_INHERITED += ("custom_getter", "dtype", "use_resource", "constraint")


class VariableScope:
    """A prefix of names with defaults for the variables made under it."""

    @signatures.having(
        "self, reuse, name='', initializer=None, regularizer=None, "
        "caching_device=None, partitioner=None, custom_getter=None, name_scope='', "
        "dtype=float32, use_resource=None, constraint=None",
        float32=dtypes.float32,
    )
    def __init__(self, reuse, name, name_scope, **given):
        # Eager variables are known to templates alone: elsewhere each call makes one.
        self._reuse = AUTO_REUSE if _headrace.is_eager() else reuse
        self._name, self._name_scope = name, name_scope
        for attribute in _INHERITED:
            setattr(self, attribute, given[attribute])

    name = read_only(
        "_name", 'The full name, without a slash at its end: "" for the root.'
    )
    original_name_scope = read_only(
        "_name_scope",
        "The name scope that was in force when the scope was first entered.",
    )
    reuse = read_only(
        "_reuse",
        "Whether get_variable finds variables: True, False, None or tf.AUTO_REUSE.",
    )

    def reuse_variables(self):
        """Makes get_variable find variables rather than make them."""
        self._reuse = True

    def set_initializer(self, initializer):
        """Sets the initializer of variables that are made here without one."""
        self.initializer = initializer

    def set_dtype(self, dtype):
        """Sets the dtype of variables that are made here without one."""
        self.dtype = dtype

    def set_regularizer(self, regularizer):
        """Sets the regularizer of variables that are made here without one."""
        self.regularizer = regularizer

    def set_caching_device(self, caching_device):
        """Sets the caching device of variables that are made here without one."""
        self.caching_device = caching_device

    def set_partitioner(self, partitioner):
        """Sets the function that cuts variables into parts, or None for whole ones."""
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter):
        """Sets a function that is called in place of get_variable, with it as an
        argument.
        """
        self.custom_getter = custom_getter

    def set_use_resource(self, use_resource):
        """Sets whether variables made here are resource variables: True, False, or
        None.
        """
        self.use_resource = use_resource

    def get_collection(self, name):
        """A list of what a collection of the default graph holds under this scope's
        name.
        """
        prefix = self._name + "/" if self._name else ""
        return stack.default_graph().get_collection(name, prefix)

    def global_variables(self):
        """A list of the global variables under this scope."""
        return self.get_collection(collections.GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self):
        """A list of the local variables under this scope."""
        return self.get_collection(collections.GraphKeys.LOCAL_VARIABLES)

    def trainable_variables(self):
        """A list of the trainable variables under this scope."""
        return self.get_collection(collections.GraphKeys.TRAINABLE_VARIABLES)

    @property
    def _names_used(self):
        """How often scopes were opened by name: shared by the graph's scopes."""
        return stack.default_graph()._scope_names_used

    def _copy(self, custom_getter=None, constraint=None, **changes):
        """A scope that takes over everything but constraints, as upstream."""
        copy = VariableScope.__new__(VariableScope)
        copy.__dict__.update(self.__dict__)
        copy.constraint = constraint
        if custom_getter is not None:
            copy.custom_getter = _getter_within(custom_getter, self.custom_getter)
        for key, value in changes.items():
            if value is not None:
                setattr(copy, key, value)
        return copy


def _getter_within(inner, outer):
    """A custom getter whose `getter` is the one of the scope around it, where that has
    one."""
    if outer is None:
        return inner

    def composed(getter, *args, **kwargs):
        return inner(functools.partial(outer, getter), *args, **kwargs)

    return composed


def get_variable_scope():
    """The variable scope in force."""
    graph = stack.default_graph()
    if graph._variable_scope is None:
        graph._variable_scope = VariableScope(False)
    return graph._variable_scope


class variable_scope:  # noqa: N801  (upstream's name)
    """A context in which get_variable's names start with a prefix."""

    @signatures.keeping(
        "name_or_scope, default_name=None, values=None, initializer=None, "
        "regularizer=None, caching_device=None, partitioner=None, custom_getter=None, "
        "reuse=None, dtype=None, use_resource=None, constraint=None, "
        "auxiliary_name_scope=True"
    )
    def __init__(self):
        if self._default_name is None and self._name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if self._reuse is False:
            self._reuse = None
        if not any(self._reuse is known for known in (None, True, AUTO_REUSE)):
            raise ValueError("The reuse parameter must be True or False or None.")
        self._changes = {option: getattr(self, f"_{option}") for option in _INHERITED}
        self._entered = []

    def __enter__(self):
        graph = stack.default_graph()
        outer = get_variable_scope()
        scope, names = self._scope(graph, outer)
        context, counts = None, None
        if isinstance(self._name_or_scope, VariableScope):
            counts = dict(outer._names_used)
        if names is not None:
            eager = _headrace.is_eager()
            context = name_scope(names) if eager else graph.name_scope(names)
            entered = context.__enter__()
            if isinstance(self._name_or_scope, (str, type(None))):
                scope._name_scope = entered
        self._entered.append((graph, outer, context, scope, counts))
        graph._variable_scope = scope
        return scope

    def _scope(self, graph, outer):
        """The new scope and the name of its name scope, or None for none."""
        target, changes = self._name_or_scope, self._changes
        if isinstance(target, VariableScope):
            scope = target._copy(**changes)
            short = target._name.split("/")[-1]
            names = short or target._name_scope
            scope._reuse = self._reuse or target._reuse
        elif target is None or isinstance(target, str):
            if target is None:
                target = self._unused(outer, self._default_name)
                if self._reuse:
                    raise ValueError(
                        "reuse=True cannot be used without a name_or_scope"
                    )
            full = f"{outer._name}/{target}" if outer._name else target
            scope = outer._copy(_name=full, **changes)
            if not target:
                scope._name = outer._name
            scope._reuse = self._reuse or outer._reuse
            names = (
                self._default_name if self._name_or_scope is None else target or None
            )
            outer._names_used[full] = outer._names_used.get(full, 0) + 1
        else:
            raise TypeError(
                "VariableScope: name_or_scope must be a string or VariableScope."
            )
        if _headrace.is_eager():
            scope._reuse = AUTO_REUSE
        return scope, names if self._auxiliary_name_scope else None

    @staticmethod
    def _unused(outer, base):
        """`base`, or base_1, ...: not the name of a scope opened here before."""
        prefix = f"{outer._name}/" if outer._name else ""
        used = outer._names_used
        if not used.get(prefix + base):
            return base
        number = 1
        while used.get(f"{prefix}{base}_{number}"):
            number += 1
        return f"{base}_{number}"

    def __exit__(self, *error):
        graph, outer, context, scope, counts = self._entered.pop()
        graph._variable_scope = outer
        self._forget_names(outer._names_used, scope.name, counts)
        if context is not None:
            context.__exit__(*error)
        return False

    @staticmethod
    def _forget_names(used, name, counts):
        """Scopes inside one that is opened anew are named as the first time, so that it
        can be reused; one entered again as an object leaves all counts as they were."""
        if counts is not None:
            used.clear()
            used.update(counts)
            return
        for key in used:
            if key.startswith(f"{name}/"):
                used[key] = 0


def default_initializer(dtype):
    """What variables of a dtype begin with where nobody says it; ValueError where there
    is none."""
    if dtype.is_floating or dtype.is_complex:
        return initializers_v1.GlorotUniform(dtype=dtype)
    if dtype.is_integer or dtype.is_bool or dtype == dtypes.string:
        return initializers_v1.Zeros(dtype=dtype)
    raise ValueError(
        f"An initializer for Variable of type `{dtype.base_dtype}` is required."
    )


def _found(variable, name, shape, dtype):
    """A variable that is there, if it is what was asked for."""
    if shape is not None and not variable.shape.is_compatible_with(shape):
        raise ValueError(
            f"Trying to share variable {name}, but specified shape "
            f"{tensor_shape.as_shape(shape)} and found shape {variable.shape}."
        )
    have = variable.dtype.base_dtype
    if dtype is not None and dtypes.as_dtype(dtype).base_dtype != have:
        raise ValueError(
            f"Trying to share variable {name}, but specified dtype "
            f"{dtypes.as_dtype(dtype).name} and found dtype {have.name}."
        )
    return variable


def _initial_value(name, shape, dtype, initializer):
    """(a tensor or function for tf.Variable, dtype)."""
    if initializer is None:
        if shape is None:
            raise ValueError(
                f"Variable {name} did not get an initializer, so its `shape` argument "
                "must be specified."
            )
        initializer = default_initializer(dtype)
    if not callable(initializer):
        return _constant_initializer(shape, dtype, initializer)
    if shape is None and not _takes_something(initializer):
        return initializer, None
    shape = tensor_shape.as_shape(shape)
    if not shape.is_fully_defined():
        raise ValueError(
            "The initializer passed is not valid. It should be a callable with no "
            "arguments and the shape should not be provided or an instance of "
            "`tf.keras.initializers.*' and `shape` should be fully defined."
        )
    if isinstance(initializer, type):
        initializer = initializer()
    sizes = shape.as_list()
    return lambda: initializer(sizes, dtype=dtype), dtype


def _takes_something(function):
    """Whether it cannot be called without arguments."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return True
    except ValueError:  # of C
        return False
    return False


def _constant_initializer(shape, dtype, value):
    if shape is not None:
        raise ValueError("If initializer is a constant, do not specify shape.")
    own = getattr(value, "dtype", None)
    if own is None:
        # Data takes no node to know its dtype.
        mixed = isinstance(value, (list, tuple)) and _headrace.holds_tensors(value)
        known = conversion.convert_to_tensor if mixed else conversion.as_data
        own = known(value).dtype
    own = dtypes.as_dtype(own).base_dtype
    return value, own


def _having(text):
    """Gives a function of **kwargs the parameters in a text, the last ones of which
    say how copies of variables are brought together."""
    return signatures.having(
        text,
        float32=dtypes.float32,
        AUTO=framework_variables.VariableSynchronization.AUTO,
        NONE=framework_variables.VariableAggregation.NONE,
    )


@_having(
    "name, shape=None, dtype=None, initializer=None, regularizer=None, trainable=None, "
    "collections=None, caching_device=None, partitioner=None, validate_shape=True, "
    "use_resource=None, custom_getter=None, constraint=None, synchronization=AUTO, "
    "aggregation=NONE"
)
def get_variable(name, **given):
    """The variable of that name in the scope in force: found, or made."""
    scope = get_variable_scope()
    getter = given.pop("custom_getter") or scope.custom_getter
    if getter is not None and not callable(getter):
        raise ValueError(f"Passed a custom_getter which is not callable: {getter}")
    dtype, initializer = given["dtype"], given["initializer"]
    if dtype is not None and initializer is not None and not callable(initializer):
        _check_constant(initializer, dtypes.as_dtype(dtype))
    for option in _INHERITED:
        if option != "custom_getter" and given[option] is None:
            given[option] = getattr(scope, option)
    given["dtype"] = dtypes.as_dtype(given["dtype"])
    given["trainable"] = framework_variables.trains(
        given["trainable"], given["synchronization"]
    )
    given.update(name=f"{scope.name}/{name}" if scope.name else name)
    given.update(reuse=scope.reuse)
    if getter is None:
        return _get(**given)
    with _outside_of_name_scopes():
        return getter(_get, **given)


def _check_constant(value, dtype):
    own = _constant_initializer(None, None, value)[1]
    if own != dtype:
        raise ValueError(
            f"Initializer type '{own!s}' and explicit dtype '{dtype!s}' don't match."
        )


@_having(
    "name, shape=None, dtype=float32, initializer=None, regularizer=None, reuse=None, "
    "trainable=None, collections=None, caching_device=None, partitioner=None, "
    "validate_shape=True, use_resource=None, constraint=None, synchronization=AUTO, "
    "aggregation=NONE"
)
def _get(
    name,
    shape,
    dtype,
    initializer,
    regularizer,
    reuse,
    partitioner,
    caching_device,  # values are read where they are
    **arguments,  # for variable_v1
):
    """What custom getters are given as `getter`: no scope adds to its arguments."""
    dtype = dtypes.as_dtype(dtype)
    store = _store()
    found = None if store is None else store.get(name)
    if found is not None:
        if not reuse:
            kind = "Partitioned variable with name" if _in_parts(found) else "Variable"
            raise ValueError(
                f"{kind} {name} already exists"
                f"{'' if _in_parts(found) else ', disallowed'}. Did you mean to set "
                "reuse=True or reuse=tf.AUTO_REUSE in VarScope?"
            )
        return _found(found, name, shape, dtype)
    if reuse is True and store is not None:
        raise ValueError(
            f"Variable {name} does not exist, or was not created with "
            "tf.get_variable(). Did you mean to set reuse=tf.AUTO_REUSE in VarScope?"
        )
    if partitioner is not None and not _is_scalar(shape):
        made = _make_parts(name, shape, dtype, initializer, partitioner, arguments)
    else:
        value, value_dtype = _initial_value(name, shape, dtype, initializer)
        made = _make(initial_value=value, name=name, dtype=value_dtype, **arguments)
    if store is not None:
        store[name] = made
    if _called.templates:
        _called.templates[-1]._made(name, made)
    _regularize(made, regularizer)
    return made


def _is_scalar(shape):
    return shape is not None and tensor_shape.as_shape(shape).rank == 0


def _in_parts(variable):
    return hasattr(variable, "_get_variable_list")


def _make_parts(name, shape, dtype, initializer, partitioner, arguments):
    partitioned_variables.refuse_eager()
    if initializer is None:
        initializer = default_initializer(dtype)

    def make_part(part_name, value, part_dtype):
        return _make(initial_value=value, name=part_name, dtype=part_dtype, **arguments)

    return partitioned_variables.make(
        name, shape, dtype, initializer, partitioner, make_part
    )


def _make(name, **kwargs):
    """A variable of exactly that name, whatever name scope is in force."""
    if not _headrace.is_eager() and stack.in_branch_of_plain_graph():
        with stack.init_scope():
            return _make(name, **kwargs)
    with _outside_of_name_scopes():
        return variable_v1(name=name, **kwargs)


def _outside_of_name_scopes():
    return name_scope("") if _headrace.is_eager() else stack.current().name_scope("")


def _regularize(variable, regularizer):
    if regularizer is None:
        return
    if _in_parts(variable):
        for part in variable:
            _regularize(part, regularizer)
        return
    base = variable._shared_name
    with stack.default_graph().name_scope(f"{base}/Regularizer/"):
        loss = regularizer(variable)
    if loss is not None:
        key = collections.GraphKeys.REGULARIZATION_LOSSES
        stack.default_graph().add_to_collection(key, loss)


def finding_variables():
    """A context in which get_variable finds what was made before in the scope in force:
    replicas of a strategy but for the first."""
    return variable_scope(get_variable_scope(), reuse=True, auxiliary_name_scope=False)


@_having(
    "initial_value=None, trainable=None, collections=None, validate_shape=True, "
    "caching_device=None, name=None, variable_def=None, dtype=None, "
    "expected_shape=None, import_scope=None, constraint=None, use_resource=None, "
    "synchronization=AUTO, aggregation=NONE, shape=None, "
    "experimental_enable_variable_lifting=None"
)
def variable_v1(**given):
    """tf.compat.v1.Variable. A function makes its variables outside of its graph
    whatever `experimental_enable_variable_lifting` is; creators get to see it."""
    use_resource, lifting = (
        given[name] for name in ("use_resource", "experimental_enable_variable_lifting")
    )
    if use_resource is None:
        use_resource = get_variable_scope().use_resource
    if use_resource is None:
        use_resource = _resource_by_default[0]
    graph = stack.current()
    if graph is not None and stack.in_branch_of_plain_graph():
        with stack.init_scope():
            return variable_v1(**{**given, "use_resource": use_resource})
    if graph is None or graph.building_function:
        for other in ("use_resource", "expected_shape", "import_scope", "collections"):
            del given[other]
        if lifting is None:
            del given["experimental_enable_variable_lifting"]
        return framework_variables.Variable(**given)
    given["use_resource"] = use_resource
    return framework_variables.by_creators(_of_plain_graph, given)


def _of_plain_graph(next_creator=None, use_resource=False, **given):
    """What variable_v1 makes where creators do nothing else."""
    for other in ("expected_shape", "experimental_enable_variable_lifting"):
        given.pop(other, None)
    given.pop("import_scope", None)
    with stack.current()._shown_to_devices_around():
        return (GraphVariable if use_resource else RefVariable)(**given)


@_having(
    "name, shape=None, dtype=None, initializer=None, regularizer=None, "
    "trainable=False, collections=None, caching_device=None, partitioner=None, "
    "validate_shape=True, use_resource=None, custom_getter=None, constraint=None, "
    "synchronization=AUTO, aggregation=NONE"
)
def get_local_variable(name, trainable, **kwargs):
    """get_variable for variables that are not saved and not trained."""
    kwargs["trainable"] = False  # whatever is asked for, as upstream
    keys = kwargs.get("collections") or []
    local = collections.GraphKeys.LOCAL_VARIABLES
    kwargs["collections"] = [*keys, local]
    return get_variable(name, **kwargs)


class variable_op_scope(variable_scope):  # noqa: N801
    """The old order of variable_scope's arguments."""

    @signatures.having(
        "self, values, name_or_scope, default_name=None, initializer=None, "
        "regularizer=None, caching_device=None, partitioner=None, custom_getter=None, "
        "reuse=None, dtype=None, use_resource=None, constraint=None"
    )
    def __init__(self, values, name_or_scope, default_name, **given):
        super().__init__(name_or_scope, default_name, values, **given)


def _reusing():
    """Makes contexts of the scope of here in which variables are shared."""
    here = get_variable_scope()
    return lambda: variable_scope(here, reuse=AUTO_REUSE, auxiliary_name_scope=False)


custom_gradient.register_scopes(_reusing)
