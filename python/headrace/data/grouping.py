"""Datasets whose elements are made of several: padded batches, windows, groups."""

import numpy as np

from headrace._load import raw
from headrace.data.dataset import DatasetSpec, as_bool, as_int, made, made_of, method
from headrace.data.functions import DatasetFunction, flat
from headrace.data.padding import shape_vector
from headrace.elements import nest, structure
from headrace.framework import conversion, dtypes, execution, tensor_shape
from headrace.framework.type_spec import NoneTensorSpec, TensorSpec
from headrace.ops import check_ops, math_ops
from headrace.ragged import variants
from headrace.ragged.ragged_tensor import RaggedTensor
from headrace.ragged.spec import RaggedTensorSpec


def _check_rows(spec, text):
    """ValueError where elements have no rows."""
    for s in nest.flatten(spec):
        if isinstance(s, DatasetSpec) and s.shape.rank == 0:
            raise ValueError("Slicing dataset elements is not supported for rank 0.")
        if hasattr(s, "shape") and s.shape.rank == 0:
            raise ValueError(text)


@method
def unbatch(self, name=None):
    """The rows of elements as elements; ValueError where elements are scalars."""
    _check_rows(self.element_spec, "Cannot unbatch an input with scalar components.")
    spec = self.element_spec
    counts = {
        s.shape[0]
        for s in nest.flatten(spec)
        if getattr(s, "shape", None) is not None and s.shape.rank
    } - {None}
    if len(counts) > 1:
        first, second = sorted(counts)[:2]
        raise ValueError(
            "`unbatch()` is only supported for datasets of elements whose components "
            "have a matching leading dimension. Encountered both "
            f"{first} and {second}."
        )
    return _of_rows("UnbatchDataset", self, structure.unbatched(spec))


def _of_rows(op, source, spec, **arguments):
    """What an op makes of the rows; the source, not its rows, is the input."""
    dataset = made_of(op, _sliceable(source), spec, **arguments)
    dataset._input_datasets = [source]
    return dataset


def _sliceable(source):
    """The dataset with components whose rows are the components of rows."""
    spec = source.element_spec
    if all(isinstance(s, (TensorSpec, NoneTensorSpec)) for s in nest.flatten(spec)):
        return source

    def sliced(*args):
        value = args[0] if len(args) == 1 and not isinstance(spec, tuple) else args
        return tuple(structure.to_slices(spec, value))

    return source.map(sliced)


@method
def rebatch(self, batch_size, drop_remainder=False, name=None):
    """The rows of batches in batches of another size.

    `batch_size` may be a list of sizes, which come by turns. ValueError where
    elements are scalars.
    """
    _check_rows(
        self.element_spec,
        "Unbatching a tensor is only supported for rank >= 1"
        if drop_remainder
        else "Invalid `batch_sizes`. Expected dataset with rank of >= 1 but found a "
        "dataset with scalar elements. Fix the issue by adding the `batch` "
        "transformation to the dataset.",
    )
    sizes = as_int(batch_size)
    known = execution.get_static_value(sizes)
    size = None
    if known is not None and drop_remainder and np.unique(known).size == 1:
        size = int(np.ravel(known)[0])
    spec = structure.batched(structure.unbatched(self.element_spec), size)
    how = {"batch_sizes": sizes, "drop_remainder": as_bool(drop_remainder)}
    return _of_rows("RebatchDatasetV2", self, spec, **how)


@method
def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
    """Datasets of `size` consecutive elements, each a structure of datasets.

    A window begins `shift` elements (else `size`) behind the one before, and takes
    every stride-th one. The last ones may be smaller, unless `drop_remainder` is
    True.
    """
    shift = size if shift is None else shift
    how = {"size": as_int(size), "shift": as_int(shift), "stride": as_int(stride)}
    how["drop_remainder"] = as_bool(drop_remainder)
    for s in nest.flatten(self.element_spec):
        if len(structure.component_specs(s)) > 1:
            raise NotImplementedError(f"Dataset.window of elements of {s}")
    spec = nest.map_structure(lambda s: DatasetSpec(s), self.element_spec)
    return made_of("WindowDataset", self, spec, **how)


