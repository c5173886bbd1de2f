"""tf.feature_column: columns that say how features become inputs of models."""

# All kinds of columns, for configurations may name any.
from headrace.feature_column import (  # noqa: F401
    categorical,
    combined,
    dense,
    numeric,
    sequence,
    vocabulary,
)
