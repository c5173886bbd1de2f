"""Datasets whose elements are made of several: padded batches, windows, groups."""

import numpy as np

from headrace._load import _headrace
from headrace.data import nest, structure
from headrace.data.dataset import Dataset, DatasetSpec
from headrace.data.functions import DatasetFunction, flat, raw
from headrace.data.transforms import _UnaryDataset, as_bool, as_int, batched_spec
from headrace.framework import conversion, dtypes, execution, tensor_shape
from headrace.framework.type_spec import TensorSpec


class _UnbatchDataset(_UnaryDataset):
    def __init__(self, source):
        super().__init__(
            "UnbatchDataset", source, structure.unbatched(source.element_spec)
        )


class _RebatchDataset(_UnaryDataset):
    def __init__(self, source, batch_size, drop_remainder):
        sizes = as_int(batch_size)
        known = execution.get_static_value(sizes)
        size = None
        if known is not None and drop_remainder and np.unique(known).size == 1:
            size = int(np.ravel(known)[0])
        spec = structure.batched(structure.unbatched(source.element_spec), size)
        super().__init__(
            "RebatchDatasetV2",
            source,
            spec,
            batch_sizes=sizes,
            drop_remainder=as_bool(drop_remainder),
        )


class _WindowDataset(_UnaryDataset):
    def __init__(self, source, size, shift, stride, drop_remainder):
        shift = size if shift is None else shift
        spec = nest.map_structure(lambda s: DatasetSpec(s), source.element_spec)
        super().__init__(
            "WindowDataset",
            source,
            spec,
            size=as_int(size),
            shift=as_int(shift),
            stride=as_int(stride),
            drop_remainder=as_bool(drop_remainder),
        )


def _shape_vector(shape):
    """A padded shape as a vector with -1 for sizes left open."""
    if isinstance(shape, _headrace.Tensor):
        return conversion.convert_to_tensor(shape, dtypes.int64)
    shape = tensor_shape.as_shape(shape)
    return as_int([-1 if d is None else d for d in shape.as_list()])


def _padded_shapes(spec, shapes):
    """One shape a component of the spec."""
    leaves = nest.flatten(spec)
    if shapes is None:
        for s in leaves:
            if s.shape.rank is None:
                raise ValueError(
                    "You must provide `padded_shapes` argument because component "
                    f"{s} has unknown rank."
                )
        return [s.shape for s in leaves]
    return structure.shape_leaves(spec, shapes)


def _default_value(dtype):
    if dtype == dtypes.string:
        return ""
    if dtype in (dtypes.variant, dtypes.resource):
        raise TypeError(
            "Padding of elements that hold sparse or ragged tensors, datasets or other "
            "composites is not supported."
        )
    return np.zeros([], dtype.as_numpy_dtype)


def _values(spec, values):
    leaves = nest.flatten(spec)
    if values is None:
        given = [None] * len(leaves)
    elif not nest.is_nested(values):
        given = [values] * len(leaves)
    else:
        given = nest.flatten(values)
        nest.assert_same_structure(spec, values)
    out = []
    for s, v in zip(leaves, given):
        v = _default_value(s.dtype) if v is None else v
        value = conversion.convert_to_tensor(v)
        if value.shape.rank != 0:
            raise ValueError(f"Padding value must be a scalar, but got {value}.")
        if value.dtype != s.dtype:
            if isinstance(v, _headrace.Tensor) or len(nest.flatten(spec)) == 1:
                try:
                    value = conversion.convert_to_tensor(v, s.dtype)
                except (TypeError, ValueError):
                    raise TypeError(
                        f"Mismatched type for padding value. Expected {s.dtype}, got "
                        f"{value.dtype}."
                    ) from None
            else:
                value = conversion.convert_to_tensor(v, s.dtype)
        out.append(value)
    return out


class _PaddedBatchDataset(Dataset):
    def __init__(
        self, source, batch_size, padded_shapes, padding_values, drop_remainder
    ):
        spec = source.element_spec
        for s in nest.flatten(spec):
            if not isinstance(s, TensorSpec):
                raise TypeError(
                    "`padded_batch` is only supported for datasets that produce tensor "
                    f"elements but type spec {s} is not supported."
                )
        shapes = _padded_shapes(spec, padded_shapes)
        vectors = [_shape_vector(s) for s in shapes]
        size = as_int(batch_size)
        padded = []
        for s, v in zip(nest.flatten(spec), vectors):
            dims = execution.get_static_value(v)
            shape = None if dims is None else [None if d < 0 else int(d) for d in dims]
            if shape is not None and s.shape.rank not in (None, len(shape)):
                raise ValueError(
                    f"The padded shape {tensor_shape.TensorShape(shape)} is not "
                    f"compatible with the shape {s.shape} of the corresponding input "
                    "component."
                )
            padded.append(TensorSpec(shape, s.dtype))
        out = batched_spec(nest.pack(spec, padded), size, drop_remainder)
        super().__init__(
            raw("PaddedBatchDatasetV2")(
                input_dataset=source._variant_tensor,
                batch_size=size,
                padded_shapes=vectors,
                padding_values=_values(spec, padding_values),
                drop_remainder=as_bool(drop_remainder),
                output_shapes=structure.flat_shapes(out),
            ),
            out,
            [source],
        )