@method
def sparse_batch(self, batch_size, row_shape, name=None):
    """Consecutive elements as sparse tensors of [batch_size, *row_shape].

    Sizes of None are the largest of the batch; TypeError for elements that are
    structures.
    """
    spec = self.element_spec
    if not hasattr(spec, "dtype"):
        types = nest.map_structure(lambda s: getattr(s, "dtype", s), spec)
        raise TypeError(
            "`dense_to_sparse_batch` requires an input dataset whose elements have "
            "a single component, but the given dataset has the following component "
            f"types: {types}."
        )
    row = shape_vector(row_shape)
    dims = execution.get_static_value(row)
    rank = row.shape[0]
    sizes = [None] * rank if dims is None else [None if d < 0 else d for d in dims]
    spec = structure.SparseTensorSpec([None, *sizes], spec.dtype)
    how = {"batch_size": as_int(batch_size), "row_shape": row}
    name = "SparseBatchDataset"
    return made_of("DenseToSparseBatchDataset", self, spec, class_name=name, **how)


def _number(f, name):
    """Wraps a function, an argument of that name, so that it returns an int64 scalar."""

    def number(*args):
        value = conversion.convert_to_tensor(f(*args))
        if not (value.dtype.is_integer and value.shape.is_compatible_with([])):
            raise ValueError(
                f"Invalid `{name}`. `{name}` must return a single `tf.int64` scalar "
                f"tensor but its return type is {TensorSpec(value.shape, value.dtype)}."
            )
        return math_ops.cast(value, dtypes.int64)

    return number


@method
def group_by_window(
    self, key_func, reduce_func, window_size=None, window_size_func=None, name=None
):
    """Gathers elements of one key: those of the datasets reduce_func(key, window).

    `key_func` gives an integer scalar; `window_size`, or window_size_func(key),
    says how many elements a window has; smaller ones come at the end.
    """
    if (window_size is None) == (window_size_func is None):
        raise ValueError(
            "Either the `window_size` argument or the `window_size_func` argument "
            "must be specified."
            if window_size is None
            else "The `window_size` argument and the `window_size_func` argument "
            "cannot be both specified."
        )
    if window_size_func is None:

        def window_size_func(_):
            return as_int(window_size)

    spec = self.element_spec
    number = TensorSpec([], dtypes.int64)
    here = "group_by_window"
    key = DatasetFunction(_number(key_func, "key_func"), here, [spec])
    of_key = _number(window_size_func, "window_size_func")
    size = DatasetFunction(of_key, here, [number], unpack=False)
    of_window = [number, DatasetSpec(spec)]
    reduce_ = DatasetFunction(reduce_func, here, of_window, unpack=False)
    if not isinstance(reduce_.output, DatasetSpec):
        raise TypeError(
            "Invalid `reduce_func`. `reduce_func` must return a single `tf.data."
            f"Dataset` object but its return type is {reduce_.output}."
        )
    out = reduce_.output.element_spec
    functions = [key, reduce_, size]
    variant = raw.GroupByWindowDataset(
        self._variant_tensor,
        *(f.captures for f in functions),
        key_func=key.function,
        reduce_func=reduce_.function,
        window_size_func=size.function,
        **flat(out),
    )
    return made("GroupByWindowDataset", variant, out, [self], functions)


