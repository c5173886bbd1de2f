"""tf.compat.v1.Dimension: one size of a shape, as TensorFlow 1 held it."""

import operator

from headrace.context.properties import read_only


def as_dimension(value):
    """`value` itself when it is a Dimension, else a new one."""
    return value if isinstance(value, Dimension) else Dimension(value)


def _compared(function, swapped=False):
    """`function` of two sizes: None where one of them is unknown."""

    def compare(self, other):
        try:
            other = as_dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or other._value is None:
            return None
        a, b = self._value, other._value
        return function(b, a) if swapped else function(a, b)

    return compare


def _computed(function, swapped=False):
    """The same as a size, unknown where one of them is."""
    compare = _compared(function, swapped)

    def compute(self, other):
        value = compare(self, other)
        return value if value is NotImplemented else Dimension(value)

    return compute


class Dimension:
    """A size that may be unknown. Immutable."""

    __slots__ = ("_value",)

    def __init__(self, value):
        if isinstance(value, Dimension):
            self._value = value._value
            return
        if value is None:
            self._value = None
            return
        try:
            self._value = operator.index(value)
        except (TypeError, AttributeError):
            raise TypeError(
                "Dimension value must be integer or None or have an __index__ method, "
                f"got value '{value!r}' with type '{type(value)!r}'"
            ) from None
        if self._value < 0:
            raise ValueError(f"Dimension {self._value} must be >= 0")

    value = read_only("_value", "The size: an int, or None where it is unknown.")

    def is_compatible_with(self, other):
        """True where both sizes are the same or one of them is unknown."""
        other = as_dimension(other)
        return None in (self._value, other._value) or self._value == other._value

    def assert_is_compatible_with(self, other):
        """Raises ValueError unless the sizes are the same or one of them is unknown."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other):
        """The known one of two compatible sizes."""
        other = as_dimension(other)
        self.assert_is_compatible_with(other)
        return Dimension(other._value if self._value is None else self._value)

    __add__ = __radd__ = _computed(operator.add)
    __sub__ = _computed(operator.sub)
    __rsub__ = _computed(operator.sub, swapped=True)
    __mul__ = __rmul__ = _computed(operator.mul)
    __floordiv__ = _computed(operator.floordiv)
    __rfloordiv__ = _computed(operator.floordiv, swapped=True)
    __mod__ = _computed(operator.mod)
    __rmod__ = _computed(operator.mod, swapped=True)
    __eq__ = _compared(operator.eq)
    __ne__ = _compared(operator.ne)
    __lt__ = _compared(operator.lt)
    __le__ = _compared(operator.le)
    __gt__ = _compared(operator.gt)
    __ge__ = _compared(operator.ge)

    def __truediv__(self, other):
        raise TypeError(
            "unsupported operand type(s) for /: 'Dimension' and "
            f"'{type(other).__name__}', please use // instead"
        )

    def __rtruediv__(self, other):
        raise TypeError(
            f"unsupported operand type(s) for /: '{type(other).__name__}' and "
            "'Dimension', please use // instead"
        )

    def __hash__(self):
        return hash(self._value)

    def __index__(self):
        return self._value

    __int__ = __index__

    def __str__(self):
        return "?" if self._value is None else str(self._value)

    def __repr__(self):
        return f"Dimension({self._value})"

    def __reduce__(self):
        return Dimension, (self._value,)
