"""Fields of extension types: what their annotations allow, values made to fit these."""

import inspect
import sys
import types
import typing
from collections import abc

from headrace._load import _headrace
from headrace.framework import conversion, dtypes, tensor_shape, type_spec

# What fields are converted for: an object, its spec, or the class that has the default.
VALUES, SPECS, DEFAULTS = "values", "specs", "defaults"


class ImmutableDict(abc.Mapping):
    """A mapping that stays as it was made: the values of fields of type Mapping."""

    def __init__(self, *args, **kwargs):
        self._dict = dict(*args, **kwargs)

    def __getitem__(self, key):
        return self._dict[key]

    def __len__(self):
        return len(self._dict)

    def __iter__(self):
        return iter(self._dict)

    def __repr__(self):
        return f"ImmutableDict({self._dict!r})"


def as_plain(value):
    """The value with dicts in place of ImmutableDicts."""
    if isinstance(value, tuple):
        return tuple(map(as_plain, value))
    if isinstance(value, ImmutableDict):
        return {k: as_plain(v) for k, v in value.items()}
    return value


def as_immutable(value):
    """What as_plain made of a value."""
    if isinstance(value, tuple):
        return tuple(map(as_immutable, value))
    if isinstance(value, dict):
        return ImmutableDict({k: as_immutable(v) for k, v in value.items()})
    return value


def _refusal(path, expected, value):
    return TypeError(f"{path}: expected {expected}, got {type(value).__name__!r}")


# --- What an annotation allows: converters, `convert(value, path, wanted)` of which gives
# the value that the field holds or raises TypeError.


class _Instance:
    """Values of a plain Python type, as they are."""

    def __init__(self, kind):
        self._kind = kind

    def convert(self, value, path, wanted):
        if isinstance(value, self._kind):
            return value
        raise _refusal(path, f"'{self._kind.__name__}'", value)


class _Made:
    """What a constructor takes: a dtype, a shape."""

    def __init__(self, expected, make):
        self._expected, self._make = expected, make

    def convert(self, value, path, wanted):
        try:
            return self._make(value)
        except TypeError:
            raise _refusal(path, self._expected, value) from None


class _Tensor:
    def convert(self, value, path, wanted):
        if wanted == DEFAULTS:  # a tensor of the place that makes an object
            return value
        if wanted == SPECS:
            if isinstance(value, type_spec.TensorSpec):
                return value
            raise _refusal(path, "a TensorSpec", value)
        if isinstance(value, _headrace.Tensor):
            return value
        try:
            return conversion.convert_to_tensor(value)
        except (TypeError, ValueError):
            raise _refusal(path, "a Tensor", value) from None


class _Composite:
    """Values of a class that is made of tensors, or their specs."""

    def __init__(self, kind):
        self._kind = kind

    def convert(self, value, path, wanted):
        name = f"'{self._kind.__name__}'"
        if wanted != SPECS:
            if isinstance(value, self._kind):
                return value
            raise _refusal(path, name, value)
        if isinstance(value, type_spec.TypeSpec):
            if issubclass(value.value_type, self._kind):
                return value
        raise _refusal(path, f"a TypeSpec for {name}", value)


class _Tuple:
    """Tuples with an item of each kind, or of any length with one kind of items."""

    def __init__(self, kinds, any_length):
        self._kinds, self._any_length = kinds, any_length

    def convert(self, value, path, wanted):
        is_text = isinstance(value, (bytes, bytearray))
        if not isinstance(value, abc.Sequence) or is_text:
            raise _refusal(path, "tuple", value)
        kinds = self._kinds
        if self._any_length:
            kinds = kinds * len(value)
        elif len(value) != len(kinds):
            expected = f"tuple with length {len(kinds)}"
            raise TypeError(f"{_refusal(path, expected, value)})")
        rows = enumerate(zip(kinds, value))
        return tuple(k.convert(v, f"{path}[{i}]", wanted) for i, (k, v) in rows)


class _Mapping:
    def __init__(self, key, value):
        self._key, self._value = key, value

    def convert(self, value, path, wanted):
        if not isinstance(value, abc.Mapping):
            raise _refusal(path, "mapping", value)
        return ImmutableDict(
            (
                self._key.convert(k, f"{path}[<key>]", wanted),
                self._value.convert(v, f"{path}[{k!r}]", wanted),
            )
            for k, v in value.items()
        )


