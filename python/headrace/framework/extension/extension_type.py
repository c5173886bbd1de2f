"""tf.experimental.ExtensionType and the specs of its classes."""

import abc
import functools
import inspect
import re

from headrace._load import _headrace, raw
from headrace.framework import conversion, dispatch, nest, type_spec
from headrace.framework.extension.fields import (
    SPECS,
    VALUES,
    as_immutable,
    as_plain,
    fields_of,
    signature_of,
)

# What the classes of values and specs have names for themselves.
_RESERVED = frozenset(
    "Spec self value_type is_compatible_with most_specific_compatible_type _type_spec "
    "_component_specs _consumers _deserialize _flat_tensor_specs _serialize "
    "_from_compatible_tensor_list _from_components _from_tensor_list _to_components "
    "_to_legacy_output_classes _to_legacy_output_shapes _to_legacy_output_types "
    "_to_tensor_list _with_tensor_ranks_only _shape_invariant_to_type_spec".split()
)
_RESERVED_METHODS = ("_type_spec", "_components", "_from_components", "_static_parts")
_OWN = "_tf_extension_type"
_CONSTRUCTING = _OWN + "_in_constructor"
_CACHED_FIELDS = _OWN + "_cached_fields"
_CACHED_SPEC = _OWN + "_cached_type_spec"
_CACHED_COMPONENTS = _OWN + "_cached_components"
_CACHED_STATIC = _OWN + "_cached_static_parts"


class _Fixed:
    """An object with fields that its constructor alone sets."""

    _tf_extension_type_for = VALUES

    def __setattr__(self, name, value):
        _check_mutable(self, name)
        self.__dict__[name] = value

    def __delattr__(self, name):
        _check_mutable(self, name)
        del self.__dict__[name]

    @classmethod
    def _tf_extension_type_fields(cls):
        """The fields, read again while an annotation names what is not there yet."""
        found = cls.__dict__.get(_CACHED_FIELDS)
        if found is None or not found[1]:
            found = fields_of(cls)
            type.__setattr__(cls, _CACHED_FIELDS, found)
        return found[0]

    def _tf_extension_type_convert_fields(self):
        """Converts what the constructor set."""
        missing = {n for n in _names(self) if n not in self.__dict__}
        if missing:
            raise ValueError(f"Missing required fields: {missing}")
        for field in self._tf_extension_type_fields():
            value = field.convert(
                self.__dict__[field.name], self._tf_extension_type_for
            )
            self.__dict__[field.name] = value


def _names(x):
    """The names of the fields of an object or class, of a spec or class of specs."""
    return [f.name for f in x._tf_extension_type_fields()]


def _values(x):
    return tuple(x.__dict__[name] for name in _names(x))


def _leaves(x):
    return nest.flatten(_values(x))


def _made(cls, values):
    """An object of a class with these values, by name, unchecked."""
    made = object.__new__(cls)
    made.__dict__.update(values)
    return made


def _keep(x, name, value):
    """Caches what follows from fields, once these are final."""
    if _CONSTRUCTING not in x.__dict__:
        x.__dict__[name] = value


def _check_mutable(x, name):
    if _CONSTRUCTING not in x.__dict__ or name not in _names(x):
        noun = "ExtensionType" if isinstance(x, ExtensionType) else "ExtensionTypeSpec"
        raise AttributeError(
            f"Cannot mutate attribute `{name}` outside the custom constructor of {noun}."
        )


def _constructor(function):
    """The constructor that lets `function` set fields, and then checks them."""

    @functools.wraps(function)
    def __init__(self, *args, **kwargs):
        if _CONSTRUCTING in self.__dict__:  # called by that of a subclass
            function(self, *args, **kwargs)
            return
        self.__dict__[_CONSTRUCTING] = True
        try:
            function(self, *args, **kwargs)
        finally:
            del self.__dict__[_CONSTRUCTING]
        self._tf_extension_type_convert_fields()

    return __init__


