"""Functions of higher floors that lower ones call: the package framework says which.

`late.cond` is the function of the row "cond", whose module is loaded with its first use.
"""

from headrace import _names

_rows = {}


def register(rows):
    """Takes {name: "module:function"}."""
    _rows.update(rows)


def __getattr__(name):
    if name not in _rows:
        raise AttributeError(name)
    value = globals()[name] = _names.load(_rows[name])
    return value
