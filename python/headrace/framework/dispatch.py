"""Dispatch of public functions on arguments that the functions do not know.

Every public function that makes operations is a DispatchedFunction (native). It asks
`_before` when an argument is of a type that somebody registered for, and `_after` when
it has raised. docs/design/python.md tells the whole.
"""

import contextlib
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
        parameters = inspect.signature(api).parameters
        self.parameters = list(parameters)
        self.required = []  # of the parameters in front of *args and **kwargs
        self.takes_more = False  # whether it has these
        for p in parameters.values():
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                self.takes_more = True
                break
            if p.default is p.empty:
                self.required.append(p.name)


_kinds = {}  # by DispatchedFunction
_elementwise = {"unary": {}, "binary": {}, "assert": {}}  # {types: handler}
_global_dispatchers = []


def _kind(api):
    kind = _kinds.get(api)
    if kind is None:
        if not isinstance(api, _headrace.DispatchedFunction):
            raise ValueError(f"{api} does not support dispatch.")
        kind = _kinds[api] = _Kind(api)
    return kind


def stands_for(made, api):
    """A DispatchedFunction is another one now: what was registered for that is its."""
    _kinds[made] = _kind(api)


# --- Types of arguments.


class Matcher:
    """Whether values are of an annotated type: a class, a Union or a List."""

    def __init__(self, annotation):
        self.annotation = annotation
        origin = typing.get_origin(annotation)
        self.parts = [Matcher(a) for a in typing.get_args(annotation)]
        self.is_union = origin in (typing.Union, types.UnionType)
        self.is_list = isinstance(origin, type) and issubclass(origin, list)
        if not (self.is_union or self.is_list) and not isinstance(annotation, type):
            raise ValueError(
                f"Type annotation {annotation} is not currently supported by dispatch.  "
                "Supported annotations: type objects,  List[...], and Union[...]"
            )

    def __call__(self, value):
        if self.is_union:
            return any(p(value) for p in self.parts)
        if self.is_list:
            inner = self.parts[0]
            return isinstance(value, (list, tuple)) and all(inner(v) for v in value)
        return isinstance(value, self.annotation)

    @functools.cached_property
    def types(self):
        """The classes that are named, without those that functions know anyhow."""
        if self.parts:
            return tuple(t for p in self.parts for t in p.types)
        return () if self.annotation in _PLAIN else (self.annotation,)


_PLAIN = (
    *(_headrace.Tensor, _headrace.EagerTensor, _headrace.SymbolicTensor),
    *(_headrace.VariableBase, object, int, float, str, bytes, bool, complex),
    *(list, tuple, dict, type(None)),
)


def _watch(matchers):
    for matcher in matchers:
        for t in matcher.types:
            _headrace.watch_type(t)


def _foreign(value, matcher):
    """True where a part of the value is of a type that dispatch is for."""
    if isinstance(value, (list, tuple)):
        return any(_foreign(v, matcher) for v in value)
    return isinstance(value, matcher.types)


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
    for kind, functions in _instead:
        if api._row in functions and _holds(kind, (*args, *kwargs.values())):
            return functions[api._row](*args, **kwargs)
    found = [_converted(x) for x in (*args, *kwargs.values())]
    if any(is_new for is_new, _ in found):
        values = [x for _, x in found]
        return api(*values[: len(args)], **dict(zip(kwargs, values[len(args) :])))
    kind = _kind(api)
    given = _bound(kind, args, kwargs)
    if given is None:
        return NOT_SUPPORTED
    found = [target for fits, target in kind.targets if fits(given)]
    found += _elementwise_targets(api, kind, given)
    if kind.targets or found:
        _check_call(kind, given)
    # A handler for any object (ragged tensors have one) leaves the word to others.
    found = [f for f in found if not f.takes_any] or found
    if any(f.target is not found[0].target for f in found):
        raise ValueError(
            "Multiple dispatch targets that were registered with tf.dispatch_for "
            f"({found[0].target} and {found[-1].target}) match the arguments to "
            f"{api.__name__}"
        )
    if found:
        return found[0](*args, **kwargs)
    for fits, target in api_kinds.targets_of(api):
        if fits(given):
            if target[0] == "+":
                return _function(target[1:])(api, *args, **kwargs)
            return _function(target)(*args, **kwargs)
    return NOT_SUPPORTED


_function = functools.cache(_names.load)


def _check_call(kind, given):
    """TypeError for arguments that the API does not have, or that are missing."""
    for name in kind.required:
        if name not in given:
            raise TypeError("Missing required positional argument")
    for name in () if kind.takes_more else given:
        if name not in kind.parameters:
            raise TypeError(f"Got an unexpected keyword argument '{name}'")


