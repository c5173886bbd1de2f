"""tf.sets: the last dimension as sets."""

from headrace._load import _headrace, raw
from headrace.framework import conversion
from headrace.framework.sparse_tensor import SparseTensor, is_sparse


def size(a, validate_indices=True):
    """How many different values each row of a sparse tensor holds, int32."""
    if not is_sparse(a):
        a = conversion.convert_to_tensor(a)
        raise TypeError(f"Expected `SparseTensor`, got {a!s}.")
    _checked(a)
    return raw.SetSize(*a._components(), validate_indices=validate_indices)


_TYPES = "int8 int16 int32 int64 string uint8 uint16".split()


def _checked(x, what=""):
    """x as a tensor; TypeError where sets cannot hold its values."""
    x = x if is_sparse(x) else conversion.convert_to_tensor(x)
    if x.dtype.name not in _TYPES:
        known = ", ".join(f"tf.{name}" for name in _TYPES)
        raise TypeError(
            f"{what or 'Invalid'} {'has invalid ' if what else ''}dtype `{x.dtype!s}` not "
            f"in supported dtypes: `frozenset({{{known}}})`."
        )
    return x


def _operate(kind, a, b, validate_indices):
    a = _checked(a, "'a'")
    b = b if is_sparse(b) else conversion.convert_to_tensor(b)
    if a.dtype != b.dtype:
        raise TypeError(f"Types don't match, {a.dtype!s} vs {b.dtype!s}.")
    options = {"set_operation": kind, "validate_indices": validate_indices}
    if is_sparse(a) and not is_sparse(b):
        # The op takes the sparse one second.
        kinds = {"a-b": "b-a", "b-a": "a-b"}
        options["set_operation"] = kinds.get(kind, kind)
        a, b = b, a
    for x, name in ((a, "set1"), (b, "set2")):
        if is_sparse(x):
            parts = zip(("indices", "values", "shape"), x._components())
            options.update({f"{name}_{key}": part for key, part in parts})
        else:
            options[name] = x
    names = ["Sparse" if is_sparse(x) else "Dense" for x in (a, b)]
    op = _headrace.raw_op(f"{names[0]}To{names[1]}SetOperation")
    return SparseTensor(*op(**options))


def intersection(a, b, validate_indices=True):
    """What both rows hold, as a sparse tensor in order."""
    return _operate("intersection", a, b, validate_indices)


def difference(a, b, aminusb=True, validate_indices=True):
    """What only the row of `a` holds (of `b` where aminusb is False)."""
    return _operate("a-b" if aminusb else "b-a", a, b, validate_indices)


def union(a, b, validate_indices=True):
    """What either row holds, as a sparse tensor in order."""
    return _operate("union", a, b, validate_indices)
