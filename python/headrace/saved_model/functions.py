"""Functions of loaded models."""

import inspect

from headrace._load import _headrace
from headrace.elements import structured
from headrace.framework import nest
from headrace.function import trace_types
from headrace.function.function_type import FreelyNamed, P, Parameters
from headrace.function.polymorphic import Function, checked_options


def parameters_of(spec, inputs):
    """The Parameters that a FunctionSpec describes; where it describes none those that
    `inputs`, (args, kwargs), were given to."""
    full = None if spec is None else structured.decoded(spec[0])
    if full is None:
        args, kwargs = inputs
        found = [P(f"arg_{i}", P.POSITIONAL_ONLY) for i in range(len(args))]
        found += [FreelyNamed(name, P.KEYWORD_ONLY) for name in kwargs]
        return Parameters.of(found)
    names = list(full.args)
    if spec[1] and names:  # older files list `self`
        names = names[1:]
    defaults = list(full.defaults or ())
    first_default = len(names) - len(defaults)
    found = []
    for i, name in enumerate(names):
        default = defaults[i - first_default] if i >= first_default else P.empty
        found.append(P(name, P.POSITIONAL_OR_KEYWORD, default=default))
    if full.varargs:
        found.append(P(full.varargs, P.VAR_POSITIONAL))
    given = full.kwonlydefaults or {}
    for name in full.kwonlyargs:
        default = given.get(name, P.empty)
        found.append(FreelyNamed(name, P.KEYWORD_ONLY, default=default))
    if full.varkw:
        found.append(P(full.varkw, P.VAR_KEYWORD))
    return Parameters.of(found)


def _body(parameters):
    """What stands for the Python function, which was not saved."""

    def restored_function_body(*args, **kwargs):
        raise NotImplementedError("the Python code of a loaded function is not there")

    restored_function_body.__signature__ = inspect.Signature(parameters.parameters)
    return restored_function_body


class RestoredFunction(Function):
    """A tf.function of a SavedModel: the concrete functions that it was saved with, of
    which calls choose by their arguments. No others are made.
    """

    def __init__(self, concrete_functions, spec, parameters):
        signature = structured.decoded(spec[2])
        options = checked_options(
            input_signature=signature,
            autograph=False,
            jit_compile={1: True}.get(spec[3]),
        )
        super().__init__(_body(parameters), options)
        self.concrete_functions = concrete_functions

    def of_tensors(self, leaves):
        """What its only concrete function gives for tensors: tensors, in order."""
        return self.concrete_functions[0].of_tensors(leaves)

    def _list_all_concrete_functions(self):
        return list(self.concrete_functions)

    _list_all_concrete_functions_for_serialization = _list_all_concrete_functions

    @property
    def variable_captures(self):
        return tuple(v for c in self.concrete_functions for v in c.variables)

    def pretty_printed_concrete_signatures(self, verbose=True):
        shown = [c.pretty_printed_signature(verbose) for c in self.concrete_functions]
        return "\n\n".join(shown)

    def _resolve(self, slots, leaves):
        if self._signature_types is not None:
            return self._resolve_constrained(slots)
        concrete, converted = self._matching(slots)
        if converted is not None:
            return self._answer(concrete, converted)
        # The native key lists tensors as the parameters come.
        kept = concrete._in_slots
        return self._answer(
            concrete, leaves if kept else self._cast(concrete, slots), kept
        )

    def _answer(self, concrete, leaves, kept=False):
        results = concrete._results if concrete._native else None
        return concrete, concrete._core, results, None if kept else leaves

    def _only(self, types, leaves=None):
        if not self.concrete_functions:
            raise ValueError("Found zero restored functions for caller function.")
        if len(self.concrete_functions) == 1 or leaves is None:
            return self.concrete_functions[0]
        shapes = [(x.dtype, x.shape) for x in leaves]
        for concrete in self.concrete_functions:
            specs = concrete.flat_specs()
            if len(specs) == len(shapes) and all(
                s.dtype == d and s.shape.is_compatible_with(shape)
                for s, (d, shape) in zip(specs, shapes)
            ):
                return concrete
        return self.concrete_functions[0]

    def _cast(self, concrete, slots):
        out = []
        trace_types.cast(self._parameters.as_called(slots), concrete.types, out)
        return out

    def _matching(self, slots):
        """(concrete function, None), or (concrete function, its leaves) where arguments
        had to be converted."""
        if not self.concrete_functions:
            raise ValueError("Found zero restored functions for caller function.")
        inputs = self._parameters.as_called(slots)
        given = trace_types.type_of(inputs, trace_types.Aliases())
        for concrete in self.concrete_functions:
            if trace_types.subsumes(concrete.types, given):
                return concrete, None
        for concrete in self.concrete_functions:
            if trace_types.other_fields(concrete.types, given):
                continue
            out = []
            try:
                trace_types.cast(inputs, concrete.types, out)
            except (TypeError, ValueError):
                continue
            return concrete, out
        raise ValueError(self._no_match(inputs))

    def _no_match(self, inputs):
        shown = _described(_named(inputs, self._parameters))
        options = [
            f"Option {i}:\n  {_described(c.inputs_as_saved)}"
            for i, c in enumerate(self.concrete_functions, 1)
        ]
        return (
            "Could not find matching concrete function to call loaded from the "
            f"SavedModel. Got:\n  {shown}\n\n Expected these arguments to match one of "
            f"the following {len(options)} option(s):\n\n" + "\n\n".join(options)
        )

    def get_concrete_function(self, *args, **kwargs):
        """The concrete function that serves arguments, or TensorSpecs in their place;
        ValueError where none does."""
        if self._signature_types is not None:
            return self._concrete_constrained(args, kwargs)
        return self._matching(self._slots(args, kwargs))[0]

    def _with(self, options):
        raise NotImplementedError("a loaded function cannot be traced anew")

    def __reduce__(self):
        raise TypeError("functions of loaded models cannot be pickled; save the model")


def _named(inputs, parameters):
    """Arguments with symbolic tensors' forms for tensors, as upstream's messages have
    them: it looks for the function while it traces a call."""
    args, kwargs = inputs
    names = [p.name for p in parameters.parameters]
    names += [names[-1] if names else "args"] * (len(args) - len(names))
    return (
        tuple(_shown(a, name) for a, name in zip(args, names)),
        {k: _shown(v, k) for k, v in kwargs.items()},
    )


class _Shown:
    def __init__(self, text):
        self._text = text

    def __repr__(self):
        return self._text


def _shown(value, name):
    def one(leaf):
        if not isinstance(leaf, _headrace.Tensor):
            return leaf
        return _Shown(
            f"<tf.Tensor '{name}:0' shape={leaf.shape} dtype={leaf.dtype.name}>"
        )

    return nest.map_structure(one, value)


def _described(inputs):
    args, kwargs = inputs
    rows = "".join(f"\n    * {a!r}" for a in args)
    return f"Positional arguments ({len(args)} total):{rows}\n  Keyword arguments: {kwargs}"
