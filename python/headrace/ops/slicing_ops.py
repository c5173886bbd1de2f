"""Indexing and slicing of tensors by Python keys."""

from headrace._load import _headrace
from headrace.framework import conversion, name_scopes
from headrace.framework.slices import is_mask, pieces_of
from headrace.ops.array_ops import boolean_mask, ones_like
from headrace.ops.faces import face


def slice_tensor(tensor, key, variable=None):
    """tensor[key], in all of Python's and NumPy's forms that upstream takes."""
    if is_mask(key):
        return boolean_mask(tensor, key)
    if isinstance(key, list):
        key = tuple(key)
    pieces = pieces_of(key)
    if _headrace.is_eager():
        return _slice_by(tensor, pieces, "strided_slice/")
    with name_scopes.name_scope("strided_slice") as scope:
        return _slice_by(tensor, pieces, scope)


def _slice_by(tensor, pieces, name):
    return _strided_slice(input=tensor, name=name, **pieces.arguments())


_strided_slice = face(
    "StridedSlice",
    "strided_slice",
    "input, begin, end, strides, begin_mask=0, end_mask=0, ellipsis_mask=0, "
    "new_axis_mask=0, shrink_axis_mask=0, name=None",
)


def strided_slice(
    input_,
    begin,
    end,
    strides=None,
    begin_mask=0,
    end_mask=0,
    ellipsis_mask=0,
    new_axis_mask=0,
    shrink_axis_mask=0,
    var=None,
    name=None,
):
    """A slice by vectors of begin, end and stride."""
    begin = conversion.convert_to_tensor(begin)
    strides = ones_like(begin) if strides is None else strides
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return _strided_slice(input_, begin, end, strides, *masks, name)
