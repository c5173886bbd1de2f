"""The methods of NumPy's arrays that tensors get."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.numpy_api import (
    arrays,
    elementwise,
    indexing,
    reductions,
    shaping,
)
from headrace.numpy_api.weak_tensor import plain


def _astype(self, dtype):
    """A tensor of another dtype, which is what names one for tf."""
    return tf.cast(self, tf.as_dtype(dtype))


def _reshape(self, *args, **kwargs):
    """reshape(sizes) or reshape(size, size, ...), with an `order`; ValueError for other
    arguments."""
    order = kwargs.pop("order", "C")
    if kwargs:
        raise ValueError(f"Unsupported arguments: {kwargs.keys()}")
    sizes = args[0] if len(args) == 1 and not isinstance(args[0], int) else list(args)
    return shaping.reshape(self, sizes, order)


def _tolist(self):
    """The elements as nested lists; ValueError for tensors of graphs."""
    if not isinstance(plain(self), _headrace.EagerTensor):
        raise ValueError("Symbolic Tensors do not support the tolist API.")
    return self.numpy().tolist()


def _pos(self):
    """The tensor itself."""
    return self


def _round(self, decimals=0):
    """elementwise.around"""
    return elementwise.around(self, decimals)


def _size(self):
    count = self.shape.num_elements()
    return tf.size(self) if count is None else arrays.size(self)


METHODS = {
    "T": property(lambda self: shaping.transpose(self), doc="Transposed."),
    "data": property(_pos, doc="The tensor itself."),
    "size": property(_size, doc="The number of elements."),
    "astype": _astype,
    "reshape": _reshape,
    "tolist": _tolist,
    "__pos__": _pos,
    "__round__": _round,
    "ravel": shaping.ravel,
    "flatten": shaping.flatten,
    "transpose": shaping.transpose,
    "clip": elementwise.clip,
    "max": reductions.amax,
    "min": reductions.amin,
    "mean": reductions.mean,
}
_STATIC = {
    "_with_index_update": indexing.with_index_update,
    "_with_index_add": indexing.with_index_add,
    "_with_index_min": indexing.with_index_min,
    "_with_index_max": indexing.with_index_max,
}


def add_to(*classes):
    """Gives the classes the methods."""
    for cls in classes:
        for name, method in METHODS.items():
            setattr(cls, name, method)
        for name, function in _STATIC.items():
            setattr(cls, name, staticmethod(function))
