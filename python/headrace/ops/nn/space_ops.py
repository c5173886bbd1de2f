"""Blocks of space as parts of the batch, and windows of volumes."""

import numpy as np

from headrace.framework import conversion, dtypes, execution
from headrace.framework.name_scopes import composite
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
