"""What a trace depends on: the types of arguments, structures included.

A type is a TypeSpec (a tensor, a variable), a Literal, an Object, or a structure of
types. The leaves of a type are the tensors that a traced function takes, in the order
in which the native call key lists them.
"""

import copy
import re
import weakref

import numpy as np

from headrace._load import _headrace
from headrace.framework import conversion, nest, type_spec, variables
from headrace.framework.indexed_slices import IndexedSlices
from headrace.framework.type_spec import (
    IndexedSlicesSpec,
    TensorSpec,
    TypeSpec,
    VariableSpec,
)

_Tensor = _headrace.Tensor
_Variable = _headrace.VariableBase


class CastError(TypeError):
    """A value does not fit a type."""


class StructureCastError(CastError, ValueError):
    """A value is not made of the parts of a type."""


class Literal:
    """A Python value that the trace was made with."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        # 1, 1.0 and True are equal in Python and give other tensors.
        return (
            isinstance(other, Literal)
            and type(self.value) is type(other.value)
            and self.value == other.value
        )

    def __hash__(self):
        return hash((type(self.value), self.value))

    def __repr__(self):
        return f"Literal[{self.value!r}]"


class Object:
    """Any other object: equal while it is the same, held weakly where possible."""

    def __init__(self, value):
        self.described = f"a {type(value).__name__} object at {id(value):#x}"
        try:
            self.reference = weakref.ref(value)
        except TypeError:
            self.reference = lambda: value

    @property
    def value(self):
        value = self.reference()
        if value is None:
            raise TypeError("an object that a function was traced with is gone")
        return value

    def __eq__(self, other):
        if not isinstance(other, Object):
            return False
        mine, theirs = self.reference(), other.reference()
        return mine is not None and (mine is theirs or bool(mine == theirs))

    def __hash__(self):
        return hash(type(self.reference()))

    def __repr__(self):
        return f"Weakref[{self.reference!r}]"


class Custom:
    """What a value's own class says that traces depend on: its TraceType."""

    def __init__(self, trace_type):
        self.trace_type = trace_type
        if isinstance(trace_type, TypeSpec) or trace_type.flatten():
            raise NotImplementedError(
                f"tf.function: {trace_type!r} is the TraceType of a value with tensors, "
                "which is not supported; make its class a tf.experimental.ExtensionType"
            )

    @classmethod
    def of_value(cls, value):
        return cls(value.__tf_tracing_type__(None))

    @property
    def value(self):
        return self.trace_type.placeholder_value(None)

    def serves(self, other):
        return isinstance(other, Custom) and other.trace_type.is_subtype_of(
            self.trace_type
        )

    def join(self, other):
        if not isinstance(other, Custom):
            return None
        found = self.trace_type.most_specific_common_supertype([other.trace_type])
        return None if found is None else Custom(found)

    def __eq__(self, other):
        return isinstance(other, Custom) and self.trace_type == other.trace_type

    def __hash__(self):
        return hash(self.trace_type)

    def __repr__(self):
        return repr(self.trace_type)


class Composite:
    """A value made of tensors (IndexedSlices and the like)."""

    def __init__(self, spec, template, parts):
        self.spec = spec
        self.kind = spec.value_type
        self.template = template  # a value or the spec: makes a value of parts
        self.parts = parts

    @classmethod
    def of_value(cls, value, parts):
        return cls(value._type_spec, value, [_part_type(p) for p in parts])

    @classmethod
    def of_spec(cls, spec, value=None, aliases=None):
        """The type of values of a spec, which keeps none alive. Variables in `value` get
        numbers of `aliases`."""
        specs = type_spec.parts_of(spec)
        values = [None] * len(specs) if value is None else value._components()
        pairs = zip(specs, values, strict=True)
        return cls(spec, spec, [_part_type(s, v, aliases) for s, v in pairs])

    def __eq__(self, other):
        return (
            isinstance(other, Composite)
            and self.kind is other.kind
            and self.parts == other.parts
            and _static(self.spec) == _static(other.spec)
        )

    def __hash__(self):
        return hash(self.kind)

    def __repr__(self):
        return repr(self.spec)


