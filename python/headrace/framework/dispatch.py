"""Dispatch of public functions on arguments that the functions do not know.

Every public function that makes operations is a DispatchedFunction (native). It asks
`_before` when an argument is of a type that somebody registered for, and `_after` when
it has raised. docs/design/python.md tells the whole.
"""

import functools
import inspect
import types
import typing

from headrace import _names
from headrace._load import _headrace
from headrace.framework.name_scopes import name_scope
from headrace.framework.support import api_kinds

NOT_SUPPORTED = NotImplemented


class _Kind:
    """What dispatchers know of one function."""

    def __init__(self, api):
        self.api = api
        self.targets = []  # (does the call fit, function), asked in turn
        self.dispatchers = []  # OpDispatchers
        self.parameters = list(inspect.signature(api).parameters)


_kinds = {}  # by DispatchedFunction
_elementwise = {"unary": {}, "binary": {}, "assert": {}}  # {types: handler}
_global_dispatchers = []


def _is_api(api):
    return isinstance(api, _headrace.DispatchedFunction)


def _kind(api):
    kind = _kinds.get(api)
    if kind is None:
        if not _is_api(api):
            raise ValueError(f"{api} does not support dispatch.")
        kind = _kinds[api] = _Kind(api)
    return kind


# --- Types of arguments.


class Matcher:
    """Whether values are of an annotated type: a class, a Union or a List."""

    def __init__(self, annotation):
        self.annotation = annotation
        origin = typing.get_origin(annotation)
        self.parts = [Matcher(a) for a in typing.get_args(annotation)]
        self.is_union = origin in (typing.Union, types.UnionType)
        self.is_list = isinstance(origin, type) and issubclass(origin, (list, tuple))
        if not (self.is_union or self.is_list) and not isinstance(annotation, type):
            raise ValueError(
                f"Type annotation {annotation} is not currently supported by dispatch. "
                "Supported annotations: type objects, List[...], and Union[...]"
            )

    def __call__(self, value):
        if self.is_union:
            return any(p(value) for p in self.parts)
        if self.is_list:
            inner = self.parts[0]
            return isinstance(value, (list, tuple)) and all(inner(v) for v in value)
        return isinstance(value, self.annotation)

    def types(self):
        """The classes that are named, without those that functions know anyhow."""
        if self.parts:
            return [t for p in self.parts for t in p.types()]
        return [] if self.annotation in _PLAIN else [self.annotation]


_PLAIN = (
    *(_headrace.Tensor, _headrace.EagerTensor, _headrace.SymbolicTensor),
    *(_headrace.VariableBase, object, int, float, str, bytes, bool, complex),
    *(list, tuple, dict, type(None)),
)


def _watch(matchers):
    for matcher in matchers:
        for t in matcher.types():
            _headrace.watch_type(t)


def _foreign(value, matcher):
    """True where a part of the value is of a type that dispatch is for."""
    if isinstance(value, (list, tuple)):
        return any(_foreign(v, matcher) for v in value)
    return any(isinstance(value, t) for t in matcher.types())


def _bound(kind, args, kwargs):
    """{parameter: argument}, or None where the call does not fit."""
    if len(args) > len(kind.parameters):
        return None
    given = dict(zip(kind.parameters, args))
    if not given.keys().isdisjoint(kwargs):
        return None
    given.update(kwargs)
    return given


def _signature_fits(signature, given):
    if not all(p in given and m(given[p]) for p, m in signature.items()):
        return False
    return any(_foreign(given[p], m) for p, m in signature.items())


# --- Calls.


def _before(api, args, kwargs):
    found = [_converted(x) for x in (*args, *kwargs.values())]
    if any(is_new for is_new, _ in found):
        values = [x for _, x in found]
        return api(*values[: len(args)], **dict(zip(kwargs, values[len(args) :])))
    kind = _kind(api)
    given = _bound(kind, args, kwargs)
    if given is None:
        return NOT_SUPPORTED
    for fits, target in kind.targets:
        if fits(given):
            return target(*args, **kwargs)
    for fits, target in api_kinds.targets_of(api):
        if fits(given):
            if target[0] == "+":
                return _function(target[1:])(api, *args, **kwargs)
            return _function(target)(*args, **kwargs)
    return _by_elements(api, kind, given)


_function = functools.cache(_names.load)


