"""NumPy's scalars as the guides show them: `10`, not `np.int64(10)`.

NumPy 2 put the type into what a scalar's repr() says. A variable's value, which
programs show far more often than they inspect it, keeps the short form; all else
about it is NumPy's.
"""

import numpy as np

_classes = {}


def _class_for(kind):
    found = _classes.get(kind)
    if found is None:
        found = type(kind.__name__, (kind,), {"__repr__": kind.__str__})
        found.__module__ = kind.__module__
        _classes[kind] = found
    return found


def plain(value):
    """The value; a scalar number as one whose repr() is the number."""
    if type(value) not in _KINDS:
        return value
    return _class_for(type(value))(value)


_KINDS = {np.dtype(c).type for c in "bBhHiIlLqQefd"}
if not repr(np.int64(1)).startswith("np."):
    _KINDS = set()