def _static(spec):
    """What of a spec is not in those of the parts."""
    parts = getattr(spec, "_static_parts", None)
    if parts is not None:
        return parts()
    return None if isinstance(spec, IndexedSlicesSpec) else spec


def _subsumes_static(general, special):
    if hasattr(general, "_static_parts"):
        return general._static_parts() == special._static_parts()
    # Slices' spec may know less than their parts.
    return isinstance(general, IndexedSlicesSpec) or special.is_subtype_of(general)


def _part_type(part, value=None, aliases=None):
    if hasattr(part, "_component_specs"):
        return Composite.of_spec(part, value, aliases)
    return type_of(value, aliases) if isinstance(value, _Variable) else part


class Structure:
    """A list, tuple, dict or the like of types."""

    def __init__(self, value, keys, items):
        self.kind = type(value)
        self.keys = keys  # sorted, of dicts; metadata of dataclasses; else None
        self.items = items
        self._template = nest.emptied(value) if items else value

    def rebuild(self, values):
        return nest.rebuild(self._template, values)

    def like(self, items):
        made = copy.copy(self)
        made.items = items
        return made

    def places(self):
        """How its items are written behind its own name: [0], ['a'], .field."""
        if hasattr(self.kind, "_fields"):
            return [f".{name}" for name in self.kind._fields]
        keyed = self.keys is not None and not hasattr(self.kind, "__tf_flatten__")
        return [f"[{k!r}]" for k in (self.keys if keyed else range(len(self.items)))]

    def same_shape(self, other):
        return (
            isinstance(other, Structure)
            and self.kind is other.kind
            and self.keys == other.keys
            and len(self.items) == len(other.items)
        )

    def __eq__(self, other):
        return self.same_shape(other) and self.items == other.items

    def __hash__(self):
        return hash((self.kind, len(self.items)))

    def __repr__(self):
        if hasattr(self.kind, "__tf_flatten__"):
            return f"{self.kind.__name__}[{', '.join(map(repr, self.items))}]"
        if self.keys is not None:
            rows = [f"[{k!r}, {t!r}]" for k, t in zip(self.keys, self.items)]
            return f"Dict[{', '.join(rows)}]"
        inner = ", ".join(map(repr, self.items))
        if hasattr(self.kind, "_fields"):
            rows = [f"['{k}', {t!r}]" for k, t in zip(self.kind._fields, self.items)]
            return f"NamedTuple[{self.kind.__name__}, [{', '.join(rows)}]]"
        return f"{'List' if issubclass(self.kind, list) else 'Tuple'}[{inner}]"


class Aliases:
    """Numbers the variables of one call, in order of appearance."""

    def __init__(self):
        self._ids = {}
        self.variables = []  # by number

    def number(self, variable):
        number = self._ids.setdefault(variable.handle._id, len(self._ids))
        if number == len(self.variables):
            self.variables.append(variable)
        return number


def type_of(value, aliases):
    """The type of an argument."""
    if isinstance(value, _Tensor):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, _Variable):
        number = aliases.number(value)
        return VariableSpec(value.shape, value.dtype, value.trainable, number)
    if isinstance(value, (np.ndarray, np.generic)):
        tensor = _headrace.make_tensor(value)
        return TensorSpec(tensor.shape, tensor.dtype)
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return Literal(value)
    if isinstance(value, TypeSpec):
        return signature_type(value)
    if isinstance(value, type):
        return Object(value)
    if getattr(type(value), "_is_composite_tensor", False):
        # Slices' spec may know less than their parts.
        known = not isinstance(value, IndexedSlices)
        if known and hasattr(value._type_spec, "_component_specs"):
            return Composite.of_spec(value._type_spec, value, aliases)
        return Composite.of_value(
            value, [type_of(p, aliases) for p in value._components()]
        )
    if hasattr(type(value), "__tf_tracing_type__"):
        return Custom.of_value(value)
    if nest.is_nested(value):
        keys = None
        if nest._is_dict(value):
            keys = nest.sorted_keys(value)
        elif nest.is_dataclass(value):
            keys = value.__tf_flatten__()[0]
        items = [type_of(v, aliases) for v in nest.children(value)]
        return Structure(value, keys, items)
    if isinstance(value, weakref.ref):
        raise TypeError(f"weakref input {value} not supported for tf.function.")
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"Could not generate a generic TraceType for {value!r}. Please verify that "
            "it is immutable/hashable. Otherwise, consider implementing the Tracing "
            "Protocol for it."
        ) from None
    return Object(value)


