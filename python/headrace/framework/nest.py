"""tf.nest: structures of lists, tuples, dicts, named tuples, attrs classes."""

from collections import abc

from headrace._load import _headrace
from headrace.framework import type_spec


def _is_namedtuple(x):
    return isinstance(x, tuple) and hasattr(x, "_fields")


def _is_attrs(x):
    return hasattr(type(x), "__attrs_attrs__")


def is_dataclass(x):
    """True for dataclasses that say how they are taken apart, by __tf_flatten__()."""
    return hasattr(type(x), "__tf_flatten__") and hasattr(type(x), "__tf_unflatten__")


def _is_dict(x):
    return isinstance(x, abc.Mapping)


def _is_composite(x):
    if isinstance(x, type_spec.TypeSpec):
        return hasattr(x, "_component_specs")
    return getattr(type(x), "_is_composite_tensor", False)


def _parts(composite):
    """What a composite value is made of, or the specs of that for a spec."""
    if isinstance(composite, type_spec.TypeSpec):
        return type_spec.parts_of(composite)
    return composite._components()


def is_nested(seq):
    """True for structures that flatten goes into."""
    if isinstance(seq, (str, bytes, _headrace.Tensor, _headrace.VariableBase)):
        return False
    if isinstance(seq, (list, tuple)):
        return True
    if _is_dict(seq) or _is_attrs(seq) or is_dataclass(seq):
        return True
    if isinstance(seq, (abc.MappingView,)):
        return True
    return isinstance(seq, abc.Sequence) and not isinstance(seq, range)


is_sequence = is_nested


def sorted_keys(mapping):
    """The keys of a mapping, sorted; TypeError where they cannot be compared."""
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def yield_items(structure):
    """(key, value) of one level, in the order of flattening."""
    if _is_dict(structure):
        return [(k, structure[k]) for k in sorted_keys(structure)]
    if _is_attrs(structure):
        return [
            (a.name, getattr(structure, a.name))
            for a in type(structure).__attrs_attrs__
        ]
    if _is_namedtuple(structure):
        return [(f, getattr(structure, f)) for f in structure._fields]
    if is_dataclass(structure):
        return list(enumerate(structure.__tf_flatten__()[1]))
    return list(enumerate(structure))


def children(structure):
    """The parts of a structure one level down, in the order of nest."""
    if type(structure) in (list, tuple):
        return structure
    return [v for _, v in yield_items(structure)]


def emptied(structure):
    """What rebuild() may be given in the place of a structure, without its values: its
    class is not asked, whose constructor may refuse None."""
    size = len(children(structure))
    if _is_namedtuple(structure):
        return tuple.__new__(type(structure), [None] * size)
    if _is_attrs(structure):
        return object.__new__(type(structure))
    return rebuild(structure, [None] * size)


def rebuild(structure, values):
    """`structure`'s own kind, one level deep, with other values."""
    if _is_dict(structure):
        by_key = dict(zip(sorted_keys(structure), values))
        ordered = ((k, by_key[k]) for k in structure)
        kind = type(structure)
        if hasattr(structure, "default_factory"):
            return kind(structure.default_factory, ordered)
        try:
            return kind(ordered)
        except TypeError:
            return dict(by_key)
    if _is_namedtuple(structure) or _is_attrs(structure):
        return type(structure)(*values)
    if is_dataclass(structure):
        metadata, _ = structure.__tf_flatten__()
        return type(structure).__tf_unflatten__(metadata, tuple(values))
    if isinstance(structure, abc.MappingView):
        return list(values)
    kind = type(structure)
    if kind is list or not isinstance(structure, (list, tuple)):
        return list(values)
    if getattr(structure, "_rebuild_as", None):
        return structure._rebuild_as(values)
    return kind(values)


def flatten(structure, expand_composites=False):
    """The leaves in order; a leaf alone gives a list of one."""
    out = _headrace.flatten(structure)
    if out is None:  # where there is more than lists, tuples and dicts of plain values
        out = []
        _flatten(structure, expand_composites, out)
    return out


def _flatten(structure, expand, out):
    if expand and _is_composite(structure):
        for part in _parts(structure):
            _flatten(part, expand, out)
    elif is_nested(structure):
        for child in children(structure):
            _flatten(child, expand, out)
    else:
        out.append(structure)


def pack_sequence_as(structure, flat_sequence, expand_composites=False):
    """`structure` with its leaves replaced by those of `flat_sequence`."""
    if not is_nested(flat_sequence):
        raise TypeError(
            "Attempted to pack value:\n  "
            f"{flat_sequence}\ninto a structure, but found incompatible type "
            f"`{type(flat_sequence)}` instead."
        )
    flat = list(flat_sequence)
    if not is_nested(structure) and not (
        expand_composites and _is_composite(structure)
    ):
        if len(flat) != 1:
            raise ValueError(
                "The target structure is of type "
                f"`{type(structure)}`\n  {structure}\nHowever the input is a sequence "
                f"({type(flat_sequence)}) of length {len(flat)}.\n  {flat_sequence}\n"
                "nest cannot guarantee that it is safe to map one to the other."
            )
        return flat[0]
    expected = len(flatten(structure, expand_composites))
    if expected != len(flat):
        raise ValueError(
            "Could not pack sequence. Structure had "
            f"{expected} atoms, but flat_sequence had {len(flat)} items.  Structure: "
            f"{structure}, flat_sequence: {flat_sequence}."
        )
    packed, _ = _pack(structure, flat, 0, expand_composites)
    return packed