def _by_elements(api, kind, given):
    what = api_kinds.kind_of(api)
    if what is None:
        return NOT_SUPPORTED
    n = 1 if what == "unary" else 2
    operands = [given.get(p) for p in kind.parameters[:n]]
    for matchers, handler in _elementwise[what].items():
        if all(m(x) for m, x in zip(matchers, operands)) and any(
            _foreign(x, m) for m, x in zip(matchers, operands)
        ):
            rest = {k: v for k, v in given.items() if k not in kind.parameters[:n]}
            if not rest:
                return handler(api, *operands)
            return handler(lambda *values: api(*values, **rest), *operands)
    return NOT_SUPPORTED


def _after(api, args, kwargs, error):
    kind = _kind(api)
    result = _before(api, args, kwargs)  # lists may not have been looked through
    if result is not NOT_SUPPORTED:
        return result
    for dispatcher in kind.dispatchers:
        result = dispatcher.handle(args, kwargs)
        if result is not NOT_SUPPORTED:
            return result
    for dispatcher in _global_dispatchers:
        result = dispatcher.handle(api, args, kwargs)
        if result is not NOT_SUPPORTED:
            return result
    explain = getattr(error, "in_function", None)
    if explain is not None and api.__name__ != "convert_to_tensor":
        raise explain(_names.main_name(api._row) or api.__name__) from None
    return NOT_SUPPORTED


def call_operator(public, x, y):
    """What dispatchers give for an operator whose function is `public`."""
    return _before(_names.public(public), (x, y), {})


def _set_dispatchers(always=False):
    _headrace.set_dispatchers(_before, _after, always)


_set_dispatchers()

# --- Registering.


def _signatures(kind, target, signatures):
    if not signatures:
        signatures = [
            {
                p: t
                for p, t in typing.get_type_hints(target).items()
                if p not in ("return", "name")
            }
        ]
    return [_signature(kind, s) for s in signatures]


def _signature(kind, signature):
    result = {}
    for key, annotation in signature.items():
        name = key
        if isinstance(key, int) and key < len(kind.parameters):
            name = kind.parameters[key]
        if name not in kind.parameters:
            raise ValueError(
                f"signature includes annotation for unknown parameter {key!r}."
            )
        result[name] = Matcher(annotation)
    if not any(m.types() for m in result.values()):
        raise ValueError(
            "The signature of a dispatch target must name a type other than Tensor and "
            f"Python's own; got {signature}"
        )
    return result


def _with_name(kind, target):
    """The target, as a function with `name` where the API has that."""
    own = list(inspect.signature(target).parameters)
    if own == kind.parameters:
        return target
    if own + ["name"] == kind.parameters:

        def named(*args, name=None, **kwargs):
            if len(args) > len(own):
                *args, name = args
            if name is None:
                return target(*args, **kwargs)
            with name_scope(name):
                return target(*args, **kwargs)

        return named
    raise ValueError(
        f"Dispatch function's signature {inspect.signature(target)} does not match API's "
        f"signature {inspect.signature(kind.api)}."
    )


_registered = {}  # by target: functions that take it out again


def add_functions(kind, table):
    """What functions do with arguments of a type of ours: see api_kinds.add_targets."""
    api_kinds.add_targets(lambda x: isinstance(x, kind), table)
    _headrace.watch_type(kind)


def first_of(kind, args, kwargs):
    """(the first argument, which is of the type, the others by place, by name)."""
    if args:
        return args[0], args[1:], kwargs
    name = next(k for k, v in kwargs.items() if isinstance(v, kind))
    return kwargs[name], (), {k: v for k, v in kwargs.items() if k != name}


_converters = []  # (type, function)


def convert_first(kind, convert):
    """Arguments of the type become what `convert` gives before anything is asked."""
    _converters.append((kind, convert))
    _headrace.watch_type(kind)


def _converted(x):
    """(whether something was converted, the argument)."""
    for kind, convert in _converters:
        if isinstance(x, kind):
            return True, convert(x)
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        found = [_converted(v) for v in x]
        if any(is_new for is_new, _ in found):
            return True, [v for _, v in found]
    return False, x


def dispatch_for_api(api, *signatures):
    """A decorator: the function answers for `api` where arguments have these types.

    Each signature is a dict from parameters (names or places) to types, `List[...]` or
    `Union[...]` of them; without any, the function's annotations are the signature. The
    function has the API's parameters; it may leave out `name`. ValueError where the
    parameters do not fit or `api` is not a public function that makes operations.
    """
    kind = _kind(api)

    def decorate(target):
        wanted = _signatures(kind, target, signatures)
        for signature in wanted:
            _watch(signature.values())
        row = (
            lambda given: any(_signature_fits(s, given) for s in wanted),
            _with_name(kind, target),
        )
        kind.targets.append(row)
        _registered.setdefault(target, []).append(lambda: kind.targets.remove(row))
        return target

    return decorate