def _constructor_of_fields(signature):
    def __init__(self, *args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        self.__dict__.update(bound.arguments)

    made = _constructor(__init__)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *signature.parameters.values()]
    made.__signature__ = signature.replace(parameters=parameters)
    return made


class ExtensionTypeMetaclass(abc.ABCMeta):
    """Makes of a class with annotations one with fields, a constructor and a Spec."""

    def __init__(cls, name, bases, namespace):
        if not namespace.get(_OWN + "_do_not_transform_this_class", False):
            _check_names(cls, namespace)
            fields = cls._tf_extension_type_fields()
            if "__init__" in namespace:
                cls.__init__ = _constructor(namespace["__init__"])
            else:
                cls.__init__ = _constructor_of_fields(signature_of(fields, cls))
            cls.Spec = _spec_class(cls, namespace)
            if "__name__" in namespace:
                _register(namespace["__name__"] + ".Spec", cls.Spec)
        super().__init__(name, bases, namespace)


# Classes of specs by the names that SavedModels call them by: a class of values says its
# own in an attribute __name__.
registered = {}
_NAME = re.compile(r"(\w+\.)+\w+")


def _register(name, spec_class):
    if not _NAME.fullmatch(name):
        raise ValueError(
            "Registered name must have the form '{project_name}.{type_name}' (e.g. "
            f"'my_project.MyTypeSpec'); got {name!r}."
        )
    if name in registered:
        known = registered[name]
        raise ValueError(
            f"Name {name} has already been registered for class "
            f"{known.__module__}.{known.__qualname__}."
        )
    registered[name] = spec_class
    type.__setattr__(spec_class, "_registered_name", name)


def _check_names(cls, namespace):
    def refuse(what):
        raise ValueError(
            f"The field annotations for {cls.__name__} are invalid. Field {what}"
        )

    annotated = namespace.get("__annotations__", {})
    for name in annotated:
        if name in (*_RESERVED, *_RESERVED_METHODS) or name.startswith(_OWN):
            refuse(f"{name!r} is reserved.")
    for name, value in namespace.items():
        if name == "Spec" or name in annotated:
            continue
        if name.startswith(_OWN) or name in _RESERVED_METHODS:
            refuse(f"{name!r} is reserved.")
        is_method = callable(value) or hasattr(value, "__get__")
        if not is_method and not name.startswith("__") and name != "_abc_impl":
            refuse(f"{name} is missing a type annotation.")
    cls._tf_extension_type_check_encoder(namespace)


def _spec_class(cls, namespace):
    """The Spec of an extension type, with the methods of a nested class Spec."""
    written = namespace.get("Spec")
    own = {}
    if written is not None:
        where = f"{cls.__name__}.Spec"
        if not isinstance(written, type):
            raise ValueError(f"{where} must be a nested class; got {written}.")
        if written.__bases__ not in ((object,), (type_spec.TypeSpec,)):
            raise ValueError(f"{where} must be directly subclassed from tf.TypeSpec.")
        if "value_type" in written.__dict__:
            raise ValueError(f"TypeSpec {where} uses reserved name 'value_type'.")
        own = {k: v for k, v in vars(written).items() if k not in _OF_TYPES}
    own.update(
        __module__=cls.__module__,
        __qualname__=f"{cls.__qualname__}.Spec",
        value_type=cls,
    )
    encoder = getattr(cls, "__batch_encoder__", None)
    if encoder is not None:
        own["__batch_encoder__"] = encoder
    if "__init__" in own:
        own["__init__"] = _constructor(own["__init__"])
    else:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = [inspect.Parameter(n, kind) for n in _names(cls)]
        own["__init__"] = _constructor_of_fields(inspect.Signature(names))
    made = type(cls._tf_extension_type_spec_base)(
        f"{cls.__name__}.Spec", (cls._tf_extension_type_spec_base,), own
    )
    made.__init__.__signature__ = inspect.signature(made.__init__).replace(
        return_annotation=made
    )
    for cell in _class_cells(own, written):
        cell.cell_contents = made
    return made


