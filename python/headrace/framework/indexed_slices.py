"""tf.IndexedSlices: rows of a larger tensor, as gradients of gathers are."""

import collections

from headrace._load import _headrace, raw
from headrace.context.properties import read_only
from headrace.framework import conversion, dtypes, tensor_shape, type_spec

IndexedSlicesValue = collections.namedtuple(
    "IndexedSlicesValue", ["values", "indices", "dense_shape"]
)


class OfValues:
    """A composite of which its `_values`, a tensor, tell much."""

    _is_composite_tensor = _is_tensor_like = True

    dtype = read_only("_values.dtype", "The dtype of the values.")
    name = read_only(
        "_values.name", "The name of the values; AttributeError when eager."
    )
    device = read_only(
        "_values.device", "The name of the device that holds the values."
    )
    op = read_only(
        "_values.op", "The operation that made the values; AttributeError when eager."
    )

    def consumers(self):
        """The operations that take the values; NotImplementedError when eager."""
        return self._values.consumers()


class IndexedSlices(OfValues):
    """`values[i]` is row `indices[i]` of a tensor of shape `dense_shape`."""

    def __init__(self, values, indices, dense_shape=None):
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    values = read_only("_values", "The rows that are given: [number of rows, ...].")

    @property
    def indices(self):
        """Where the rows belong, along the first dimension: [number of rows]. May
        repeat.
        """
        return self._indices

    @property
    def dense_shape(self):
        """The shape of the whole tensor, as a tensor,
        or None where it was not given."""
        return self._dense_shape

    @property
    def shape(self):
        """The shape of the whole tensor: a TensorShape,
        unknown without `dense_shape`."""
        if self._dense_shape is None:
            return tensor_shape.TensorShape(None)
        if isinstance(self._dense_shape, _headrace.EagerTensor):
            return tensor_shape.TensorShape([int(d) for d in self._dense_shape.numpy()])
        rank = self._dense_shape.shape[0]
        return tensor_shape.unknown_shape(rank)

    graph = read_only(
        "_values.graph", "The graph that the values are in; AttributeError when eager."
    )

    def _components(self):
        parts = [self._values, self._indices]
        return parts if self._dense_shape is None else parts + [self._dense_shape]

    def _from_components(self, parts):
        return IndexedSlices(*parts)

    def _value_of(self, arrays):
        """What a session gives for the parts' values."""
        return IndexedSlicesValue(*arrays, *[None] * (3 - len(arrays)))

    def __tf_tensor__(self, dtype=None, name=None):
        if self._dense_shape is None:
            raise ValueError(
                "Tensor conversion requested for IndexedSlices for argument "
                f"`{name or 'value'}` without dense_shape: {self}"
            )
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(
            self.dtype
        ):
            raise ValueError(
                f"Tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for "
                f"IndexedSlices with dtype {self.dtype.name}"
            )
        return raw.UnsortedSegmentSum(self._values, self._indices, self._dense_shape[0])

    def __neg__(self):
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __str__(self):
        tail = (
            "" if self._dense_shape is None else f", dense_shape={self._dense_shape!s}"
        )
        return (
            f"IndexedSlices(indices={self._indices!s}, values={self._values!s}{tail})"
        )

    @property
    def _type_spec(self):
        return type_spec.IndexedSlicesSpec(
            self.shape,
            self.values.dtype,
            self.indices.dtype,
            None if self._dense_shape is None else self._dense_shape.dtype,
            self._indices.shape,
        )


def to_gradient(x):
    """What tapes of C++ take: tensors as they are, slices as tuples."""
    if isinstance(x, IndexedSlices):
        return tuple(_tensor(part) for part in (x.values, x.indices, x.dense_shape))
    return _tensor(x)


def _tensor(x):
    return None if x is None else conversion.convert_to_tensor(x)


def from_gradient(x):
    """The other way."""
    return IndexedSlices(*x) if isinstance(x, tuple) else x


def convert_to_tensor_or_indexed_slices(value, dtype=None, name=None):
    """Slices and other composite tensors as they are, of anything else a tensor.

    ValueError of one of another dtype.
    """
    if not getattr(type(value), "_is_composite_tensor", False):
        return conversion.convert_to_tensor(value, dtype, name=name)
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(
            f"Incompatible tensor conversion requested to `dtype` "
            f"{dtypes.as_dtype(dtype).name} for `value` ({value}) with dtype "
            f"{value.dtype.name}."
        )
    return value