def _for_elementwise(what, noun, annotations):
    matchers = tuple(Matcher(a) for a in annotations)
    if not any(m.types() for m in matchers):
        raise ValueError(f"No type of {annotations} is one that dispatch is for")
    shown = annotations[0] if len(annotations) == 1 else annotations

    def decorate(handler):
        handlers = _elementwise[what]
        for known, other in handlers.items():
            if tuple(m.annotation for m in known) == annotations:
                raise ValueError(
                    f"A {noun} dispatch handler ({other}) has already been registered "
                    f"for {shown}."
                )
        handlers[matchers] = handler
        _watch(matchers)
        _registered.setdefault(handler, []).append(lambda: handlers.pop(matchers))
        return handler

    return decorate


def dispatch_for_unary_elementwise_apis(x_type):
    """A decorator: `handler(api_func, x)` answers for every unary elementwise function
    whose first argument is an `x_type`; `api_func` takes that argument alone.

    ValueError where a handler for the type is registered already.
    """
    return _for_elementwise("unary", "unary elementwise", (x_type,))


def dispatch_for_binary_elementwise_apis(x_type, y_type):
    """A decorator: `handler(api_func, x, y)` answers for every binary elementwise
    function whose first two arguments are of these types.

    ValueError where a handler for the types is registered already.
    """
    return _for_elementwise("binary", "binary elementwise", (x_type, y_type))


def dispatch_for_binary_elementwise_assert_apis(x_type, y_type):
    """A decorator: `handler(assert_func, x, y)` answers for every assertion about two
    tensors whose first two arguments are of these types.

    ValueError where a handler for the types is registered already.
    """
    return _for_elementwise("assert", "binary elementwise assert", (x_type, y_type))


def unregister_dispatch_for(dispatch_target):
    """Takes out a function that a `dispatch_for_*` decorator registered.

    ValueError where none did.
    """
    try:
        undo = _registered.pop(dispatch_target)
    except (KeyError, TypeError):
        raise ValueError(
            f"Function {dispatch_target} was not registered using a "
            "`@dispatch_for_*` decorator."
        ) from None
    for remove in undo:
        remove()


class OpDispatcher:
    """Answers for one function whose call has raised TypeError or ValueError.

    Subclasses write `handle(args, kwargs)`, which gives NOT_SUPPORTED where the arguments
    are none of theirs.
    """

    NOT_SUPPORTED = NOT_SUPPORTED

    def handle(self, args, kwargs):
        """The result of the call, or NOT_SUPPORTED."""
        return self.NOT_SUPPORTED

    def register(self, op):
        """Makes this dispatcher one that is asked for `op`, after those before it."""
        _kind(op).dispatchers.append(self)
        _set_dispatchers(always=True)


class GlobalOpDispatcher:
    """Answers for any function whose call has raised TypeError or ValueError.

    Subclasses write `handle(op, args, kwargs)`, which gives NOT_SUPPORTED where the
    arguments are none of theirs.
    """

    NOT_SUPPORTED = NOT_SUPPORTED

    def handle(self, op, args, kwargs):
        """The result of the call, or NOT_SUPPORTED."""
        raise NotImplementedError(f"{type(self).__name__}.handle")

    def register(self):
        """Makes this dispatcher one that is asked for every function."""
        _global_dispatchers.append(self)
        _set_dispatchers(always=True)


def add_dispatch_support(target=None, iterable_parameters=None):
    """Decorates a function of one's own, so that dispatchers may answer for it.

    The parameters named in `iterable_parameters` may be any iterables: they are made
    lists before dispatchers look at them.
    """

    def decorate(function):
        inner = _headrace.dispatched(function, None)
        if not iterable_parameters:
            return inner
        parameters = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def with_lists(*args, **kwargs):
            given = dict(zip(parameters, args))
            rest = args[len(given) :]
            lists = [_listed(p, v, iterable_parameters) for p, v in given.items()]
            kwargs = {p: _listed(p, v, iterable_parameters) for p, v in kwargs.items()}
            return inner(*lists, *rest, **kwargs)

        outer = _headrace.dispatched(with_lists, None)
        _kinds[outer] = _kind(inner)
        return outer

    return decorate if target is None else decorate(target)


def _listed(parameter, value, iterables):
    if parameter in iterables and hasattr(value, "__next__"):
        return list(value)
    return value
