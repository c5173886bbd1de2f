"""What symbols may be at the ends of branches and turns of loops."""

from headrace.autograph import lists, tensors, variables
from headrace.control_flow import bodies, loop_shapes
from headrace.framework import conversion, nest, tensor_shape

_RETURN_IN_LOOP = (
    "a return statement cannot be placed inside this TensorFlow loop; this may happen "
    "if a return statement depends on a static Python condition such as a hyperparameter"
)
_BEFORE, _AFTER = "before the loop", "after one iteration"
_INVARIANTS = " Use tf.autograph.experimental.set_loop_options to set shape invariants."


def is_undefined(value):
    return isinstance(value, (variables.Undefined, variables.UndefinedReturnValue))


def lacks_value(value):
    """Whether a symbol has no value that a loop could carry."""
    return value is None or is_undefined(value)


def copied(values):
    """The values in lists of converted code of their own: bodies may change those."""
    return tuple(v.copy() if lists.may_grow(v) else v for v in values)


def branch(values, names, which):
    """Every symbol must be defined at the end of a branch of an if."""
    for name, value in zip(names, values):
        if isinstance(value, variables.UndefinedReturnValue):
            raise ValueError(f"the {which} branch must also have a return statement.")
        if any(map(is_undefined, tensors.leaves(value))):
            raise ValueError(f"'{name}' must also be initialized in the {which} branch")


def as_result(value, function):
    """The structure with tensors for leaves but None, as a traced function returns it."""

    def convert(leaf):
        if leaf is None or bodies.is_composite(leaf):
            return leaf
        try:
            if not (callable(leaf) and not tensors.is_tensor(leaf)):
                return conversion.convert_to_tensor(leaf)
        except (TypeError, ValueError):
            pass
        raise TypeError(
            "To be compatible with tf.function, Python functions must return zero or "
            "more Tensors or ExtensionTypes or None values; in compilation of "
            f"{function!r}, found return value of type {type(leaf).__name__}, which is "
            "not a Tensor or ExtensionType."
        )

    return nest.map_structure(convert, value)


def branches_alike(main, other, names):
    """Both branches must give a symbol a value, of one structure, its parts of one
    dtype."""
    for name, a, b in zip(names, main, other):
        not_none(name, a, "main")
        not_none(name, b, "else")
        _alike(
            (name, a, b),
            "must have the same nested structure in the main and else branches:",
            ("in the main branch", "in the else branch"),
        )


def _alike(symbol, refusal, places):
    """`symbol`, (name, its value, its other value), must have one structure of parts of
    one dtype; `places` say where it has them."""
    name, a, b = symbol
    try:
        nest.assert_same_structure(a, b, expand_composites=True)
    except (ValueError, TypeError) as e:
        raise TypeError(f"'{name}' {refusal}\n\n{e}") from None
    for x, y in zip(_tensors(a), _tensors(b)):
        if x.dtype != y.dtype:
            raise TypeError(
                f"'{name}' has dtype {x.dtype.name} {places[0]}, but dtype "
                f"{y.dtype.name} {places[1]}"
            )


def not_none(name, value, which):
    """A symbol must not be None, nor any part of it, at the end of a branch."""
    if any(part is None for part in tensors.leaves(value)):
        raise ValueError(f"'{name}' is None at the end of the {which} branch.")


def _tensors(value):
    """The tensors of a structure, those of composite values too."""
    flat = nest.flatten(value, expand_composites=True)
    return [x for x in map(_as_tensor, flat) if x is not None]


def _as_tensor(leaf):
    if leaf is None or tensors.is_tensor(leaf):
        return leaf
    try:
        return conversion.convert_to_tensor(leaf)
    except (TypeError, ValueError):
        return None  # said where it is converted for good


def before_loop(values, names):
    """Every symbol must have a value before a loop."""
    for name, value in zip(names, values):
        if isinstance(value, variables.UndefinedReturnValue):
            raise NotImplementedError(_RETURN_IN_LOOP)
        if value is None:
            raise ValueError(f"'{name}' is not allowed to be None before the loop")
        if isinstance(value, variables.Undefined):
            raise ValueError(f"'{name}' must be defined before the loop")


def invariants_before_loop(values, names, invariants):
    """Values must conform with what the user says about their shapes."""
    for name, value, invariant in zip(names, values, invariants):
        _conforms(name, value, invariant, _BEFORE)


def _conforms(name, value, invariant, place):
    for leaf, shape in _with_shapes(value, invariant):
        own = _shape_of(leaf)
        if own is not None and not own.is_subtype_of(shape):
            raise ValueError(
                f"'{name}' has shape {own} {place}, which does not conform with the "
                f"shape invariant {shape}."
            )


def _with_shapes(value, invariant):
    """Pairs of leaves and shapes, where the invariant is one of plain shapes."""
    if invariant is None:
        return []
    parts = tensors.leaves(value)
    try:
        shapes = loop_shapes.flat_invariants(value, invariant)
    except (KeyError, TypeError):
        shapes = []
    if len(parts) != len(shapes):
        return []  # while_loop says so
    shown = []
    for part, shape in zip(parts, shapes):
        if shape is None or hasattr(shape, "_component_specs"):
            continue
        shown.append((part, tensor_shape.as_shape(shape)))
    return shown


def _shape_of(leaf):
    shape = getattr(leaf, "shape", None)
    if isinstance(shape, tensor_shape.TensorShape):
        return shape
    converted = _as_tensor(leaf)
    return None if converted is None else getattr(converted, "shape", None)


def turn(entry, exit_, names, invariants, check_shapes=True):
    """A turn of a loop must leave each symbol as it found it.

    `entry` holds the values in the loop's body, `invariants` what the user said about
    shapes, None for symbols of which nothing is said.
    """
    for name, before, after, invariant in zip(names, entry, exit_, invariants):
        if lacks_value(after):
            shown = "None" if after is None else "undefined"
            raise ValueError(f"'{name}' is {shown} at the end of the iteration.")
        _alike(
            (name, before, after),
            "does not have the same nested structure after one iteration.",
            (_BEFORE, _AFTER),
        )
        if check_shapes:
            _shapes(name, before, after, invariant)


def _shapes(name, before, after, invariant):
    if invariant is not None:
        _conforms(name, after, invariant, _AFTER)
        return
    for x, y in zip(tensors.leaves(before), tensors.leaves(after)):
        old, new = _shape_of(x), _shape_of(y)
        if old is not None and new is not None and not new.is_subtype_of(old):
            raise ValueError(
                f"'{name}' has shape {old} {_BEFORE}, but shape {new} {_AFTER}."
                f"{_INVARIANTS}"
            )
