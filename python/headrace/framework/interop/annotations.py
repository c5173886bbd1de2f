"""tf.types.experimental: types for annotations."""

import typing

import numpy as np

from headrace.framework.tensor import Tensor
from headrace.framework.variables import Variable

# What becomes a tensor where one is wanted.
TensorLike = typing.Union[  # noqa: UP007  (as upstream's, for typing.get_args)
    Tensor,
    Variable,
    int,
    float,
    bool,
    str,
    bytes,
    complex,
    tuple,
    list,
    np.ndarray,
    np.generic,
]