_OF_TYPES = ("__dict__", "__weakref__", "__module__", "__qualname__")


def _class_cells(namespace, written):
    """The cells by which methods of a class know it: super() asks them."""
    for value in namespace.values():
        value = inspect.unwrap(value) if callable(value) else value
        value = getattr(value, "fget", None) or getattr(value, "__func__", value)
        for cell in getattr(value, "__closure__", None) or ():
            if written is not None and cell.cell_contents is written:
                yield cell


def _with_components(spec, components):
    """The fields of a spec by name, components in place of the TypeSpecs."""
    rest = iter(components)
    leaves = [
        next(rest) if isinstance(x, type_spec.TypeSpec) else x for x in _leaves(spec)
    ]
    return dict(zip(_names(spec), nest.pack_sequence_as(_values(spec), leaves)))


class ExtensionTypeSpec(_Fixed, type_spec.TypeSpec):
    """What objects of an extension type are like: a field for each of theirs.

    Where these are tensors, or made of tensors, it holds a TypeSpec; where they are other
    values, the value. The class of an extension type's specs is its `Spec`; methods of a
    class Spec that is nested in an extension type become those of its specs.
    """

    _tf_extension_type_for = SPECS

    @classmethod
    def _tf_extension_type_fields(cls):
        return cls.value_type._tf_extension_type_fields()

    def __repr__(self):
        shown = [f"{name}={value!r}" for name, value in self._serialize()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _serialize(self):
        names, values = _names(self), _values(self)
        return tuple(zip(names, map(as_plain, values)))

    @classmethod
    def _deserialize(cls, serialization):
        return _made(cls, {k: as_immutable(v) for k, v in serialization})

    def __reduce__(self):
        return _spec_of, (self.value_type, self._serialize())

    @classmethod
    def from_value(cls, value):
        """The spec of an object."""
        return value._type_spec

    # --- Tensors, and what is made of tensors, in the order of nest.

    @property
    def _component_specs(self):
        return tuple(x for x in _leaves(self) if isinstance(x, type_spec.TypeSpec))

    def _to_components(self, value):
        pairs = zip(_leaves(self), _leaves(value))
        return tuple(x for s, x in pairs if isinstance(s, type_spec.TypeSpec))

    def _from_components(self, components):
        return _made(self.value_type, _with_components(self, components))

    def _tf_extension_type_with_specs(self, component_specs):
        """A spec with the same plain values and these specs."""
        return _made(type(self), _with_components(self, component_specs))

    def _static_parts(self):
        """What is the same in all objects, tensors left out, where 1 is not True."""
        found = self.__dict__.get(_CACHED_STATIC)
        if found is None:
            keys = nest.flatten_with_paths(_values(self))
            found = tuple((path, *_static(x)) for path, x in keys)
            self.__dict__[_CACHED_STATIC] = found
        return found

    # --- As elements of datasets: the tensors.

    @property
    def _flat_tensor_specs(self):
        return type_spec.flat_tensor_specs(self)

    def _to_tensor_list(self, value):
        return nest.flatten(value, expand_composites=True)

    def _from_tensor_list(self, tensor_list):
        return type_spec.of_flat_tensors(self, iter(tensor_list))

    _from_compatible_tensor_list = _from_tensor_list


def _spec_of(value_type, serialization):
    return value_type.Spec._deserialize(serialization)


def _static(x):
    if isinstance(x, type_spec.TypeSpec):
        parts = getattr(x, "_static_parts", None)
        return type(x), None if parts is None else parts()
    return type(x), x


class ExtensionType(_Fixed, metaclass=ExtensionTypeMetaclass):
    """Base class of types with fields that are tensors or plain values.

        class MaskedTensor(tf.experimental.ExtensionType):
            values: tf.Tensor
            mask: tf.Tensor

    Annotations say what fields there are. They may be `tf.Tensor`, `tf.TensorShape`,
    `tf.DType`, composite tensors, extension types, int, float, bool, str, bytes, None,
    and `Tuple`, `Mapping`, `Optional` and `Union` of these (ValueError or TypeError for
    others when the class is made). The constructor takes the fields, converts them and
    calls `__validate__`, which raises an error for values that do not go together; a class
    may write an `__init__` of its own that sets all fields. Objects never change. The
    class's `Spec` says what its objects are like.

    Objects are equal if their specs are and all elements of their tensors; `==` gives a
    tensor then. They are arguments and results of tf.function, tf.cond, tf.while_loop and
    parts of the elements of datasets.
    """

    _tf_extension_type_do_not_transform_this_class = True
    _is_composite_tensor = True
    _tf_extension_type_spec_base = ExtensionTypeSpec
    __hash__ = None

    def __init__(self, *args, **kwargs):
        if type(self) is ExtensionType:
            raise AssertionError(
                "Cannot create an instance of ExtensionType because ExtensionType is an "
                "abstract base class."
            )

    def __validate__(self):
        """Raises an error where the fields do not go together: for subclasses."""

    def _tf_extension_type_convert_fields(self):
        super()._tf_extension_type_convert_fields()
        self.__validate__()

    @classmethod
    def _tf_extension_type_check_encoder(cls, namespace):
        if "__batch_encoder__" in namespace:
            raise ValueError(
                "__batch_encoder__ should only be defined for BatchableExtensionType "
                "classes."
            )

    def __repr__(self):
        rows = zip(_names(self), _values(self))
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in rows)})"

    @property
    def _type_spec(self):
        found = self.__dict__.get(_CACHED_SPEC)
        if found is None:
            values = nest.map_structure(_spec_of_part, _values(self))
            found = _made(type(self).Spec, dict(zip(_names(self), values)))
            _keep(self, _CACHED_SPEC, found)
        return found

    def _components(self):
        found = self.__dict__.get(_CACHED_COMPONENTS)
        if found is None:
            found = self._type_spec._to_components(self)
            _keep(self, _CACHED_COMPONENTS, found)
        return list(found)

    def _from_components(self, parts):
        return self._type_spec._from_components(parts)

    def _static_parts(self):
        return self._type_spec._static_parts()

    def _shape_invariant_to_type_spec(self, shape):
        name = type(self).__name__
        raise TypeError(
            f"To describe or constrain a {name}, use a {name}.Spec instead of a "
            "TensorShape."
        )

    def __eq__(self, other):
        if type(self) is not type(other) or self._type_spec != other._type_spec:
            return False
        pairs = zip(
            nest.flatten(self, expand_composites=True),
            nest.flatten(other, expand_composites=True),
        )
        same = [_all_equal(x, y) for x, y in pairs]
        if not same:
            return conversion.convert_to_tensor(True)
        return raw.All(raw.Pack(same), 0) if len(same) > 1 else same[0]

    def __ne__(self, other):
        same = self.__eq__(other)
        if isinstance(same, _headrace.Tensor):
            return raw.LogicalNot(same)
        return not same


def _spec_of_part(x):
    is_value = isinstance(x, _headrace.Tensor) or hasattr(x, "_type_spec")
    return type_spec.type_spec_from_value(x) if is_value else x


def _all_equal(x, y):
    same = raw.Equal(x, y, incompatible_shape_error=False)
    return raw.All(same, raw.Range(0, raw.Rank(same), 1))


def on_parts(api, *args, **kwargs):
    """The function of each tensor of an extension type's object."""
    x, args, kwargs = dispatch.first_of(ExtensionType, args, kwargs)
    return nest.map_structure(
        lambda part: api(part, *args, **kwargs), x, expand_composites=True
    )


_ON_PARTS = "input +framework.extension.extension_type:on_parts"
dispatch.add_functions(
    ExtensionType, f"identity {_ON_PARTS}\nstop_gradient {_ON_PARTS}"
)


def as_dict(value):
    """The fields of an extension type's object by name, as a dict."""
    return dict(zip(_names(value), _values(value)))