@method
def bucket_by_sequence_length(
    self,
    element_length_func,
    bucket_boundaries,
    bucket_batch_sizes,
    padded_shapes=None,
    padding_values=None,
    pad_to_bucket_boundary=False,
    no_padding=False,
    drop_remainder=False,
    name=None,
):
    """Batches of elements of like lengths, padded unless `no_padding`.

    element_length_func(*element) is an integer; bucket i has lengths in
    [bucket_boundaries[i - 1], bucket_boundaries[i]) and batches of
    bucket_batch_sizes[i]: one size more than boundaries (ValueError else).
    `pad_to_bucket_boundary` pads to the boundary less 1, and fails for elements of
    the last bucket.
    """
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError(
            "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but "
            f"`len(bucket_batch_sizes)={len(bucket_batch_sizes)}` and "
            f"`len(bucket_boundaries)={len(bucket_boundaries)}`."
        )
    boundaries = np.array(bucket_boundaries, np.int64)
    sizes = np.array(bucket_batch_sizes, np.int64)

    def bucket(*args):
        length = conversion.convert_to_tensor(element_length_func(*args))
        length = raw.Cast(length, DstT=dtypes.int64)
        below = raw.LessEqual(boundaries, length)
        return raw.Sum(raw.Cast(below, DstT=dtypes.int64), 0)

    def size_of(number):
        return raw.GatherV2(sizes, number, 0)

    def batch(number, window):
        size = size_of(number)
        if no_padding:
            return window.batch(size, drop_remainder=drop_remainder)
        shapes = padded_shapes
        if shapes is None:
            shapes = nest.map_structure(lambda s: s.shape, window.element_spec)
        if pad_to_bucket_boundary:
            last = np.append(boundaries, 0)
            check = raw.Less(number, np.int64(len(boundaries)))
            check_ops.Assert(
                check,
                ["When pad_to_bucket_boundary=True, elements must have length < max"],
            )
            boundary = raw.GatherV2(last, number, 0) - 1
            spec = window.element_spec
            leaves = structure.shape_leaves(spec, shapes)
            shapes = nest.pack(spec, [_to_boundary(s, boundary) for s in leaves])
        return window.padded_batch(
            size, shapes, padding_values, drop_remainder=drop_remainder
        )

    return self.group_by_window(bucket, batch, window_size_func=size_of)


def _to_boundary(shape, boundary):
    """A vector in which sizes left open are the boundary."""
    sizes = []
    for d in shape.as_list():
        sizes.append(boundary if d is None else as_int(d))
    return raw.Pack(sizes) if sizes else as_int(np.zeros([0], np.int64))


@method
def ragged_batch(
    self, batch_size, drop_remainder=False, row_splits_dtype=dtypes.int64, name=None
):
    """Consecutive elements of any sizes as ragged tensors: [batch_size, ...]."""
    splits = dtypes.as_dtype(row_splits_dtype)
    specs = nest.flatten(self.element_spec)

    def is_ragged(s):
        plain = isinstance(s, TensorSpec) or (
            isinstance(s, RaggedTensorSpec) and s.ragged_rank == 0  # tensors, too
        )
        return plain and not s.shape.is_fully_defined()

    for s in specs:
        if is_ragged(s) and s.shape.rank is None:
            raise ValueError("ragged_batch needs elements of known rank")

    def encode(x, s):
        if not is_ragged(s):
            return x
        rank = s.shape.rank - 1
        if rank > 0:
            x = RaggedTensor.from_tensor(x, ragged_rank=rank, row_splits_dtype=splits)
        return variants.to_variant(x)

    def to_variants(*args):
        value = args[0] if not isinstance(self.element_spec, tuple) else args
        leaves = [encode(x, s) for x, s in zip(nest.flatten(value), specs)]
        return nest.pack(self.element_spec, leaves)

    def decode(x, s, size):
        if not is_ragged(s):
            return x
        shape = tensor_shape.TensorShape([size]).concatenate(s.shape)
        spec = RaggedTensorSpec(shape, s.dtype, s.shape.rank, splits)
        return spec._from_tensor_list([x])

    batches = self.map(to_variants).batch(batch_size, drop_remainder)
    size = structure.component_specs(batches.element_spec)[0].shape[0]

    def to_ragged(*args):
        value = args[0] if not isinstance(self.element_spec, tuple) else args
        leaves = [decode(x, s, size) for x, s in zip(nest.flatten(value), specs)]
        return nest.pack(self.element_spec, leaves)

    return batches.map(to_ragged)
