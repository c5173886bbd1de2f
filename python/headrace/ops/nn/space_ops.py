"""Blocks of space as parts of the batch, and windows of volumes."""

import numpy as np

from headrace._load import raw
from headrace.framework import conversion, dtypes, execution
from headrace.framework.name_scopes import composite
from headrace.framework.support import signatures
from headrace.ops import array_ops
from headrace.ops.faces import add_faces

add_faces(
    globals(),
    """
space_to_batch_nd SpaceToBatchND(input, block_shape, paddings, name=None)
    Space, padded, cut into blocks that become parts of the batch.
extract_volume_patches ExtractVolumePatches(input, ksizes, strides, padding, name=None)
    Windows of volumes, each put into the last dimension.
""",
)


@composite("required_space_to_batch_paddings")
def required_space_to_batch_paddings(
    input_shape, block_shape, base_paddings=None, name=None
):
    """(paddings, crops) that make the sizes of space multiples of the blocks.

    Args:
      input_shape: int32 [N], the sizes of space.
      block_shape: int32 [N].
      base_paddings: int32 [N, 2], what is padded at least; zeros unless given.
      name: of the operations.

    Returns:
      Two int32 tensors [N, 2]; constants where all arguments are known. The first
      is base_paddings with more behind, the second cuts that off again.
    """
    shape, blocks = (
        conversion.convert_to_tensor(x, dtypes.int32)
        for x in (input_shape, block_shape)
    )
    if not blocks.shape.is_fully_defined() or blocks.shape.rank != 1:
        raise ValueError("block_shape must be a vector of known size")
    count = blocks.shape[0]
    if count == 0:
        return [array_ops.zeros([0, 2], dtypes.int32)] * 2
    shape.shape.assert_is_compatible_with([count])
    if base_paddings is None:
        base_paddings = np.zeros([count, 2], np.int32)
    base = conversion.convert_to_tensor(base_paddings, dtypes.int32)
    base.shape.assert_is_compatible_with([count, 2])
    known = [execution.get_static_value(x) for x in (shape, blocks, base)]
    if all(x is not None for x in known):
        shape, blocks, base = known
        stack = np.stack
    else:
        stack = array_ops.stack
    start, end = base[:, 0], base[:, 1]
    more = (blocks - (shape + start + end) % blocks) % blocks
    paddings = stack([start, end + more], 1)
    crops = stack([more - more, more], 1)
    return (
        conversion.convert_to_tensor(paddings, dtypes.int32, name="paddings"),
        conversion.convert_to_tensor(crops, dtypes.int32, name="crops"),
    )


@signatures.having(
    "input, dilation_rate, padding, op, filter_shape=None, spatial_dims=None, "
    "data_format=None"
)
def with_space_to_batch(input, dilation_rate, padding, op, **given):
    """op of the input with holes in what it sees: on space cut into the batch.

    Args:
      input: a tensor of at least 3 dimensions, batch, space and channels.
      dilation_rate: ints [n], the distance of what op sees, by dimension of space.
      padding: "SAME" or "VALID".
      op: op(input, n, padding), with a padding "VALID" where a rate is not 1.
      filter_shape: the shape of op's window, for "SAME".
      spatial_dims: the n dimensions of space, growing; 1 to n by default, or from 2 on
        with a data_format that begins with "NC".

    Raises:
      ValueError: for ranks, rates, dimensions or a padding that do not fit.
    """
    input = conversion.convert_to_tensor(input, name="input")
    rates = conversion.convert_to_tensor(
        dilation_rate, dtypes.int32, name="dilation_rate"
    )
    count, known = _checked_rates(dilation_rate, rates)
    first = 2 if (given["data_format"] or "").startswith("NC") else 1
    dims = given["spatial_dims"] or range(first, first + count)
    dims = _checked_dims(dims, count, input, given["spatial_dims"])
    if known is not None and all(known == 1):
        return op(input, count, padding)
    last, inside = dims[-1], [d - 1 for d in dims]
    base, padding = _dilated_paddings(padding, given["filter_shape"], rates, known)
    sizes = [input.shape[d] for d in dims] if input.shape.rank else [None]
    if None in sizes:
        sizes = array_ops.gather(array_ops.shape(input), dims)
    paddings, crops = required_space_to_batch_paddings(sizes, rates, base)
    spread = (
        _spread(x, last, inside, fill)
        for x, fill in zip((rates, paddings, crops), (1, 0, 0))
    )
    rates, paddings, crops = spread
    cut = raw.SpaceToBatchND(input, rates, paddings)
    return raw.BatchToSpaceND(op(cut, count, "VALID"), rates, crops)


def _checked_rates(given, rates):
    """(the number of rates, their values where they are known)."""
    if rates.shape.rank not in (None, 1):
        raise ValueError(
            f"`dilation_rate.shape.rank` must be 1. Received: dilation_rate={given} of "
            f"rank {rates.shape.rank}"
        )
    if not rates.shape.is_fully_defined():
        raise ValueError(
            "`dilation_rate.shape` must be fully defined. Received: "
            f"dilation_rate={given} with shape {rates.shape}"
        )
    known = execution.get_static_value(rates)
    if known is not None and (known <= 0).any():
        raise ValueError(
            f"`dilation_rate` must be positive. Received: dilation_rate={known}"
        )
    return rates.shape[0], known


def _checked_dims(dims, count, input, given):
    dims = [int(d) for d in dims]
    if any(b <= a for a, b in zip([0, *dims], dims)):
        raise ValueError(
            "`spatial_dims` must be a monotonically increasing sequence of positive "
            f"integers. Received: spatial_dims={given}"
        )
    if len(dims) != count:
        raise ValueError(f"Shapes ({len(dims)},) and [{count}] are incompatible")
    rank, least = input.shape.rank, dims[-1] + 1 if dims else 1
    if rank is not None and rank < least:
        raise ValueError(
            f"`input.shape.rank` must be at least {least}. Received: "
            f"input.shape={input.shape} with rank {rank}"
        )
    return dims


def _dilated_paddings(padding, filter_shape, rates, known):
    """(what is padded at least, the padding that is left to the op)."""
    if padding == "VALID":
        return np.zeros([rates.shape[0], 2], np.int32), padding
    if padding != "SAME":
        raise ValueError(
            f"`padding` must be one of 'SAME' or 'VALID'. Received: padding={padding}"
        )
    if filter_shape is None:
        raise ValueError(
            "`filter_shape` must be specified for `padding='SAME'`. Received: "
            f"filter_shape={filter_shape} and padding={padding}"
        )
    shape = conversion.convert_to_tensor(filter_shape, dtypes.int32)
    sizes = execution.get_static_value(shape)
    stack = np.stack if sizes is not None and known is not None else array_ops.stack
    sizes = shape if sizes is None else sizes
    more = (sizes[: rates.shape[0]] - 1) * (rates if known is None else known)
    before = more // 2
    return stack([before, more - before], 1), padding


def _spread(values, last, inside, fill):
    """Values of dimensions of space as those of all dimensions from 1 to the last."""
    rows = array_ops.unstack(values)
    by_dim = dict(zip(inside, rows))
    other = array_ops.zeros_like(rows[0]) + fill
    return array_ops.stack([by_dim.get(i, other) for i in range(last)])
