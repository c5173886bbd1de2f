"""Public op functions that are one op: native callables with upstream's names."""

from headrace._load import _headrace

_DEFAULTS = {"None": None, "True": True, "False": False}


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


def face(op, name, parameters, doc=""):
    """The function `name(parameters)` that asks `op`.

    `parameters` is a text such as "tensor, multiples->shape, name=None": the public
    name, the op's own name for it where that differs, the default. An op that is not
    registered gives a function that says so when it is called.
    """
    rows = [_parameter(p.strip()) for p in parameters.split(",")]
    try:
        return _headrace.op_function(op, name, rows, doc)
    except Exception:

        def missing(*args, **kwargs):
            return _headrace.raw_op(op)(*args, **kwargs)

        missing.__name__ = missing.__qualname__ = name
        return missing
