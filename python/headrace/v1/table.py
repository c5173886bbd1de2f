"""Functions with the signatures of TensorFlow 1, made from signatures.txt.

An attribute of this module is the function of a row, named as the row's first name
with two underscores for each dot; it is made when it is first asked for.
"""

import ast
import functools
import inspect
import os
import re
from typing import NamedTuple

from headrace import _names
from headrace.framework import dtypes
from headrace.framework.settings import logging
from headrace.v1 import functions

_PATH = os.path.join(os.path.dirname(__file__), "signatures.txt")
_COMMA = re.compile(r", (?![^\[]*\])")
_DTYPES = {
    name: getattr(dtypes, name)
    for name in ("int32", "int64", "float32", "qint32", "quint8")
}
_DTYPES["string"] = dtypes.string
_HINT = "~"


class _Parameter(NamedTuple):
    name: str
    target: str  # the target's name for it, "" or _HINT
    default: object = inspect.Parameter.empty

    @property
    def required(self):
        return self.default is inspect.Parameter.empty


def _parameter(text):
    head, _, default = text.partition("=")
    name, arrow, target = head.partition("->")
    row = (name, target if arrow else name)
    if not default:
        return _Parameter(*row)
    value = _DTYPES[default] if default in _DTYPES else ast.literal_eval(default)
    return _Parameter(*row, value)


def _rows():
    with open(_PATH, encoding="utf8") as f:
        for line in f:
            if line[0] not in "#\n":
                names, rest = line.strip().split(" ", 1)
                yield names.split(",")[0], rest


@functools.cache
def _by_key():
    return {name.replace(".", "__"): (name, rest) for name, rest in _rows()}


def _find(target):
    if target[0] == ":":
        return getattr(functions, target[1:])
    return _names.public(target)


def _translate(name, parameters, given):
    """What the target is called with."""
    passed, source = {}, {}
    for p in parameters:
        value = given.get(p.name, p.default)
        if p.target == _HINT or value is None and p.default is None:
            continue
        unset = p.name not in given or value is None or value is p.default
        if not p.target:
            if not unset and value != p.default:
                raise NotImplementedError(f"{name}: {p.name}={value!r}")
            continue
        if p.target in source:
            if unset:
                continue
            other, by_default = source[p.target]
            if not by_default:
                old, new = (other, p.name) if p.name == p.target else (p.name, other)
                raise ValueError(f"Cannot specify both '{old}' and '{new}'.")
        passed[p.target] = value
        source[p.target] = (p.name, unset)
    return passed


def _make(public, target, parameters, instead):
    name = public.rpartition(".")[2]
    names = [p.name for p in parameters]
    known = set(names)
    required = [p.name for p in parameters if p.required]
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter(p.name, keyword, default=p.default) for p in parameters]
        if sorted(parameters, key=lambda p: not p.required) == parameters
        else [inspect.Parameter(n, keyword, default=None) for n in names]
    )
    found, warned = [], set()

    def function(*args, **kwargs):
        given = dict(zip(names, args))
        clear = len(args) <= len(names) and known.issuperset(kwargs)
        if not clear or not given.keys().isdisjoint(kwargs):
            _refuse(name, signature, args, kwargs)
        given.update(kwargs)
        for missing in required:
            if missing not in given:
                _refuse(name, signature, args, kwargs)
        if instead:
            logging.warn_deprecated(name, instead, warned)
        if not found:
            found.append(_find(target))
        return found[0](**_translate(name, parameters, given))

    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature
    function.__doc__ = f"tf.{target.lstrip(':')} under TensorFlow 1's name."
    return function


def _refuse(name, signature, args, kwargs):
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    raise TypeError(f"{name}(): wrong arguments")


def __getattr__(key):
    if key not in _by_key():
        raise AttributeError(f"module '{__name__}' has no attribute '{key}'")
    public, rest = _by_key()[key]
    rest, _, instead = rest.partition(" ! ")
    instead = instead.replace("\\n", "\n")
    target, bracket, parameters = rest.partition("(")
    if bracket:
        parameters = _COMMA.split(parameters.rstrip()[:-1])
        made = _make(public, target, [_parameter(p) for p in parameters], instead)
    else:
        made = _find(target)
    globals()[key] = made
    return made