def _elementwise_targets(api, kind, given):
    """What handlers of element-wise functions answer with."""
    what = api_kinds.kind_of(api)
    if what is None:
        return []
    n = 1 if what == "unary" else 2
    operands = [given.get(p) for p in kind.parameters[:n]]
    rest = {k: v for k, v in given.items() if k not in kind.parameters[:n]}
    found = []
    for matchers, handler in _elementwise[what].items():
        if all(m(x) for m, x in zip(matchers, operands)) and any(
            _foreign(x, m) for m, x in zip(matchers, operands)
        ):
            takes_any = any(m.annotation is object for m in matchers)
            found.append(_Handling(api, handler, operands, rest, takes_any))
    return found


class _Handling:
    """A call of an element-wise function that a handler answers."""

    def __init__(self, api, handler, operands, rest, takes_any):
        self._api, self.target, self.takes_any = api, handler, takes_any
        self._operands, self._rest = operands, rest

    def __call__(self, *args, **kwargs):
        api, rest = self._api, self._rest
        if rest:
            return self.target(lambda *values: api(*values, **rest), *self._operands)
        return self.target(api, *self._operands)


class _Target:
    """A function that answers for an API, called with what the API was called with."""

    takes_any = False

    def __init__(self, target, takes_name):
        self.target, self._takes_name = target, takes_name

    def __call__(self, *args, **kwargs):
        if self._takes_name:
            return self.target(*args, **kwargs)
        own = len(inspect.signature(self.target).parameters)
        name = kwargs.pop("name", args[own] if len(args) > own else None)
        with contextlib.nullcontext() if name is None else name_scope(name):
            return self.target(*args[:own], **kwargs)


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
        hints = typing.get_type_hints(target)
        annotated = {p: t for p, t in hints.items() if p not in ("return", "name")}
        if not annotated:
            raise ValueError(
                "The dispatch_for_api decorator must be called with at least one "
                "signature, or applied to a function that has type annotations on its "
                "parameters."
            )
        signatures = [annotated]
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
    return result


def _with_name(kind, target):
    """The target; where it has no `name` and the API does, one that takes it."""
    signature = inspect.signature(target)
    own = list(signature.parameters.values())
    kinds = [p.kind for p in own]
    names = [p.name for p in own]
    takes_all = kinds == [
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    ]
    if takes_all or names == kind.parameters:
        return _Target(target, True)
    if kind.parameters[-1:] == ["name"] and "name" not in names:
        if names == kind.parameters[:-1]:
            return _Target(target, False)
        plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if all(k == plain for k in kinds):
            own.append(inspect.Parameter("name", plain, default=None))
            signature = signature.replace(parameters=own)
    raise ValueError(
        f"Dispatch function's signature {signature} does not match API's signature "
        f"{inspect.signature(kind.api)}."
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


_instead = []  # (type, {row: function})


def call_instead(kind, functions):
    """Where an argument is of the type, functions[row] answers for the public function of
    that row of api_names.txt, before anything else is asked."""
    _instead.append((kind, functions))
    _headrace.watch_type(kind)


def _holds(kind, values):
    return any(
        _holds(kind, v) if isinstance(v, (list, tuple)) else isinstance(v, kind)
        for v in values
    )


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
    `Union[...]` of them; without any, the function's annotations are the signature. A
    call fits where an argument is of a type other than tensors' and Python's own. The
    function has the API's parameters; it may leave out `name`. ValueError where the
    parameters do not fit or `api` is not a public function that makes operations; calls
    raise it where several functions fit.
    """
    kind = _kind(api)
    if not all(isinstance(s, dict) for s in signatures):
        raise TypeError(
            "signatures must be dictionaries mapping parameter names to type annotations."
        )

    def decorate(target):
        wanted_target = _with_name(kind, target)
        wanted = _signatures(kind, target, signatures)
        for signature in wanted:
            _watch(signature.values())
        row = (
            lambda given: any(_signature_fits(s, given) for s in wanted),
            wanted_target,
        )
        kind.targets.append(row)
        _registered.setdefault(target, []).append(lambda: kind.targets.remove(row))
        return target

    return decorate


def _for_elementwise(what, noun, annotations):
    matchers = tuple(Matcher(a) for a in annotations)
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
        stands_for(outer, inner)
        return outer

    return decorate if target is None else decorate(target)


def _listed(parameter, value, iterables):
    if parameter in iterables and hasattr(value, "__next__"):
        return list(value)
    return value
