"""Configurations of objects, and objects of configurations and names."""

import inspect

from headrace import _api as tf
from headrace import _names
from headrace.framework.support import signatures

_custom = {}
_safe = None  # whether code in configurations is refused; None where nobody asks


class CustomObjectScope:
    """Names that configurations may use inside."""

    def __init__(self, *args):
        self._added = {}
        for objects in args:
            self._added.update(objects)

    def __enter__(self):
        self._before = dict(_custom)
        _custom.update(self._added)
        return self

    def __exit__(self, *error):
        _custom.clear()
        _custom.update(self._before)
        return False


def get_custom_objects():
    """What names of configurations may mean: a dict that may be changed."""
    return _custom


def register_keras_serializable(package="Custom", name=None):
    """Registers a class or function for configurations."""

    def decorated(item):
        key = name or item.__name__
        full = f"{package}>{key}"
        item._keras_registered_name = full
        _custom[full] = _custom[key] = item
        return item

    return decorated


def get_registered_name(obj):
    """The name that register_keras_serializable gave, else the plain one."""
    return getattr(obj, "_keras_registered_name", obj.__name__)


def get_registered_object(name, custom_objects=None, module_objects=None):
    """What has the name, else None."""
    return (custom_objects or {}).get(name) or _custom.get(name)


def set_safe_mode(on):
    """Says whether code that configurations hold is refused (True), run (False), or
    trusted because the program made them itself (None); returns what held before."""
    global _safe
    before, _safe = _safe, on
    return before


def in_safe_mode():
    """Whether code that configurations hold is refused."""
    return bool(_safe)


# Where classes of Keras' namespaces are defined.
_OURS = ("headrace.keras", "headrace.v1.keras", "headrace.ops.random.initializers")


def public_module(item):
    """keras.layers for a class of ours, the module of anybody else's; None for what a
    program itself defines, which no other can import."""
    if item.__module__.startswith(_OURS):
        return getattr(item, "_keras_module", item.__module__)
    return None if item.__module__ == "__main__" else item.__module__


def serialize(obj):
    """`obj` as what JSON can hold: numbers and texts as they are, lists and dicts of
    such, objects and functions as {module, class_name, config, registered_name}, of
    layers with what they were built for, of models with how they were compiled.

    TypeError for an object without get_config().
    """
    if obj is None or isinstance(obj, (int, float, str, bool)):
        return obj
    if isinstance(obj, (list, tuple)):
        return type(obj)(map(serialize, obj))
    if isinstance(obj, dict):
        return {key: serialize(value) for key, value in obj.items()}
    if isinstance(obj, tf.TensorShape):
        return obj.as_list()
    if isinstance(obj, tf.DType):
        return obj.name
    if isinstance(obj, bytes):
        return {"class_name": "__bytes__", "config": {"value": obj.decode("utf-8")}}
    if isinstance(obj, tf.Tensor):
        value = {"value": obj.numpy().tolist(), "dtype": obj.dtype.name}
        return {"class_name": "__tensor__", "config": value}
    if not hasattr(obj, "get_config"):
        if is_function(obj):
            return _of_function(obj)
        raise TypeError(
            f"Cannot serialize object {obj} of type {type(obj)}. To be serializable, a "
            "class must implement the `get_config()` method."
        )
    cls = type(obj)
    ours = cls.__module__.startswith("headrace.")
    config = {
        "module": public_module(cls),
        "class_name": cls.__name__,
        "config": obj.get_config(),
        "registered_name": vars(cls).get("_registered_as")
        if ours
        else get_registered_name(cls),
    }
    for key in ("build_config", "compile_config"):
        told = getattr(obj, f"get_{key}", None)
        value = None if told is None else told()
        if value is not None:
            config[key] = value
    return config


def is_function(item):
    """Whether it is known by a name alone."""
    return (
        callable(item) and hasattr(item, "__name__") and not hasattr(item, "get_config")
    )


def _of_function(function):
    kind = type(function).__name__ if inspect.isbuiltin(function) else "function"
    return {
        "module": "builtins",
        "class_name": kind,
        "config": function.__name__,
        "registered_name": kind,
    }


def function_name(item):
    """The name of a function, alone; of other objects what serialize() gives."""
    return item.__name__ if is_function(item) else serialize(item)


def serializer(name):
    """serialize() of a namespace, which calls what it is given by that name."""

    def call(use_legacy_format, **given):
        made = serialize(given[name])
        if use_legacy_format and isinstance(made, dict):
            return {key: made[key] for key in ("class_name", "config")}
        return made

    doc = f"""A name or a dict that deserialize() makes the {name} of again.

    With use_legacy_format a dict has class_name and config alone.
    """
    parameters = signatures.from_text(f"{name}, use_legacy_format=False")
    return signatures.function_of(signatures.named("serialize", doc), parameters, call)


def overrides(cls, name):
    """Whether a class of the user's has a method of its own."""
    return any(
        name in vars(part)
        for part in cls.__mro__
        if part is not object and not part.__module__.startswith("headrace.")
    )


