"""tf.sets: the last dimension as sets."""

from headrace._load import _headrace, raw
from headrace.framework import conversion
from headrace.framework.sparse_tensor import SparseTensor, is_sparse


def size(a, validate_indices=True):
    """How many different values each row of a sparse tensor holds, int32."""
    if not is_sparse(a):
        a = conversion.convert_to_tensor(a)
        raise TypeError(f"Expected `SparseTensor`, got {a!s}.")
    return raw.SetSize(*a._components(), validate_indices=validate_indices)


def _operate(kind, a, b, validate_indices):
    options = {"set_operation": kind, "validate_indices": validate_indices}
    if is_sparse(a) and not is_sparse(b):
        # The op takes the sparse one second.
        kinds = {"a-b": "b-a", "b-a": "a-b"}
        return _operate(kinds.get(kind, kind), b, a, validate_indices)
    if is_sparse(a):
        options.update(
            set1_indices=a.indices, set1_values=a.values, set1_shape=a.dense_shape
        )
    else:
        a = options["set1"] = conversion.convert_to_tensor(a)
    if is_sparse(b):
        options.update(
            set2_indices=b.indices, set2_values=b.values, set2_shape=b.dense_shape
        )
    else:
        options["set2"] = conversion.convert_to_tensor(b, a.dtype)
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
