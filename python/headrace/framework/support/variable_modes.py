"""How the copies of distributed variables are brought together: what variables are told
and tell."""

import enum


class VariableSynchronization(enum.Enum):
    """When the copies of a distributed variable are brought together."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How the copies of a distributed variable are combined."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        return isinstance(other, _AGGREGATIONS) and self.value == other.value


class VariableAggregationV1(enum.Enum):
    """VariableAggregation with TensorFlow 1's name for one of its ways."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3

    __hash__ = VariableAggregation.__hash__
    __eq__ = VariableAggregation.__eq__


_AGGREGATIONS = VariableAggregation, VariableAggregationV1


def mode_of(kind, value, what, name):
    """A mode of a variable, the first of its kind unless told. ValueError for another."""
    if value is None:
        return next(iter(kind))
    try:
        return kind(getattr(value, "value", value))
    except ValueError:
        raise ValueError(
            f"Invalid variable {what} mode: {value} for variable: {name}"
        ) from None