def config_names(cls):
    """What the configurations of a class of ours hold, in order.

    `_config_names`, where the class or a base says it; else the parameters of the
    constructors, bases' first, without those that a `_config_without` names. Classes of
    the user's add nothing: they have get_config.
    """
    if hasattr(cls, "_config_names"):
        return list(cls._config_names)
    names, without = [], set()
    for part in reversed(cls.__mro__):
        own = vars(part)
        if part.__module__.startswith("headrace.keras"):
            without.update(own.get("_config_without", ()))
            if "__init__" in own:
                _, *parameters = inspect.signature(own["__init__"]).parameters.values()
                names += [
                    p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD
                ]
    return [name for name in dict.fromkeys(names) if name not in without]


def config_of(item):
    """The configuration of an object of ours: the arguments that it was made with.

    Each is kept as the attribute of its name, or as `_config_attributes` says. A class
    of the user's with a get_config says itself what it deleted, or never made because
    it passes a constructor of ours by.
    """
    attributes = getattr(item, "_config_attributes", {})
    names = config_names(type(item))
    if overrides(type(item), "get_config"):
        names = [name for name in names if hasattr(item, attributes.get(name, name))]
    kept = {name: getattr(item, attributes.get(name, name)) for name in names}
    of_function = _names.module("keras.activation").serialize
    return {
        k: of_function(v) if is_function(v) else serialize(v) if callable(v) else v
        for k, v in kept.items()
    }


def classes_of(names, base):
    """{name: class} of the public subclasses of `base` in a module's names."""
    return {
        name: item
        for name, item in names.items()
        if inspect.isclass(item) and issubclass(item, base) and item is not base
        if name[0] != "_"
    }


def functions_of(names):
    """{name: function} of the public functions among a module's names."""
    return {n: f for n, f in names.items() if inspect.isfunction(f) and n[0] != "_"}


def find(name, names, kind, custom_objects=None):
    """What `name` is called in custom objects or `names`."""
    for table in (custom_objects or {}, _custom, names):
        if name in table:
            return table[name]
    raise ValueError(
        f"Unknown {kind}: '{name}'. Please ensure you are using a "
        "`keras.utils.custom_object_scope` and that this object is included in the "
        "scope. See https://www.tensorflow.org/guide/keras/save_and_serialize"
        "#registering_the_custom_object for details."
    )


def deserialize(config, names, kind, custom_objects=None):
    """The object of a configuration, or of a name among `names`."""
    if isinstance(config, str):
        found = find(config, names, kind, custom_objects)
        return found() if inspect.isclass(found) else found
    if not isinstance(config, dict) or "class_name" not in config:
        raise ValueError(f"Improper config format for {kind}: {config}")
    if config["class_name"] == "function":
        return find(config["config"], names, kind, custom_objects)
    name = config.get("registered_name") or config["class_name"]
    try:
        cls = find(name, names, kind, custom_objects)
    except ValueError:
        cls = find(config["class_name"], names, kind, custom_objects)
    inner = dict(config.get("config") or {})
    if not hasattr(cls, "from_config"):
        return cls(**inner)
    if "custom_objects" in inspect.signature(cls.from_config).parameters:
        return cls.from_config(inner, custom_objects=custom_objects)
    with CustomObjectScope(custom_objects or {}):
        return cls.from_config(inner)


def getter(names, kind):
    """The functions get(identifier) and deserialize of a namespace of these names: a dict,
    or a function that gives the one that holds now."""

    def of(config, custom_objects=None, use_legacy_format=False):
        known = names() if callable(names) else names
        return deserialize(config, known, kind, custom_objects)

    def get(identifier):
        if identifier is None:
            return None
        if isinstance(identifier, (str, dict)):
            return of(identifier)
        if callable(identifier):
            return identifier() if inspect.isclass(identifier) else identifier
        raise ValueError(f"Could not interpret {kind} identifier: {identifier}")

    of.__doc__ = f"The {kind} of a name or a config; ValueError for an unknown one."
    get.__doc__ = f"""A {kind} of its name, config, class or itself; None for None.

    ValueError for anything else, or where the name is unknown.
    """
    return get, of


def serialize_legacy(instance):
    """The name of a function, or a dict of class_name and config alone."""
    if instance is None or is_function(instance):
        return instance and instance.__name__
    if not hasattr(instance, "get_config"):
        raise ValueError(
            f"Cannot serialize {instance} because it doesn't implement `get_config()`."
        )
    made = serialize(instance)
    return {key: made[key] for key in ("class_name", "config")}


def deserialize_legacy(
    identifier, module_objects=None, custom_objects=None, printable_module_name="object"
):
    """What serialize_legacy() gave a name or dict of, found in `custom_objects`, what is
    registered, or `module_objects`: {name: class or function}. None and functions as they
    are."""
    if identifier is None or inspect.isfunction(identifier):
        return identifier
    if not isinstance(identifier, (str, dict)):
        raise ValueError(f"Could not interpret serialized object: {identifier}")
    if isinstance(identifier, dict) and not {"class_name", "config"} <= set(identifier):
        raise ValueError(
            f"Improper config format for {identifier}. Expecting python dict contains "
            "`class_name` and `config` as keys"
        )
    names = module_objects or {}
    return deserialize(identifier, names, printable_module_name, custom_objects)
