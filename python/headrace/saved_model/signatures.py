"""Signatures of models that are saved: functions of named tensors."""

import collections.abc
import re

from headrace._load import _headrace
from headrace.context import stack, strategies
from headrace.framework import nest, variables
from headrace.framework.type_spec import TensorSpec, TypeSpec, flat_tensor_specs
from headrace.function import trace_types, tracing
from headrace.function.concrete import ConcreteFunction
from headrace.function.function_type import FreelyNamed, P, Parameters
from headrace.function.polymorphic import Function
from headrace.function.restored import RestoredConcreteFunction
from headrace.saved_model.constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY

_RESERVED = "__saved_model_init_op"
_OUTPUTS = (
    "Outputs for functions used as signatures must be a single Tensor, a sequence of "
    "Tensors, or a dictionary from string to Tensor."
)


def traced(function, parameters, specs, name):
    """A ConcreteFunction of Python code that the library itself brings along."""
    with stack.init_scope():
        return tracing.trace(
            function,
            Parameters.of(parameters),
            specs,
            name,
            tracing.Creation(False),
            wrap_errors=False,
        )


def in_file_order(concrete):
    """The function, or one that calls it, whose keywords come by name: files have their
    tensors so."""
    entries = concrete._function_type.entries
    names = [e.name for e in entries if e.kind == P.KEYWORD_ONLY]
    if names == sorted(names) or isinstance(concrete, RestoredConcreteFunction):
        return concrete
    entries = sorted(
        entries,
        key=lambda e: (e.kind == P.KEYWORD_ONLY, e.name * (e.kind == P.KEYWORD_ONLY)),
    )
    return traced(
        lambda *args, **kwargs: concrete(*args, **kwargs),
        [FreelyNamed(e.name, e.kind) for e in entries],
        [e.type for e in entries],
        concrete._python_name,
    )


def concrete_of(function):
    """The ConcreteFunction that a signature may be made of, or None."""
    if isinstance(function, ConcreteFunction):
        return function
    if isinstance(function, Function) and function.input_signature is not None:
        return of_first_copies(function, function.get_concrete_function())
    return None


def of_first_copies(function, concrete):
    """A function's trace, or where that uses a strategy's variables one that takes their
    first copies alone: the only ones that a SavedModel has."""
    captured = (variables.of_handle(t) for t in concrete.captured_inputs)
    wholes = (variables.whole_of(v) for v in captured if v is not None)
    whole = next((v for v in wholes if v is not None), None)
    if whole is None or isinstance(concrete, RestoredConcreteFunction):
        return concrete
    with strategies.entering(whole._mode_of_files()):
        return function._traced_apart(concrete)


def canonical(signatures):
    """{key: ConcreteFunction} of what save() is given; ValueError for what can be no
    signature, TypeError for a key that is no text."""
    if not isinstance(signatures, collections.abc.Mapping):
        signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
    made = {}
    for key, function in signatures.items():
        if not isinstance(key, str):
            raise TypeError(f"The name of a signature must be a str, got {key!r}.")
        if key == _RESERVED:
            raise ValueError(
                f"The signature name {key!r} is reserved. Please choose another."
            )
        concrete = concrete_of(function)
        if concrete is None:
            raise ValueError(
                "Expected a TensorFlow function for which to generate a signature, but "
                f"got {function}. Only `tf.functions` with an input signature or concrete "
                "functions can be used as a signature."
            )
        made[key] = Wrapper(function, concrete, key)
    return made


def _defaults_of(function, concrete):
    """{name of a tensor: value} of the arguments of a tf.function that have tensors for
    defaults."""
    if not isinstance(function, Function):
        return {}
    names = iter(concrete._flat_names())
    given = {p.name: p.default for p in function._parameters.parameters}
    found = {}
    for entry in concrete._function_type.entries:
        specs = trace_types.structured(entry.type, entry.name)
        own = [
            next(names)
            for leaf in nest.flatten(specs)
            if isinstance(leaf, TypeSpec)
            for _ in flat_tensor_specs(leaf)
        ]
        default = given.get(entry.name, P.empty)
        if default is P.empty:
            continue
        leaves = nest.flatten(default, expand_composites=True)
        if len(leaves) == len(own):
            pairs = zip(own, leaves)
            found |= {n: x for n, x in pairs if isinstance(x, _headrace.EagerTensor)}
    return found