def subsumes(general, special):
    """True when a trace of `general` serves arguments of `special`."""
    if isinstance(general, Custom):
        return general.serves(special)
    if isinstance(general, Structure):
        return general.same_shape(special) and all(
            map(subsumes, general.items, special.items)
        )
    if isinstance(general, Composite):
        return (
            isinstance(special, Composite)
            and general.kind is special.kind
            and len(general.parts) == len(special.parts)
            and all(map(subsumes, general.parts, special.parts))
            and _subsumes_static(general.spec, special.spec)
        )
    if isinstance(general, TensorSpec) and isinstance(special, TensorSpec):
        return general.dtype == special.dtype and special.shape.is_subtype_of(
            general.shape
        )
    return general == special


def join(a, b):
    """The most specific type that subsumes both, or None."""
    if isinstance(a, Custom):
        return a.join(b)
    if isinstance(a, Structure):
        if not a.same_shape(b):
            return None
        items = joined(a.items, b.items)
        return None if items is None else a.like(items)
    if isinstance(a, Composite) and isinstance(b, Composite) and a.kind is b.kind:
        spec = a.spec.most_specific_common_supertype([b.spec])
        return None if spec is None else Composite.of_spec(spec)
    if type(a) is TensorSpec and type(b) is TensorSpec and a.dtype == b.dtype:
        return TensorSpec(a.shape.most_specific_compatible_shape(b.shape), a.dtype)
    return a if a == b else None


def joined(first, second):
    """The joins of two lists of types, or None where some have none."""
    out = []
    for a, b in zip(first, second):
        if (t := join(a, b)) is None:
            return None
        out.append(t)
    return out


def is_literal(t):
    """Whether no tensor belongs to a type: its traces know the value."""
    if isinstance(t, Structure):
        return bool(t.items) and all(map(is_literal, t.items))
    return isinstance(t, (Literal, Object))


def literal_value(t):
    """The value of a type that is_literal()."""
    if isinstance(t, Structure):
        return t.rebuild([literal_value(i) for i in t.items])
    return t.value


def without_names(t):
    if isinstance(t, Structure):
        return t.like([without_names(i) for i in t.items])
    if type(t) is TensorSpec and t.name:
        return TensorSpec(t.shape, t.dtype)
    return t


def placeholder(t, graph, name, out):
    """The value that stands for an argument while tracing; its tensors go to `out`."""
    if isinstance(t, (Literal, Object, Custom)):
        return t.value
    if isinstance(t, Structure):
        return t.rebuild([placeholder(i, graph, name, out) for i in t.items])
    if isinstance(t, Composite):
        parts = [placeholder(p, graph, name, out) for p in t.parts]
        return type_spec.of_parts(t.template, parts)
    if isinstance(t, VariableSpec):
        return variables.traced_argument(graph, t, _node_name(name), out, name)
    if isinstance(t, TensorSpec):
        name = t.name or name
        tensor = graph._core.placeholder(
            _node_name(name), t.dtype, t.shape, None, {USER_NAME: name}
        )
        out.append(tensor)
        return tensor
    raise NotImplementedError(f"tracing with a {type(t).__name__} is not supported")


USER_NAME = variables.USER_NAME
_NODE_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")


def _node_name(name):
    """An argument's name, where nodes can be called so."""
    return name if _NODE_NAME.fullmatch(name) else "Placeholder"


def structured(t, path):
    """What structured_input_signature shows for an argument."""
    if isinstance(t, (Literal, Object, Custom)):
        return t.value
    if isinstance(t, Structure):
        keys = getattr(t.kind, "_fields", t.keys)
        keys = range(len(t.items)) if keys is None else keys
        return t.rebuild([structured(i, f"{path}_{k}") for k, i in zip(keys, t.items)])
    if isinstance(t, Composite):
        return t.spec
    if type(t) is TensorSpec:
        return TensorSpec(t.shape, t.dtype, t.name or path)
    return t


