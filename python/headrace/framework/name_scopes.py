"""tf.name_scope: names of graph nodes and, in eager mode, of variables."""

import contextlib
import functools
import sys
import threading

from headrace._load import _headrace
from headrace.context import stack, strategies
from headrace.context.properties import read_only
from headrace.framework import scopes

_state = strategies.carry(threading.local())


def eager_scope():
    """The name scope of eager code on this thread: "" or "a/b/"."""
    return getattr(_state, "scope", "")


class name_scope:
    """A context manager: names made inside start with `name/`.

    Attributes:
      name: the name as it was given; `with ... as` gives the full one ("outer/name/").
    """

    def __init__(self, name, default_name=None, values=None):
        name = default_name if name is None else name
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self._name = name
        self._old = []

    name = read_only(
        "_name", "The name that was given; the full name is what `with ... as` gives."
    )

    def __enter__(self):
        if not _headrace.is_eager():
            self._old.append(scopes.enter(self._name))
            return scopes.current()
        old = eager_scope()
        self._old.append(old)
        if not self._name:
            _state.scope = ""
        elif self._name.endswith("/"):
            _state.scope = self._name
        else:
            _state.scope = f"{old}{self._name}/"
        return _state.scope

    def __exit__(self, *error):
        old = self._old.pop()
        if not isinstance(old, str):
            scopes.leave(old)
        else:
            _state.scope = old
        return False


class name_scope_v1(name_scope):
    """tf.compat.v1.name_scope: `default_name` serves where there is no name."""

    def __init__(self, name, default_name=None, values=None):
        if name is None and default_name is None and values is not None:
            raise ValueError(
                "At least one of name (None) and default_name (None) must be provided."
            )
        super().__init__(name or default_name or "", None, values)


_no_scope = contextlib.nullcontext()  # of eager code, whose operations have no names


def graph_scope(name, default_name):
    """The scope of a composite's operations in graphs; `as` gives their last's name."""
    if _headrace.is_eager():
        return _no_scope
    return name_scope(name, default_name)


def composite(default_name, ends=False):
    """Decorates a function that makes several operations: in graphs these lie in a
    scope of its name or `default_name`. Where it `ends` in an operation that it gives
    its `name`, that one is called like the scope."""

    def decorate(function):
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        place = names.index("name") if "name" in names else sys.maxsize

        @functools.wraps(function)
        def call(*args, **kwargs):
            if _headrace.is_eager():
                return function(*args, **kwargs)
            by_place = place < len(args)
            name = args[place] if by_place else kwargs.pop("name", None)
            with name_scope(name or default_name) as scope:
                if by_place:
                    own = scope if ends else None
                    args = (*args[:place], own, *args[place + 1 :])
                elif ends:
                    kwargs["name"] = scope
                return function(*args, **kwargs)

        return call

    return decorate


def current():
    """The current scope, of a graph or of eager code: "" or "a/b/"."""
    if _headrace.is_eager():
        return eager_scope()
    return scopes.current()


def set_current(scope):
    """Makes `scope` the current one; returns the one before."""
    old = current()
    if _headrace.is_eager():
        _state.scope = scope
    else:
        stack.current()._core.scope = scope
    return old


def get_current_name_scope():
    """The full name of the current scope, without the last slash."""
    return current().rstrip("/")
