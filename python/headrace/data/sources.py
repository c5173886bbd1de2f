"""Datasets that begin a pipeline."""

import numpy as np

from headrace.data import nest, structure
from headrace.data.dataset import Dataset
from headrace.data.functions import flat, raw
from headrace.framework import conversion, dtypes, random_seed
from headrace.framework.type_spec import TensorSpec


class _TensorDataset(Dataset):
    """One element."""

    def __init__(self, element):
        element = structure.normalize(element)
        spec = structure.spec_of(element)
        super().__init__(
            raw("TensorDataset")(
                components=structure.to_tensors(spec, element),
                output_shapes=structure.flat_shapes(spec),
            ),
            spec,
        )


class _TensorSliceDataset(Dataset):
    """Rows of tensors."""

    def __init__(self, element):
        element = structure.normalize(element)
        batched = structure.spec_of(element)
        tensors = structure.to_slices(batched, element)
        spec = structure.unbatched(batched)
        _check_rows([s for s in nest.flatten(batched) if hasattr(s, "shape")])
        super().__init__(
            raw("TensorSliceDataset")(
                components=tensors, output_shapes=structure.flat_shapes(spec)
            ),
            spec,
        )


def _check_rows(specs):
    """All have as many rows, where that is known."""
    known = None
    for s in specs:
        rows = s.shape[0] if s.shape.rank else None
        if known is not None and rows is not None and rows != known:
            raise ValueError(f"Dimensions {known} and {rows} are not compatible")
        known = rows if known is None else known


class _RangeDataset(Dataset):
    """Integers at even steps."""

    def __init__(self, *args, output_type=dtypes.int64, name=None):
        if len(args) == 1:
            start, stop, step = 0, args[0], 1
        elif len(args) == 2:
            (start, stop), step = args, 1
        elif len(args) == 3:
            start, stop, step = args
        else:
            raise ValueError(
                f"Invalid `args`. The length of `args` should be between 1 and 3 but "
                f"was {len(args)}."
            )
        as_int = conversion.convert_to_tensor
        spec = TensorSpec([], dtypes.as_dtype(output_type))
        super().__init__(
            raw("RangeDataset")(
                start=as_int(start, dtypes.int64),
                stop=as_int(stop, dtypes.int64),
                step=as_int(step, dtypes.int64),
                **flat(spec),
            ),
            spec,
        )


def counter(start, step, dtype):
    """Integers without end."""
    dtype = dtypes.as_dtype(dtype)
    # What is added up wraps around as integers of that type do.
    limits = np.iinfo(np.int64)
    stop = limits.max if step >= 0 else limits.min
    return Dataset.range(start, stop, step, output_type=dtype)


class _ZipDataset(Dataset):
    """Elements side by side."""

    def __init__(self, datasets):
        for d in nest.flatten(datasets):
            if not isinstance(d, Dataset):
                if isinstance(d, list):
                    raise TypeError(
                        "Invalid input to `zip`. Inputs are expected to be (nested) "
                        "structures of `tf.data.Dataset` objects. Python `list` is not "
                        "supported and you should use `tuple` instead."
                    )
                raise TypeError(
                    "Invalid input to `zip`. Inputs are expected to be (nested) "
                    "structures of `tf.data.Dataset` objects. Encountered object of "
                    f"type {type(d)}."
                )
        flat_datasets = nest.flatten(datasets)
        spec = nest.map_structure(lambda d: d.element_spec, datasets)
        super().__init__(
            raw("ZipDataset")(
                input_datasets=[d._variant_tensor for d in flat_datasets], **flat(spec)
            ),
            spec,
            flat_datasets,
        )


def zip_datasets(args, datasets):
    """Of positional datasets or one structure of them."""
    if not args and datasets is None:
        raise TypeError("Must pass at least one dataset to `zip`.")
    if args and datasets is not None:
        raise TypeError("Both `*args` and `datasets` cannot be set.")
    if len(args) == 1:
        datasets = args[0]
    elif len(args) > 1:
        datasets = args
    return _ZipDataset(datasets)


def seeds(seed):
    """The pair of seeds of a dataset, as tensors."""
    first, second = random_seed.op_seeds(seed)
    as_int = conversion.convert_to_tensor
    return as_int(first, dtypes.int64), as_int(second, dtypes.int64)
