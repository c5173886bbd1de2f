"""tf.SparseTensor: the places and values of the elements that are not zero."""

import collections

import numpy as np

from headrace._load import _headrace, raw
from headrace.context.properties import read_only
from headrace.framework import conversion, dtypes, execution, name_scopes
from headrace.framework import tensor_shape, type_spec
from headrace.framework.indexed_slices import OfValues

SparseTensorValue = collections.namedtuple(
    "SparseTensorValue", ["indices", "values", "dense_shape"]
)


def _known_shape(dense_shape):
    """The static shape that a shape tensor holds."""
    if isinstance(dense_shape, _headrace.SymbolicTensor):
        known = _headrace.partial_shape(dense_shape)
        if known.rank is not None:
            return known
        return tensor_shape.unknown_shape(dense_shape.shape[0])
    value = execution.get_static_value(dense_shape)
    return tensor_shape.TensorShape([int(d) if d >= 0 else None for d in value])


class SparseTensor(OfValues):
    """`values[i]` lies at `indices[i]` of a tensor of shape `dense_shape`."""

    _is_sparse = True
    __array_priority__ = 100

    @classmethod
    def from_value(cls, sparse_tensor_value):
        """A SparseTensor of one, or of the SparseTensorValue that a session gave.

        TypeError for anything else.
        """
        if not is_sparse(sparse_tensor_value) and not isinstance(
            sparse_tensor_value, SparseTensorValue
        ):
            raise TypeError(
                f"Argument sparse_tensor_value={sparse_tensor_value} is neither "
                "SparseTensor nor SparseTensorValue."
            )
        v = sparse_tensor_value
        return cls(v.indices, v.values, v.dense_shape)

    def __init__(self, indices, values, dense_shape):
        if all(isinstance(x, _headrace.Tensor) for x in (indices, values, dense_shape)):
            self._convert(indices, values, dense_shape)
        else:
            with name_scopes.name_scope("SparseTensor"):
                self._convert(indices, values, dense_shape)
        rows = self._indices.shape.with_rank(2)
        count = self._values.shape.with_rank(1)
        rank = self._dense_shape.shape.with_rank(1)
        for a, b in ((rows[0], count[0]), (rows[1], rank[0])):
            if None not in (a, b) and a != b:
                raise ValueError(f"Dimensions {a} and {b} are not compatible")
        self._shape = _known_shape(self._dense_shape)

    def _convert(self, indices, values, dense_shape):
        convert = conversion.convert_to_tensor
        self._indices = convert(indices, dtypes.int64, name="indices")
        self._values = convert(values, name="values")
        self._dense_shape = convert(dense_shape, dtypes.int64, name="dense_shape")

    indices = read_only(
        "_indices", "The places of the values: int64, [number of values, rank]."
    )
    values = read_only(
        "_values", "The values, one for each row of `indices`: [number of values]."
    )
    dense_shape = read_only(
        "_dense_shape", "The shape of the whole tensor, as an int64 tensor: [rank]."
    )
    shape = read_only(
        "_shape",
        "The shape of the whole tensor, as far as it is known without a run: a "
        "TensorShape.",
    )
    graph = read_only(
        "_indices.graph",
        "The graph that the indices are in; AttributeError when eager.",
    )

    @property
    def _type_spec(self):
        return SparseTensorSpec(self._shape, self.dtype)

    def get_shape(self):
        """The same as `shape`."""
        return self._shape

    def set_shape(self, shape):
        """Narrows the static shape by what `shape` knows;
        ValueError where they differ."""
        self._shape = self._shape.merge_with(shape)

    def with_values(self, new_values):
        """The same places with other values."""
        return SparseTensor(self._indices, new_values, self._dense_shape)

    def eval(self, feed_dict=None, session=None):
        """The value, in a session."""
        parts = self._components()
        return SparseTensorValue(*(p.eval(feed_dict, session) for p in parts))

    def numpy(self):
        """A SparseTensorValue of three NumPy arrays; only when eager."""
        return SparseTensorValue(*(p.numpy() for p in self._components()))

    def _numpy(self):
        return self.numpy()

    def _is_eager(self):  # upstream's name; its tests ask for it
        return isinstance(self._values, _headrace.EagerTensor)

    def _static_parts(self):
        return (self.shape,)

    def _components(self):
        return [self._indices, self._values, self._dense_shape]

    def _from_components(self, parts):
        made = _make(parts)
        if isinstance(made, SparseTensor) and not made._is_eager():
            made._shape = made._shape.merge_with(self._shape)
        return made

    def _loosened(self):
        """The same, of which no more is known than its dense_shape tells."""
        return _make(self._components())

    def _value_of(self, arrays):
        """What a session gives for the parts' values."""
        return SparseTensorValue(*arrays)

    def _print_parts(self):
        return [
            "'SparseTensor(indices=",
            self._indices,
            ", values=",
            self._values,
            ", shape=",
            self._dense_shape,
            ")'",
        ]

    def __repr__(self):
        return (
            f"SparseTensor(indices={self._indices!s}, values={self._values!s}, "
            f"dense_shape={self._dense_shape!s})"
        )

    def __neg__(self):
        return self.with_values(-self._values)

    def __mul__(self, y):
        return _cwise(raw.SparseDenseCwiseMul, self, y)

    __rmul__ = __mul__

    def __truediv__(self, y):
        wanted = dtypes.DIVIDED_AS.get(self.dtype.name)
        if wanted is not None:
            self = self.with_values(raw.Cast(self._values, DstT=wanted))
            y = conversion.convert_to_tensor(y)
            y = y if y.dtype is wanted else raw.Cast(y, DstT=wanted)
        return _cwise(raw.SparseDenseCwiseDiv, self, y)

    __div__ = __truediv__

    __iter__ = None  # slices without end is what __getitem__ alone would give

    def __getitem__(self, key):
        return _getitem(self, key)


