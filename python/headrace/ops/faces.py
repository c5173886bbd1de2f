"""Public op functions that are one op: native callables with upstream's names."""

import functools
import re

from headrace import _names
from headrace._load import _headrace
from headrace.framework import dtypes
from headrace.framework.support import signatures

_DEFAULTS = {"None": None, "True": True, "False": False, "-inf": float("-inf")}
_DTYPES = ("int32", "int64", "uint8", "float32", "complex64")
_DEFAULTS |= {name: getattr(dtypes, name) for name in _DTYPES}


def _default(text):
    if text in _DEFAULTS:
        return _DEFAULTS[text]
    if text[0] in "'\"":
        return text[1:-1]
    return float(text) if "." in text or "e" in text else int(text)


def _parameter(text):
    """'a', 'a->input', 'axis->dim=0', 'name=None' as (name, target[, default])."""
    head, _, default = text.partition("=")
    name, _, target = head.partition("->")
    row = (name, target or name)
    return row + (_default(default),) if default else row


def face(op, name, parameters, doc="", module="headrace"):
    """The function `name(parameters)` that asks `op`.

    `parameters` is a text such as "tensor, multiples->shape, name=None": the public
    name, the op's own name for it where that differs, the default. An op that is not
    registered gives a function that says so when it is called.
    """
    rows = [_parameter(p.strip()) for p in parameters.split(",")]
    try:
        return _headrace.op_function(op, name, rows, doc, module)
    except Exception:

        def missing(*args, **kwargs):
            return _headrace.raw_op(op)(*args, **kwargs)

        missing.__name__ = missing.__qualname__ = name
        return missing


def add_faces(scope, table):
    """Adds the faces of a table to a module, whose globals() are `scope`.

    A row is "name Op(parameters)", and "name Op" stands for Op(x, name=None). Where the
    module knows the function by another name than it has itself, a row begins with
    "known_as=name". Lines that are indented under a row are the function's docstring,
    those with eight spaces go on with the row. Without a docstring the function has the
    op's own words. A row "(parameters) Op LogicalOp ..." stands for a function of these
    parameters for each op, called like it: op, logical_op.
    """
    for known_as, name, op, parameters, doc in _rows(table):
        module = scope["__name__"] if doc else "headrace"
        scope[known_as] = face(op, name, parameters, doc, module)


def add_calls(scope, table):
    """Adds functions that are public ones with other parameters.

    Rows are those of add_faces: "name math.cumprod(a, b->its_name=default)", with the
    public name of what is called, which is looked up by the first call.
    """
    for known_as, name, path, parameters, doc in _rows(table):
        like = signatures.named(name, doc, scope["__name__"])
        rows = [_parameter(p.strip()) for p in parameters.split(",")]
        own = [signatures.parameter(row[0], *row[2:]) for row in rows]
        find = functools.cache(functools.partial(_names.public, path))
        targets = {row[0]: row[1] for row in rows}
        scope[known_as] = signatures.function_of(like, own, find, targets)


def _rows(table):
    """(known as, name, what is asked, parameters, docstring) of each row."""
    found = []
    for line in table.strip().split("\n"):
        if line.startswith(" " * 8) and not found[-1][1]:
            found[-1][0] += " " + line.strip()
        elif line and line[0] != " ":
            found.append([line, []])
        else:
            found[-1][1].append(line)
    for row, lines in found:
        if row[0] == "(":
            parameters, ops = row[1:].split(") ", 1)
            for op in ops.split():
                name = re.sub("(?<=[a-z])(?=[A-Z])", "_", op).lower()
                yield name, name, op, parameters, ""
            continue
        names, call = row.split(" ", 1)
        known_as, _, name = names.partition("=")
        asked, bracket, parameters = call.rstrip(")").partition("(")
        parameters = parameters if bracket else "x, name=None"
        yield known_as, name or known_as, asked, parameters, _doc(lines)


def _doc(lines):
    """The docstring as it would stand in a function."""
    if len(lines) < 2:
        return "".join(lines).strip()
    return "\n".join([lines[0].strip(), *lines[1:], "    "])
