"""tf.compat.v1.sparse_placeholder."""

from headrace.framework import conversion, dtypes, sparse_tensor, tensor_shape
from headrace.graph import placeholders


def sparse_placeholder(dtype, shape=None, name=None):
    """Placeholders of a sparse tensor's three parts."""
    prefix = None if name is None else name + "/"
    part = {
        key: None if prefix is None else prefix + key
        for key in ("shape", "values", "indices")
    }
    known = None if shape is None else tensor_shape.as_shape(shape)
    rank = None if known is None else known.rank
    if rank is not None:
        default = None if prefix is None else prefix + "shape_default"
        sizes = [-1 if size is None else size for size in known.as_list()]
        sizes = conversion.constant(sizes, dtypes.int64, name=default or "Const")
        sizes = placeholders.placeholder_with_default(sizes, [rank], name=part["shape"])
    else:
        sizes = placeholders.placeholder(dtypes.int64, [rank], name=part["shape"])
    made = sparse_tensor.SparseTensor(
        values=placeholders.placeholder(dtype, [None], name=part["values"]),
        indices=placeholders.placeholder(
            dtypes.int64, [None, rank], name=part["indices"]
        ),
        dense_shape=sizes,
    )
    if known is not None:
        made.set_shape(known)
    return made
