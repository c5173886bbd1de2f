"""Classes that say what they take in a line, and classes that are rows of a table."""

import inspect
import re

from headrace.framework.support import signatures

_PLAIN = inspect.Parameter.POSITIONAL_OR_KEYWORD


def takes(text, **fixed):
    """Decorates a class: gives it a constructor of the parameters in a text.

    Those that a base's constructor has by name go there, with `fixed` and what **kwargs
    holds. The others are kept as attributes of their names, or of those that
    `_config_attributes` says: as they are, or what a method `_kept(self, name, value)`
    makes of them.

    A class may have methods for what else there is to do: `_before(self, given)` ahead
    of all, which may change the dict of arguments, and `_begin(self)` behind all; with
    `_further(self, arguments)` it gets what **kwargs holds, and the base does not.
    """

    def decorate(cls):
        parameters = signatures.from_text(f"self, {text}")
        return with_constructor(cls, parameters, fixed)

    return decorate


def with_constructor(cls, parameters, fixed=None, handed_on=()):
    """The class with a constructor as takes() describes it.

    `handed_on` are further names that the base takes, among its **kwargs.
    """
    handed_on = {*handed_on, *_names_of_bases(cls)}
    named = [p.name for p in parameters[1:] if p.kind is _PLAIN]
    own = [name for name in named if name not in handed_on]

    def begin(self, **given):
        if "_further" in vars(cls):
            further = [name for name in given if name not in named]
            cls._further(self, {name: given.pop(name) for name in further})
        if "_before" in vars(cls):
            cls._before(self, given)
        kept = {name: given.pop(name) for name in own if name in given}
        super(cls, self).__init__(**(fixed or {}), **given)
        change = getattr(self, "_kept", _as_it_is)
        attributes = getattr(self, "_config_attributes", {})
        for name, value in kept.items():
            setattr(self, attributes.get(name, name), change(name, value))
        if "_begin" in vars(cls):
            cls._begin(self)

    like = signatures.named("__init__", module=cls.__module__)
    like.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = signatures.function_of(like, parameters, begin)
    return cls


def _as_it_is(name, value):
    return value


def _names_of_bases(cls):
    """The names that the constructors of a class's bases have."""
    return {
        p.name
        for base in cls.__mro__[1:-1]
        if "__init__" in vars(base)
        for p in inspect.signature(base.__init__).parameters.values()
        if p.kind is _PLAIN
    }


def add_classes(scope, table):
    """Adds the classes of a table to a module, whose globals() are `scope`.

    A row is "Name(Base, attribute=value)", bases first; the indented line under it is
    the docstring.
    """
    rows = table.strip().split("\n")
    for row, doc in zip(rows[::2], rows[1::2], strict=True):
        name, _, of = row.partition("(")
        bases, members = eval(f"_given({of}", {**scope, "_given": _given})
        members.update(__doc__=doc.strip(), __module__=scope["__name__"])
        if "__init__" in members:
            _as_of(members["__init__"], name, scope)
        scope[name] = type(bases[0])(name, bases, members)


def _as_of(init, name, scope):
    """A constructor that says whose it is."""
    init.__qualname__, init.__module__ = f"{name}.__init__", scope["__name__"]
    return init


def _given(*bases, **members):
    """What stands between a row's brackets."""
    return bases, members


def add_function_classes(scope, base, table, doc, common):
    """Adds subclasses of `base` around one function each to a module; returns these.

    A row is "Name function(parameters)", lines that are indented go on with it. The
    constructor hands its arguments on:
    base.__init__(self, function, **arguments). Without parameters in the row it has
    those that common(function) says, a list. The docstring is `doc` with the function's
    name in it, and what the function's own says.
    """
    functions = []
    for row in table.replace("\n    ", " ").strip().split("\n"):
        name, function, text = _ROW.fullmatch(row).groups()
        function = eval(function, scope)
        parameters = signatures.from_text(text) if text else common(function)
        init = _as_of(_hands_on(base, function, parameters), name, scope)
        members = {"__init__": init, "__module__": scope["__name__"]}
        about = (doc.format(function.__name__), inspect.getdoc(function) or "")
        members["__doc__"] = "\n\n".join(filter(None, about))
        scope[name] = type(name, (base,), members)
        functions.append(function)
    return functions


_ROW = re.compile(r"(\w+) ([\w.]+)(?:\((.*)\))?")


def with_defaults(base, **changed):
    """The constructor of a base with other defaults for some of its parameters."""
    parameters = [
        p.replace(default=changed.get(p.name, p.default))
        for p in signatures.parameters_of(base.__init__)
    ]

    def begin(self, **given):
        base.__init__(self, **given)

    return signatures.function_of(signatures.named("__init__"), parameters, begin)


class OfConstructor:
    """As `__signature__` of a class: what inspect.signature() says of the class is what
    its constructor takes, whatever __new__ a base has."""

    def __get__(self, instance, cls):
        if instance is not None:
            raise AttributeError("__signature__")
        own = signatures.parameters_of(cls.__init__)[1:]
        return inspect.Signature(own)


def _hands_on(base, function, parameters):
    def begin(self, **given):
        base.__init__(self, function, **given)

    like, own = signatures.named("__init__"), signatures.parameter("self")
    return signatures.function_of(like, [own, *parameters], begin)
