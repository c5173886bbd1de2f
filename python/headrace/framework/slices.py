"""Python keys as the arguments of StridedSlice and of its assignment."""

import numpy as np

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes, name_scopes
from headrace.framework.dimension import Dimension

_CHECK = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
    "tf.int32/tf.int64 tensors are valid indices, got "
)


_INTEGERS = (dtypes.int16, dtypes.int32, dtypes.int64)


def _check_index(index):
    if isinstance(index, (int, np.integer, list, tuple)):
        return
    dtype = getattr(index, "dtype", None)
    if isinstance(index, (_headrace.Tensor, _headrace.VariableBase)):
        if dtype in _INTEGERS and index.shape.rank in (0, None):
            return
    elif dtype is not None and getattr(index, "shape", None) == ():
        if dtypes.as_dtype(dtype).is_integer:
            return
    raise TypeError(f"{_CHECK}{index!r}")


def is_mask(key):
    if isinstance(key, (bool, np.bool_)):
        return True
    if isinstance(key, (_headrace.Tensor, _headrace.VariableBase)):
        return key.dtype == dtypes.bool
    return isinstance(key, np.ndarray) and key.dtype == np.bool_


def _value(key):
    """A bound of a slice; a Dimension stands for its size, or for none."""
    return key.value if isinstance(key, Dimension) else key


def _known(dimension):
    if dimension.value is None:
        raise TypeError(f"{_CHECK}{dimension!r}")
    return dimension.value


_MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
_NO_MASKS = {f"{name}_mask": 0 for name in _MASKS}


class _Slice:
    """Collects the arguments of a StridedSlice."""

    def __init__(self):
        self.begin, self.end, self.strides = [], [], []
        self.masks = dict(_NO_MASKS)

    def add(self, key):
        bit = 1 << len(self.begin)
        begin, end, stride = 0, 0, 1
        if isinstance(key, Dimension):
            key = _known(key)
        if isinstance(key, slice):
            key = slice(*(_value(k) for k in (key.start, key.stop, key.step)))
            if key.start is None:
                self.masks["begin_mask"] |= bit
            else:
                _check_index(key.start)
                begin = key.start
            if key.stop is None:
                self.masks["end_mask"] |= bit
            else:
                _check_index(key.stop)
                end = key.stop
            if key.step is not None:
                _check_index(key.step)
                stride = key.step
        elif key is Ellipsis:
            self.masks["ellipsis_mask"] |= bit
        elif key is None:
            self.masks["new_axis_mask"] |= bit
        else:
            _check_index(key)
            several = isinstance(key, (list, tuple))
            begin, end = key, [k + 1 for k in key] if several else key + 1
            self.masks["shrink_axis_mask"] |= bit
        self.begin.append(begin)
        self.end.append(end)
        self.strides.append(stride)

    def arguments(self):
        if not self.begin:
            begin, end, strides = (_ints([], dtypes.int32) for _ in range(3))
        else:
            begin, end, strides = self._arrays()
        return {"begin": begin, "end": end, "strides": strides, **self.masks}

    def _arrays(self):
        """begin, end, strides as tensors of one dtype."""
        lists = [_without_bools(x) for x in (self.begin, self.end, self.strides)]
        leaves = [x for items in lists for x in items]
        if all(type(x) is int for x in leaves):
            small = all(-(2**31) <= x < 2**31 for x in leaves)
            dtype = dtypes.int32 if small else dtypes.int64
            return tuple(_ints(x, dtype) for x in lists)
        dtype = dtypes.int32
        for x in leaves:
            if getattr(x, "dtype", None) in (dtypes.int64, np.int64):
                dtype = dtypes.int64
        return tuple(
            # Numbers stay constants, whose values shape rules see.
            _ints(items, dtype)
            if all(type(x) is int for x in items)
            else _packed([_cast_index(x, dtype) for x in items])
            for items in lists
        )


def _without_bools(items):
    """Bounds with numbers for True and False, which are such beside other numbers alone:
    TypeError for nothing but these, as of tensors of them."""
    kinds = {type(x) is bool for x in items}
    if True not in kinds:
        return items
    if False not in kinds:
        raise TypeError(f"{_CHECK}{items[0]!r}")
    return [int(x) if type(x) is bool else x for x in items]


def _ints(values, dtype):
    """A constant; in graphs it is named as upstream names it."""
    made = _headrace.make_tensor(values, dtype)
    return made if _headrace.is_eager() else conversion.constant(made, name="stack")


def _packed(items):
    if _headrace.holds_tensors(items):
        return raw.Pack(items, axis=0, name="stack")
    return conversion.convert_to_tensor(items, name="stack")


def _cast_index(x, dtype):
    if isinstance(x, (_headrace.Tensor, _headrace.VariableBase)):
        x = conversion.convert_to_tensor(x)
        return x if x.dtype == dtype else raw.Cast(x, DstT=dtype)
    return _headrace.to_tensor(int(x) if not isinstance(x, (list, tuple)) else x, dtype)


def pieces_of(key):
    """The pieces of a key; `arguments()` are what StridedSlice and its assignment are
    asked, which a graph names in their scope."""
    pieces = _Slice()
    for k in key if isinstance(key, tuple) else (key,):
        pieces.add(k)
    return pieces


def slice_of(key):
    """What StridedSlice and its assignment are asked for a key."""
    return pieces_of(key).arguments()


def assign_part(variable, key, value, name=None):
    """Sets variable[key]."""
    value = conversion.convert_to_tensor(value, variable.dtype)
    _assign_part(raw.ResourceStridedSliceAssign, variable.handle, key, value, name)


def assign_part_of_reference(reference, key, value, name=None):
    """Sets a part of the variable behind a reference; the reference."""
    return _assign_part(raw.StridedSliceAssign, reference, key, value, name)


def _assign_part(op, ref, key, value, name):
    if is_mask(key):
        raise ValueError("Sliced assignment is not supported for boolean masks")
    with name_scopes.graph_scope(name, "strided_slice"):
        return op(
            ref=ref,
            value=value,
            name="_assign",
            **slice_of(tuple(key) if isinstance(key, list) else key),
        )


def batch_indices(indices):
    """Indices [..., n] of rows, each with its place in the batch: [..., n, depth]."""
    sizes = indices.shape.as_list()
    places = []
    for i, size in enumerate(sizes[:-1]):
        row = raw.Range(0, size, 1)
        shape = [1] * len(sizes)
        shape[i] = size
        row = raw.Reshape(row, shape)
        places.append(raw.BroadcastTo(row, sizes))
    return raw.Pack([*places, indices], axis=-1)