def cast(value, t, out):
    """Appends the leaves of `value` as type `t` wants them; CastError if it cannot."""
    if isinstance(t, (Literal, Object)):
        same = value is t.value
        if not same and not isinstance(value, (_Tensor, np.ndarray)):
            same = bool(value == t.value)
        if not same:
            raise CastError(f"Can not cast {value!r} to {t!r}")
    elif isinstance(t, Custom):
        has_type = hasattr(type(value), "__tf_tracing_type__")
        if not has_type or not t.serves(Custom.of_value(value)):
            raise CastError(f"Can not cast {value!r} to type {t!r}")
    elif isinstance(t, Structure):
        _cast_structure(value, t, out)
    elif isinstance(t, Composite):
        parts = value._components() if isinstance(value, t.kind) else ()
        if len(parts) != len(t.parts):
            raise StructureCastError(
                f"Can not cast {value!r} to {t!r}: they don't have the same nested "
                "structure"
            )
        for part, kind in zip(parts, t.parts):
            cast(part, kind, out)
    elif isinstance(t, VariableSpec):
        if not isinstance(value, _Variable):
            raise CastError(f"Can not cast {value!r} to type {t!r}")
        out.append(value.handle)
    elif isinstance(t, TensorSpec):
        out.append(_cast_tensor(value, t))
    else:
        raise CastError(f"Can not cast {value!r} to {t!r}")


def other_fields(t, given):
    """True where plain fields of extension types in a type are others than `given`'s."""
    if isinstance(t, Structure) and isinstance(given, Structure):
        return any(map(other_fields, t.items, given.items))
    if not isinstance(t, Composite) or not hasattr(t.spec, "_tf_extension_type_fields"):
        return False
    same_kind = isinstance(given, Composite) and given.kind is t.kind
    return same_kind and not _subsumes_static(t.spec, given.spec)


def _cast_structure(value, t, out):
    if hasattr(t.kind, "__tf_flatten__"):  # its keys are what it holds besides
        same = isinstance(value, t.kind) and value.__tf_flatten__()[0] == t.keys
        if not same:
            raise CastError(f"Can not cast {value!r} to {t!r}")
    elif t.keys is not None:
        if not isinstance(value, dict):
            raise CastError(f"Can not cast {value!r} to a Dict type.")
        if sorted(value) != t.keys:
            raise CastError(f"{value!r} has different keys with the TraceType {t!r}.")
        for k, item in zip(t.keys, t.items):
            cast(value[k], item, out)
        return
    if not nest.is_nested(value):
        raise CastError(f"Can not cast {value!r} to {t.kind.__name__} type.")
    children = nest.children(value)
    if len(children) != len(t.items):
        raise CastError(f"Expected {value!r} to have length of {len(t.items)}")
    for child, item in zip(children, t.items):
        cast(child, item, out)


def _cast_tensor(value, t):
    if not isinstance(value, _Tensor):
        if isinstance(value, TypeSpec):
            raise CastError(f"Can not cast {value!r} to {t!r}")
        try:
            value = conversion.convert_to_tensor(value, t.dtype)
        except (TypeError, ValueError) as e:
            raise CastError(str(e)) from e
    if value.dtype != t.dtype or not value.shape.is_compatible_with(t.shape):
        mine = TensorSpec(value.shape, value.dtype)
        raise CastError(f"Can not cast {mine!r} to {t!r}")
    return value


def fits(value, t):
    """True when the native leaves of `value` are those that `t` wants, uncast."""
    if isinstance(t, (Literal, Object)):
        return not isinstance(value, (_Tensor, np.ndarray, np.generic))
    if isinstance(t, Structure):
        return all(map(fits, nest.children(value), t.items))
    if isinstance(t, Composite):
        return all(map(fits, value._components(), t.parts))
    if isinstance(t, TensorSpec):
        return isinstance(value, _Tensor)
    return True


def signature_type(spec):
    """An entry of input_signature as a type."""
    if hasattr(spec, "_component_specs"):
        return Composite.of_spec(spec)
    if isinstance(spec, TypeSpec):
        return spec
    if nest.is_nested(spec):
        keys = nest.sorted_keys(spec) if nest._is_dict(spec) else None
        return Structure(spec, keys, [signature_type(s) for s in nest.children(spec)])
    raise TypeError(spec)


spec_of = type_spec.type_spec_from_value
