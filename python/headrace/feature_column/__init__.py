"""tf.feature_column: columns that say how features become inputs of models."""

from headrace import _names

# All kinds of columns, for configurations may name any.
from headrace.feature_column import (  # noqa: F401
    categorical,
    combined,
    dense,
    numeric,
    sequence,
    vocabulary,
)

__getattr__ = _names.of_package(__name__)