def found_among(children):
    """The signature of a model that was saved without one: its only function that may be
    one; {} where there are several or none."""
    possible = []
    for name, child in children:
        if name == "_default_save_signature":
            return canonical(concrete_of(child) or child)
        concrete = concrete_of(child)
        if concrete is not None and _is_fit(concrete):
            possible.append(concrete)
    return canonical(possible[0]) if len(possible) == 1 else {}


def _is_fit(concrete):
    try:
        _normalized(concrete.structured_outputs, concrete, "")
    except ValueError:
        return False
    return True


def _specs_of(concrete, placeholders):
    """What the tensors of a function's arguments are like: as they were asked for, which
    code may have narrowed (set_shape)."""
    leaves = nest.flatten(concrete.structured_input_signature)
    specs = [s for x in leaves if isinstance(x, TypeSpec) for s in flat_tensor_specs(x)]
    fit = len(specs) == len(placeholders) and all(
        type(s) is TensorSpec and s.dtype == p.dtype
        for s, p in zip(specs, placeholders)
    )
    return specs if fit else placeholders


class Wrapper:
    """A function of keywords that calls another, and gives a dictionary."""

    def __init__(self, function, concrete, key):
        name = "signature_wrapper"
        if isinstance(function, Function):
            name += f"_{concrete._python_name}".replace("<lambda>", "lambda")
        self.defaults = _defaults_of(function, concrete)  # {name of an input: tensor}
        n = len(concrete.inputs) - len(concrete.captured_inputs)
        placeholders = concrete.inputs[:n]
        self.inputs = concrete._flat_names()

        def signature_wrapper(**kwargs):
            given = concrete._call_flat([kwargs[name] for name in self.inputs])
            return _normalized(given, concrete, key)

        order = sorted(self.inputs)  # as files have them
        by_name = dict(zip(self.inputs, _specs_of(concrete, placeholders)))
        specs = [TensorSpec(by_name[n].shape, by_name[n].dtype, n) for n in order]
        self.function = traced(
            signature_wrapper,
            [FreelyNamed(name, P.KEYWORD_ONLY) for name in order],
            specs,
            name,
        )
        self.inputs = order
        self.outputs = sorted(self.function.structured_outputs)


def _normalized(outputs, concrete, key):
    """A function's outputs as {name: tensor}."""
    name = concrete.name.decode()
    if isinstance(outputs, dict):
        for k in outputs:
            if not isinstance(k, str):
                raise ValueError(  # noqa: TRY004
                    f"Got a dictionary with a non-string key {k!r} in the output of the "
                    f"function {name} used to generate the SavedModel signature {key!r}."
                )
        named = dict(outputs)
    else:
        rows = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        named = {f"output_{i}": x for i, x in enumerate(rows)}
    for k, x in named.items():
        if not (
            isinstance(x, (_headrace.Tensor, TypeSpec)) or hasattr(x, "_type_spec")
        ):
            raise ValueError(  # noqa: TRY004
                f"Got a non-Tensor value {x!r} for key {k!r} in the output of the "
                f"function {name} used to generate the SavedModel signature {key!r}. "
                + _OUTPUTS
            )
    return named


def output_specs(value, name="unknown"):
    """The specs of a function's structured outputs, named by their places: "a_0" for the
    first of those under "a"."""
    if value is None:
        return None
    if isinstance(value, _headrace.Tensor | TensorSpec):
        return TensorSpec(value.shape, value.dtype, name)
    spec = getattr(value, "_type_spec", None)
    if spec is not None:
        return spec
    outer = "" if name == "unknown" else f"{name}_"
    specs = []
    for key, part in nest.yield_items(value):
        place = re.sub(r"[^A-Za-z0-9_.\\/-]", "_", f"{outer}{key}")
        specs.append(output_specs(part, "tensor_" * place[:1].isdigit() + place))
    return nest.rebuild(value, specs)
