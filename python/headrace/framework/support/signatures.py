"""Functions whose parameters are put together of what several functions share."""

import collections
import functools
import inspect


def parameter(name, default=inspect.Parameter.empty):
    """A parameter that is given by place or by name."""
    return inspect.Parameter(
        name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default
    )


def parameters_of(function):
    """The parameters of a function, in order."""
    return list(inspect.signature(function).parameters.values())


def function_of(like, parameters, call, targets=None):
    """A function of these parameters, with the name and the docstring of `like`.

    It hands them to `call`: by their names, `self`, `cls` and *args by place, **kwargs as they
    came. It is compiled, so that wrong arguments are refused in Python's own words.
    With `targets`, other names for them, it hands them to what call() finds.
    """
    to = "_call" if targets is None else "_call()"
    shown, passed = [], []
    for p in parameters:
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f"=_defaults['{p.name}']"
        shown.append(stars + p.name + default)
        by_place = stars or p.name in ("self", "cls")
        passed.append(
            stars + p.name
            if by_place
            else f"{(targets or {}).get(p.name, p.name)}={p.name}"
        )
    defaults = {p.name: p.default for p in parameters}
    # By its module AutoGraph knows whose the function is.
    scope = {"__name__": __name__, "_call": call, "_defaults": defaults}
    text = f"def {like.__name__}({', '.join(shown)}): return {to}({', '.join(passed)})"
    # Its file is one of this package, so that stacks of user code leave it out.
    exec(compile(text, f"{__file__}: {like.__name__}", "exec"), scope)
    made = functools.update_wrapper(scope[like.__name__], like)
    del made.__wrapped__  # its parameters are others
    return made


def from_text(text, **values):
    """The parameters of a text such as "units, activation='tanh', **kwargs"; names of
    `values` in it stand for these."""
    exec(f"def of({text}): pass", values)
    return parameters_of(values["of"])


def having(text, **values):
    """Decorates a function, which gets the parameters in a text by their names."""
    parameters = from_text(text, **values)
    return lambda function: function_of(function, parameters, function)


def constructor(text, begin, **values):
    """An __init__ of the parameters in a text, which `begin` gets: begin(self, a=a);
    names of `values` in it stand for these."""
    return function_of(named("__init__"), from_text(f"self, {text}", **values), begin)


def _keep(self, given, prefix):
    for name, value in given.items():
        setattr(self, prefix + name, value)


def keeping(text, prefix="_"):
    """Decorates an __init__(self), which gets the parameters of a text: each is kept as
    the attribute of its name behind the prefix before the __init__ goes on."""

    def decorate(then):
        def begin(self, **given):
            _keep(self, given, prefix)
            then(self)

        return function_of(then, from_text(f"self, {text}"), begin)

    return decorate


def keeps(text, prefix=""):
    """An __init__ that keeps each parameter of a text as the attribute of its name."""

    def begin(self, **given):
        _keep(self, given, prefix)

    return constructor(text, begin)


def tuple_of(name, text, **values):
    """A namedtuple of the parameters in a text. A class made of it may check what it is
    given, and change it, in a method _check(given), which gets a dict."""
    parameters = from_text(text, **values)
    made = collections.namedtuple(name, [p.name for p in parameters])
    new = made.__new__

    def begin(cls, **given):
        if hasattr(cls, "_check"):
            cls._check(given)
        return new(cls, **given)

    like = named("__new__")
    like.__qualname__ = f"{name}.__new__"
    parameters.insert(0, parameter("cls"))
    made.__new__ = staticmethod(function_of(like, parameters, begin))
    return made


def called(function, name, doc):
    """The function, with that name and docstring from now on."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def named(name, doc=None, module=__name__):
    """What function_of takes the name and the docstring of."""

    def like():
        pass

    like.__module__ = module
    return called(like, name, doc)


def taking(parameters, before=None):
    """Decorates a function of **kwargs: these parameters, by their names, are among
    them. They come last, or before the parameter of that name."""

    def decorate(function):
        own = parameters_of(function)
        if own and own[-1].kind is own[-1].VAR_KEYWORD:
            own.pop()
        names = [p.name for p in own]
        place = names.index(before) if before else len(own)
        own[place:place] = [p for p in parameters if p.name not in names]
        return function_of(function, own, function)

    return decorate


def twin(function, name, doc, text, **fixed):
    """`function` under another name, with the parameters in a text and others fixed.

    Parameters without a default in the text have the function's own.
    """
    own = {p.name: p for p in parameters_of(function)}
    parameters = [
        own[p.name] if p.default is p.empty and p.name in own else p
        for p in from_text(text)
    ]

    def call(*args, **given):
        return function(*args, **given, **fixed)

    return function_of(named(name, doc, function.__module__), parameters, call)