def _pack(structure, flat, at, expand):
    if expand and _is_composite(structure):
        parts = []
        for part in _parts(structure):
            value, at = _pack(part, flat, at, expand)
            parts.append(value)
        return type_spec.of_parts(structure, parts), at
    if not is_nested(structure):
        return flat[at], at + 1
    values = []
    for child in children(structure):
        value, at = _pack(child, flat, at, expand)
        values.append(value)
    return rebuild(structure, values), at


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    """Raises ValueError or TypeError where the two differ."""
    try:
        _assert_same(nest1, nest2, check_types, expand_composites, (nest1, nest2))
    except (ValueError, TypeError) as e:
        raise type(e)(
            f"{e}\nEntire first structure:\n{_dots(nest1)}\nEntire second structure:\n"
            f"{_dots(nest2)}"
        ) from None


def _dots(structure):
    if not is_nested(structure):
        return "."
    return map_structure(lambda _: _Dot(), structure)


class _Dot:
    def __repr__(self):
        return "."


def _shown(x):
    return f"type={type(x).__name__.rpartition('.')[2]} str={x!s}"


def _differ(first, second, more):
    """The words about two structures that differ."""
    return (
        "The two structures don't have the same nested structure.\n\n"
        f"First structure: {_shown(first)}\n\nSecond structure: {_shown(second)}\n\n"
        f"More specifically: {more}"
    )


def _assert_same_kind(a, b, whole):
    """Composite values whose specs have one in common; sizes may differ."""
    specs = [
        x if isinstance(x, type_spec.TypeSpec) else type_spec.type_spec_from_value(x)
        for x in (a, b)
    ]
    if specs[0].most_specific_common_supertype([specs[1]]) is None:
        first, second = map(_shown, specs)
        more = f"Incompatible CompositeTensor TypeSpecs: {first} vs. {second}"
        raise ValueError(_differ(*whole, more))


def _assert_same(a, b, check_types, expand, whole):
    composite_a = expand and _is_composite(a)
    composite_b = expand and _is_composite(b)
    nested_a, nested_b = composite_a or is_nested(a), composite_b or is_nested(b)
    if nested_a != nested_b:
        shown, other = (a, b) if nested_a else (b, a)
        more = (
            f'Substructure "{_shown(shown)}" is a sequence, while substructure '
            f'"{_shown(other)}" is not'
        )
        raise ValueError(_differ(*whole, more))
    if not nested_a:
        return
    if composite_a and composite_b:
        _assert_same_kind(a, b, whole)
        return
    both = _is_dict(a) and _is_dict(b)
    if check_types and _kind(a) is not _kind(b) and not both:
        more = (
            "The two namedtuples don't have the same sequence type. First structure "
            f"{_shown(a)} has type {type(a).__name__}, while second structure "
            f"{_shown(b)} has type {type(b).__name__}"
        )
        raise TypeError(_differ(a, b, more))
    if both and set(a) != set(b):
        more = (
            "The two dictionaries don't have the same set of keys. First structure has "
            f"keys {_shown(list(a))}, while second structure has keys {_shown(list(b))}"
        )
        raise ValueError(_differ(a, b, more))
    ca, cb = children(a), children(b)
    if len(ca) != len(cb):
        more = (
            "The two structures don't have the same number of elements. First "
            f"structure: {_shown(a)}. Second structure: {_shown(b)}"
        )
        raise ValueError(_differ(a, b, more))
    for x, y in zip(ca, cb):
        _assert_same(x, y, check_types, expand, whole)


def _kind(x):
    kind = type(x)
    return getattr(kind, "_nest_kind", kind)


def map_structure(func, *structure, **kwargs):
    """func over the leaves of structures that are alike.

    `check_types` (True) and `expand_composites` (False) are given by name.
    """
    check_types = kwargs.pop("check_types", True)
    expand_composites = kwargs.pop("expand_composites", False)
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    if kwargs:
        raise ValueError(
            "Only valid keyword arguments are `check_types` and `expand_composites`, "
            f"not: `{'`, `'.join(kwargs)}`"
        )
    first = structure[0]
    for other in structure[1:]:
        assert_same_structure(first, other, check_types, expand_composites)
    columns = [flatten(s, expand_composites) for s in structure]
    return pack_sequence_as(first, [func(*x) for x in zip(*columns)], expand_composites)


def flatten_with_paths(structure, prefix=()):
    """[(path, leaf)] in the order of flattening."""
    if not is_nested(structure):
        return [(prefix, structure)]
    out = []
    for key, value in yield_items(structure):
        out.extend(flatten_with_paths(value, prefix + (key,)))
    return out