def _key(f):
    """Wraps a function so that it returns an int64 scalar."""

    def key(*args):
        value = conversion.convert_to_tensor(f(*args))
        if value.dtype != dtypes.int64:
            if not value.dtype.is_integer:
                raise ValueError(
                    "Invalid `key_func`. `key_func` must return a single `tf.int64` "
                    f"scalar tensor but its return type is {value.dtype}."
                )
            value = raw("Cast")(x=value, DstT=dtypes.int64)
        return value

    return key


class _GroupByWindowDataset(Dataset):
    def __init__(self, source, key_func, reduce_func, window_size, window_size_func):
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

        spec = source.element_spec
        number = TensorSpec([], dtypes.int64)
        key = DatasetFunction(_key(key_func), "group_by_window_key", [spec])
        size = DatasetFunction(
            _key(window_size_func), "group_by_window_size", [number], unpack=False
        )
        reduce_ = DatasetFunction(
            reduce_func,
            "group_by_window_reduce",
            [number, DatasetSpec(spec)],
            unpack=False,
        )
        if not isinstance(reduce_.output, DatasetSpec):
            raise TypeError(
                "Invalid `reduce_func`. `reduce_func` must return a single `tf.data."
                f"Dataset` object but its return type is {reduce_.output}."
            )
        out = reduce_.output.element_spec
        super().__init__(
            raw("GroupByWindowDataset")(
                input_dataset=source._variant_tensor,
                key_func_other_arguments=key.captures,
                reduce_func_other_arguments=reduce_.captures,
                window_size_func_other_arguments=size.captures,
                key_func=key.function,
                reduce_func=reduce_.function,
                window_size_func=size.function,
                **flat(out),
            ),
            out,
            [source],
            [key, reduce_, size],
        )


def bucket_by_sequence_length(
    source,
    element_length_func,
    bucket_boundaries,
    bucket_batch_sizes,
    padded_shapes,
    padding_values,
    pad_to_bucket_boundary,
    no_padding,
    drop_remainder,
):
    """Batches of elements of like lengths, padded."""
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
        length = raw("Cast")(x=length, DstT=dtypes.int64)
        below = raw("LessEqual")(x=boundaries, y=length)
        return raw("Sum")(input=raw("Cast")(x=below, DstT=dtypes.int64), axis=0)

    def size_of(number):
        return raw("GatherV2")(params=sizes, indices=number, axis=0)

    def batch(number, window):
        size = size_of(number)
        if no_padding:
            return window.batch(size, drop_remainder=drop_remainder)
        shapes = padded_shapes
        if shapes is None:
            shapes = nest.map_structure(lambda s: s.shape, window.element_spec)
        if pad_to_bucket_boundary:
            last = np.append(boundaries, 0)
            check = raw("Less")(x=number, y=np.int64(len(boundaries)))
            from headrace.ops import check_ops

            check_ops.Assert(
                check,
                ["When pad_to_bucket_boundary=True, elements must have length < max"],
            )
            boundary = raw("GatherV2")(params=last, indices=number, axis=0) - 1
            spec = window.element_spec
            leaves = structure.shape_leaves(spec, shapes)
            shapes = nest.pack(spec, [_to_boundary(s, boundary) for s in leaves])
        return window.padded_batch(
            size, shapes, padding_values, drop_remainder=drop_remainder
        )

    return source.group_by_window(bucket, batch, window_size_func=size_of)


def _to_boundary(shape, boundary):
    """A vector in which sizes left open are the boundary."""
    sizes = []
    for d in shape.as_list():
        sizes.append(boundary if d is None else as_int(d))
    return raw("Pack")(values=sizes) if sizes else as_int(np.zeros([0], np.int64))


def ragged_batch(source, batch_size, drop_remainder, row_splits_dtype):
    """Consecutive elements of any sizes as ragged tensors."""
    from headrace.ragged.ragged_tensor import RaggedTensor
    from headrace.ragged.spec import RaggedTensorSpec

    splits = dtypes.as_dtype(row_splits_dtype)
    specs = nest.flatten(source.element_spec)

    def is_ragged(s):
        return isinstance(s, TensorSpec) and not s.shape.is_fully_defined()

    for s in specs:
        if is_ragged(s) and s.shape.rank is None:
            raise ValueError("ragged_batch needs elements of known rank")

    def encode(x, s):
        if not is_ragged(s):
            return x
        rank = s.shape.rank - 1
        if rank > 0:
            x = RaggedTensor.from_tensor(x, ragged_rank=rank, row_splits_dtype=splits)
        return structure.ragged_to_variant(x, rank, batched=False)

    def to_variants(*args):
        value = args[0] if not isinstance(source.element_spec, tuple) else args
        leaves = [encode(x, s) for x, s in zip(nest.flatten(value), specs)]
        return nest.pack(source.element_spec, leaves)

    def decode(x, s, size):
        if not is_ragged(s):
            return x
        shape = tensor_shape.TensorShape([size]).concatenate(s.shape)
        return structure.from_variant(
            RaggedTensorSpec(shape, s.dtype, s.shape.rank, splits), x
        )

    batches = source.map(to_variants).batch(batch_size, drop_remainder)
    size = nest.flatten(batches.element_spec)[0].shape[0]

    def to_ragged(*args):
        value = args[0] if not isinstance(source.element_spec, tuple) else args
        leaves = [decode(x, s, size) for x, s in zip(nest.flatten(value), specs)]
        return nest.pack(source.element_spec, leaves)

    return batches.map(to_ragged)