class _Union:
    """The first of several kinds that takes the value."""

    def __init__(self, annotation, kinds):
        self._annotation, self._kinds = annotation, kinds

    def convert(self, value, path, wanted):
        for kind in self._kinds:
            try:
                return kind.convert(value, path, wanted)
            except TypeError:
                pass
        raise _refusal(path, self._annotation, value)


class _Unknown:
    """An annotation with a name that nothing has yet: no value fits."""

    def __init__(self, annotation):
        self._annotation = annotation

    def convert(self, value, path, wanted):
        raise TypeError(f"{path}: Unsupported type annotation {self._annotation!r}")


_PLAIN = (int, float, str, bytes, bool, type(None))
_DTYPE = _Made("'tf.DType'", dtypes.as_dtype)
_SHAPE = _Made("'tf.TensorShape'", tensor_shape.TensorShape)


def _converter(annotation):
    """What takes the values of an annotation; TypeError for those that no field has."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, (str, typing.ForwardRef)):
        return _Unknown(annotation)
    if annotation is None or any(annotation is kind for kind in _PLAIN):
        return _Instance(type(None) if annotation is None else annotation)
    if annotation is _headrace.Tensor:
        return _Tensor()
    if annotation is dtypes.DType:
        return _DTYPE
    if annotation is tensor_shape.TensorShape:
        return _SHAPE
    if origin in (typing.Union, types.UnionType):
        return _Union(annotation, [_converter(a) for a in args])
    if origin is tuple:
        any_length = len(args) == 2 and args[1] is Ellipsis
        kinds = args[:1] if any_length else args
        return _Tuple([_converter(a) for a in kinds], any_length)
    if origin is abc.Mapping and args:
        key = _converter(args[0])
        if isinstance(key, (_Tensor, _Composite)):
            shown = f"{args[0].__name__!r} with type {type(args[0]).__name__!r}"
            raise TypeError(f"Mapping had a key {shown}")
        return _Mapping(key, _converter(args[1]))
    if isinstance(annotation, type) and origin is None:
        if getattr(annotation, "_is_composite_tensor", False):
            return _Composite(annotation)
        raise TypeError(f"Unsupported type annotation {annotation.__name__!r}")
    raise TypeError(f"Unsupported type annotation {annotation}")


class Field:
    """One field of an extension type: name, annotation, default and what it takes."""

    NO_DEFAULT = inspect.Parameter.empty

    def __init__(self, name, annotation, default):
        self.name, self.annotation = name, annotation
        try:
            self._converter = _converter(annotation)
        except TypeError as e:
            raise TypeError(f"In field {name!r}: {e}") from None
        self.default = default
        if default is not self.NO_DEFAULT:
            where = f"default value for {name}"
            self.default = self._converter.convert(default, where, DEFAULTS)

    def convert(self, value, wanted):
        return self._converter.convert(value, self.name, wanted)

    def parameter(self, kind):
        return inspect.Parameter(
            self.name, kind, default=self.default, annotation=self.annotation
        )


def fields_of(cls):
    """(the fields of a class in order, bases' first; whether all names are known)."""
    names, hints, is_whole = {}, {}, True
    for base in reversed(cls.__mro__):
        names.update(vars(base))
    names[cls.__name__] = cls
    for base in reversed(cls.__mro__):
        scope = getattr(sys.modules.get(base.__module__), "__dict__", {})
        for name, annotation in base.__dict__.get("__annotations__", {}).items():
            one = types.SimpleNamespace(__annotations__={name: annotation})
            try:
                hints.update(typing.get_type_hints(one, scope, names))
            except (NameError, AttributeError):
                is_whole = False
                hints[name] = annotation
    found = []
    for name, annotation in hints.items():
        default = getattr(cls, name, Field.NO_DEFAULT)
        found.append(Field(name, annotation, default))
    return found, is_whole


def signature_of(fields, returned):
    """The signature of a constructor: a field without default that comes behind one
    with a default, and all behind it, are given by name."""
    kind, parameters, has_default = inspect.Parameter.POSITIONAL_OR_KEYWORD, [], False
    for field in fields:
        if field.default is not Field.NO_DEFAULT:
            has_default = True
        elif has_default:
            kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(field.parameter(kind))
    return inspect.Signature(parameters, return_annotation=returned)
