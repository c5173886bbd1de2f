"""Products of dense matrices of which some elements are wanted."""

import numpy as np

from headrace.framework import conversion, dtypes, execution
from headrace.framework.support import signatures
from headrace.ops import array_ops, math_ops, reduction_ops


@signatures.having(
    "indices, values, dense_shape, mat1, mat2, beta=1.0, alpha=1.0, "
    "output_type=float32",
    float32=dtypes.float32,
)
def sampled_addmm(indices, values, dense_shape, mat1, mat2, beta, alpha, output_type):
    """alpha * (mat1 @ mat2) + beta * values at the places of a sparse matrix alone.

    Args:
      indices: ints [..., n, 2], places in the product.
      values: [..., n], what is there before.
      dense_shape: ints [2], the shape of the product.
      mat1, mat2: [..., rows, inner] and [..., inner, columns].
      beta, alpha: numbers that the values and the products are multiplied by.
      output_type: the dtype of the result.

    Returns:
      (indices, values of output_type, dense_shape).

    Raises:
      ValueError: if the matrices' shapes are known and dense_shape is another.
    """
    places = conversion.convert_to_tensor(indices, dtypes.int32)
    shape = conversion.convert_to_tensor(dense_shape, dtypes.int32)
    left, right, values = (
        math_ops.cast(conversion.convert_to_tensor(x), output_type)
        for x in (mat1, mat2, values)
    )
    batch = left.shape.rank - 2
    known = execution.get_static_value(shape)
    product = [left.shape[-2], right.shape[-1]]
    if known is not None and None not in product and list(known) != product:
        raise ValueError(
            f"Dense shape: {known} does not match output shape: {np.array(product)}"
        )
    order = [*range(batch), batch + 1, batch]
    rows = array_ops.gather_nd(left, places[..., :1], batch_dims=batch)
    columns = array_ops.transpose(right, order)
    columns = array_ops.gather_nd(columns, places[..., 1:], batch_dims=batch)
    dots = reduction_ops.reduce_sum(rows * columns, -1)
    return places, dots * alpha + values * beta, shape
