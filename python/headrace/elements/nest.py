"""Structures of elements: tuples, dicts and the like; lists are leaves here."""

from collections import abc

from headrace.framework import nest as _nest
from headrace.framework.sparse_tensor import SparseTensorValue


def is_nested(x):
    """True for what flatten goes into."""
    if isinstance(x, (list, SparseTensorValue)):
        return False
    if isinstance(x, (tuple, abc.Mapping)):
        return True
    return _nest._is_attrs(x) or _nest.is_dataclass(x)


def flatten(x):
    """The leaves in order."""
    if not is_nested(x):
        return [x]
    return [leaf for child in _nest.children(x) for leaf in flatten(child)]


def map_structure(func, x):
    """`func` of every leaf."""
    if not is_nested(x):
        return func(x)
    values = [map_structure(func, child) for child in _nest.children(x)]
    return _nest.rebuild(x, values)


def pack(structure, leaves):
    """The structure with the leaves of an iterator."""
    leaves = iter(leaves)
    return map_structure(lambda _: next(leaves), structure)


def flatten_up_to(shallow, value):
    """What stands in `value` where `shallow` has its leaves; upstream's errors where
    the structures differ above them."""
    if not is_nested(shallow):
        return [value]
    if not is_nested(value):
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. Input "
            f"has type: '{type(value).__name__}'."
        )
    mapping = isinstance(shallow, abc.Mapping)
    if mapping != isinstance(value, abc.Mapping):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has "
            f"type '{type(value).__name__}', while shallow structure has type "
            f"'{type(shallow).__name__}'."
        )
    if len(_nest.children(value)) != len(_nest.children(shallow)):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure "
            f"has length {len(_nest.children(value))}, while shallow structure has "
            f"length {len(_nest.children(shallow))}."
        )
    if mapping and set(shallow) != set(value):
        raise ValueError(
            "The two structures don't have the same keys. Input structure has keys "
            f"{list(value)}, while shallow structure has keys {list(shallow)}."
        )
    pairs = zip(_nest.children(shallow), _nest.children(value))
    return [leaf for s, v in pairs for leaf in flatten_up_to(s, v)]


def assert_same_structure(a, b):
    """TypeError or ValueError where two structures differ."""
    if is_nested(a) != is_nested(b):
        raise ValueError(
            "The two structures don't have the same nested structure. First "
            f"structure: {a}, second structure: {b}."
        )
    if not is_nested(a):
        return
    mapping = isinstance(a, abc.Mapping)
    if mapping != isinstance(b, abc.Mapping):
        raise TypeError(
            "The two structures don't have the same sequence type. First structure has "
            f"type {type(a)}, while second structure has type {type(b)}."
        )
    if mapping and set(a) != set(b):
        raise ValueError(
            "The two dictionaries don't have the same set of keys. First structure has "
            f"keys {list(a)}, while second structure has keys {list(b)}."
        )
    left, right = list(_nest.children(a)), list(_nest.children(b))
    if len(left) != len(right):
        raise ValueError(
            "The two structures don't have the same number of elements. First "
            f"structure: {a}, second structure: {b}."
        )
    for x, y in zip(left, right):
        assert_same_structure(x, y)
