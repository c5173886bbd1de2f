"""Traced functions by name, for C++ and Python code of one process.

`include/headrace/named_functions.h` is the same for C++. Both languages must use one
copy of the library: C++ code that is linked to libheadrace.so and loaded behind
`import headrace` does.
"""

import traceback

from headrace._load import _headrace
from headrace.context import errors
from headrace.context.properties import read_only
from headrace.framework import variables
from headrace.framework.type_spec import TensorSpec
from headrace.function.function_type import P, Parameters
from headrace.function.polymorphic import Function
from headrace.function.restored import RestoredConcreteFunction


class CppConcreteFunction(RestoredConcreteFunction):
    """A trace of a function of C++: the one that C++ has for the same signature."""

    def _pack(self, tensors):
        return _with_tensors(self.output_as_saved, iter(tensors))


def _with_tensors(structure, tensors):
    """A structure with tensors in the place of its TensorSpecs."""
    if isinstance(structure, TensorSpec):
        return next(tensors)
    if isinstance(structure, dict):
        return {k: _with_tensors(v, tensors) for k, v in structure.items()}
    if isinstance(structure, (list, tuple)):
        return type(structure)(_with_tensors(v, tensors) for v in structure)
    return structure


class CppFunction:
    """A traced function whose body is C++, as `find` gives it.

    Calls take what structures of both languages are made of: tensors, arrays,
    variables, None, bools, ints, floats, str, tuples, lists and dicts of these
    (TypeError for all else); values other than tensors belong to the signature, as
    those of a tf.function do. They raise the tf.errors class of the error that C++
    throws, UnknownError for exceptions that are none of Headrace's.
    """

    def __init__(self, native):
        self._native = native

    def __call__(self, *args, **kwargs):
        return self._native(*args, **kwargs)

    def get_concrete_function(self, *args, **kwargs):
        """The trace for arguments, or for TensorSpecs in their place."""
        core, takes, gives = self._native._concrete(*args, **kwargs)
        names = self._native._arg_names
        names += [f"args_{i}" for i in range(len(names), len(takes))]
        parameters = [P(n, P.POSITIONAL_OR_KEYWORD) for n in names[: len(takes)]]
        return CppConcreteFunction(
            core, Parameters.of(parameters), (takes, {}), gives, self.name
        )

    name = read_only("_native._name", "What C++ calls the function: a str.")

    def experimental_get_tracing_count(self):
        """How often the body was run, for calls of both languages: an int."""
        return self._native._trace_count()

    def explain_retraces(self):
        """Why it was traced again, the last 64 times, oldest first: a list of str."""
        return self._native._explain_retraces()

    def __eq__(self, other):
        if not isinstance(other, CppFunction):
            return NotImplemented
        return self._native == other._native

    def __hash__(self):
        return hash(self._native)

    def __repr__(self):
        return f"<CppFunction {self.name!r}>"


def register(name, function=None):
    """Lets C++ and Python code of the process find a tf.function by a name.

    Args:
      name: a str, not empty.
      function: what tf.function returned, or what `find` gave. Without it, returns a
        decorator.

    Returns `function`. The name does not hold it: once it is gone, the name is free.
    Raises AlreadyExistsError where another function that lives has the name, TypeError
    for objects of another kind.
    """
    _check_name(name)
    if function is None:
        return lambda decorated: register(name, decorated)
    if isinstance(function, CppFunction):
        _headrace.register_function(name, function._native)
    elif isinstance(function, Function):
        _headrace.register_function(name, function)
    else:
        raise TypeError(
            f"the function registered as {name!r} must be a tf.function, got "
            f"{type(function).__name__} ({function!r})"
        )
    return function


def find(name):
    """The function that was registered by a name: the tf.function itself, or a
    CppFunction. NotFoundError where there is none."""
    _check_name(name)
    found = _headrace.find_function(name)
    return CppFunction(found) if isinstance(found, _headrace.CppFunctionBase) else found


def unregister(name):
    """Frees a name; False where no function that lives had it."""
    _check_name(name)
    return _headrace.unregister_function(name)


def names():
    """The names of the functions that live, of both languages, sorted: a list of
    str."""
    return _headrace.registered_functions()


def _check_name(name):
    if not isinstance(name, str):
        raise TypeError(f"a function's name is a str, got {type(name).__name__}")


# --- called natively ---


def variable_of(handle, dtype, shape, trainable):
    """The variable that has a handle; where Python has none, one for that of C++."""
    found = variables.of_handle(handle)
    if found is not None:
        return found
    made = variables.ResourceVariable.__new__(variables.ResourceVariable)
    made._constraint = None
    made._synchronization = variables.VariableSynchronization.AUTO
    made._aggregation = variables.VariableAggregation.NONE
    made._shared_name = "Variable"
    made._set_up(handle, dtype, shape, trainable, True)
    if isinstance(handle, _headrace.EagerTensor):
        variables._by_handle[handle._id] = made
    return made


_CODES = (
    ((ValueError, TypeError), errors.INVALID_ARGUMENT),
    (NotImplementedError, errors.UNIMPLEMENTED),
    (MemoryError, errors.RESOURCE_EXHAUSTED),
    ((KeyboardInterrupt, SystemExit), errors.CANCELLED),
)


def described(error):
    """What C++ is told of an exception: (code, text, class, traceback)."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ != "builtins":
        name = f"{kind.__module__}.{name}"
    trace = "".join(traceback.format_exception(error))
    if isinstance(error, errors.OpError):
        return int(error.error_code), str(error.message), name, trace
    code = next((c for kinds, c in _CODES if isinstance(error, kinds)), errors.UNKNOWN)
    return code, f"{kind.__name__}: {error}", name, trace


def concrete_for(function, args):
    """(concrete function, its core, what it takes, what it gives, names of parameters)
    of a tf.function, for arguments of C++ with TensorSpecs for tensors."""
    concrete = function.get_concrete_function(*args)
    takes = concrete.structured_input_signature[0]
    return (
        concrete,
        concrete._core,
        tuple(map(_with_specs, args, takes)),
        concrete.structured_outputs,
        [p.name for p in function._parameters.parameters],
    )


def _with_specs(given, traced):
    """An argument with the TensorSpecs that a trace was made for."""
    if isinstance(traced, TensorSpec):
        return traced
    if isinstance(given, dict):
        return {k: _with_specs(v, traced[k]) for k, v in given.items()}
    if isinstance(given, (list, tuple)):
        return type(given)(map(_with_specs, given, traced))
    return given