def _make(parts):
    """Of tensors that are known to fit, or of what a session fetched."""
    if not isinstance(parts[0], _headrace.Tensor):
        if isinstance(parts[0], np.ndarray):
            return SparseTensorValue(*parts)
        return parts
    return SparseTensor(*parts)


def _cwise(op, sparse, dense):
    dense = conversion.convert_to_tensor(dense, dtype_hint=sparse.dtype)
    return sparse.with_values(op(*sparse._components(), dense))


def _getitem(sparse, key):
    """Slices with a start and an end, and the steps that are 1."""
    keys = list(key) if isinstance(key, tuple) else [key]
    rank = sparse.shape.rank
    if any(k is Ellipsis for k in keys):
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[at : at + 1] = [slice(None)] * (rank - len(keys) + 1)
    keys += [slice(None)] * (rank - len(keys))
    start, size, drop = [], [], []
    for d, k in enumerate(keys):
        n = sparse.shape[d]
        if isinstance(k, slice):
            if k.step not in (None, 1):
                raise ValueError(f"SparseTensor slices have no steps, got {k}")
            first, last, _ = k.indices(n)
            start.append(first)
            size.append(max(0, last - first))
        else:
            start.append(k + n if k < 0 else k)
            size.append(1)
            drop.append(d)
    result = raw.SparseSlice(*sparse._components(), _sizes(start), _sizes(size))
    if not drop:
        return SparseTensor(*result)
    indices, dense_shape = raw.SparseReshape(
        result[0], result[2], _sizes([size[d] for d in range(rank) if d not in drop])
    )
    return SparseTensor(indices, result[1], dense_shape)


def _sizes(values):
    return conversion.convert_to_tensor(values, dtype=dtypes.int64)


class SparseTensorSpec(type_spec.ValuesSpec):
    """What a sparse tensor is like."""

    __slots__ = ("_dtype", "_shape")

    def __init__(self, shape=None, dtype=dtypes.float32):
        self._shape = tensor_shape.as_shape(shape)
        self._dtype = dtypes.as_dtype(dtype)

    value_type = SparseTensor
    shape = read_only("_shape", "The shape of the whole tensor: a TensorShape.")
    dtype = read_only("_dtype", "The dtype of the values.")

    def _serialize(self):
        return (self._shape, self._dtype)

    @property
    def _component_specs(self):
        rank = self._shape.rank
        return [
            type_spec.TensorSpec([None, rank], dtypes.int64),
            type_spec.TensorSpec([None], self._dtype),
            type_spec.TensorSpec([rank], dtypes.int64),
        ]

    def _from_components(self, parts):
        result = _make(parts)
        if isinstance(result, SparseTensor):
            result._shape = result._shape.merge_with(self._shape)
        return result

    # As elements of datasets and of maps: one variant each.

    @property
    def _flat_tensor_specs(self):
        return [type_spec.TensorSpec(None, dtypes.variant)]

    def _to_tensor_list(self, value):
        return [raw.SerializeSparse(*value._components(), out_type=dtypes.variant)]

    def _to_batched_tensor_list(self, value):
        parts = value._components()
        return [raw.SerializeManySparse(*parts, out_type=dtypes.variant)]

    def _from_tensor_list(self, tensor_list):
        indices, values, shape = raw.DeserializeSparse(
            tensor_list[0], dtype=self._dtype
        )
        rank = self._shape.rank
        indices.set_shape([None, rank])
        shape.set_shape([rank])
        return self._from_components([indices, values, shape])

    _from_compatible_tensor_list = _from_tensor_list

    def _batch(self, batch_size):
        return SparseTensorSpec(
            tensor_shape.TensorShape([batch_size]).concatenate(self._shape), self._dtype
        )

    def _unbatch(self):
        if self._shape.rank == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return SparseTensorSpec(self._shape[1:], self._dtype)

    @classmethod
    def from_value(cls, sparse):
        """The spec of a SparseTensor: its static shape and its dtype."""
        return cls(sparse.shape, sparse.dtype)


def _of_value(value):
    shape = [int(d) for d in value.dense_shape]
    return SparseTensorSpec(shape, dtypes.as_dtype(np.asarray(value.values).dtype))


type_spec.register_type_spec_from_value_converter(SparseTensorValue, _of_value)


def is_sparse(x):
    """True for sparse tensors and their values of sessions."""
    return isinstance(x, (SparseTensor, SparseTensorValue))


def to_sparse(x):
    """A SparseTensor of one, or of a session's value."""
    if isinstance(x, SparseTensorValue):
        return SparseTensor.from_value(x)
    if not isinstance(x, SparseTensor):
        raise TypeError(f"Input must be a SparseTensor. Received: {x}")
    return x


def convert_to_tensor_or_sparse_tensor(value, dtype=None, name=None):
    """A SparseTensor of one, or of a session's value; of anything else a tensor.

    RuntimeError of a sparse tensor of another dtype.
    """
    if not is_sparse(value):
        return conversion.convert_to_tensor(value, dtype, name=name)
    value = to_sparse(value)
    if dtype is not None and value.dtype != dtypes.as_dtype(dtype):
        raise RuntimeError(
            f"Sparse dtype mismatch. Requested: {dtypes.as_dtype(dtype).name},  Actual: "
            f"{value.dtype.name}"
        )
    return value


from headrace.framework import sparse_functions  # noqa: E402, F401
