"""Datasets that begin a pipeline."""

import numpy as np

from headrace._load import _headrace, raw
from headrace.context.errors import InvalidArgumentError
from headrace.data.dataset import Dataset, made, source
from headrace.data.functions import flat
from headrace.elements import nest, structure
from headrace.framework import conversion, dtypes
from headrace.framework.settings import random_seed
from headrace.framework.type_spec import TensorSpec


@source
def from_tensors(tensors, name=None):
    """A dataset of one element: a structure of what tensors are made of."""
    element = structure.normalize(tensors)
    spec = structure.spec_of(element)
    parts = structure.to_tensors(spec, element)
    shapes = structure.flat_shapes(spec)
    variant = raw.TensorDataset(parts, output_shapes=shapes)
    return made("TensorDataset", variant, spec)


@source
def from_tensor_slices(tensors, name=None):
    """The rows of tensors: element i has row i of each part of the structure.

    ValueError where a part is a scalar or the numbers of rows differ.
    """
    element = structure.normalize(tensors)
    batched = structure.spec_of(element)
    parts = structure.to_slices(batched, element)
    spec = structure.unbatched(batched)
    _check_rows(parts)
    shapes = structure.flat_shapes(spec)
    variant = raw.TensorSliceDataset(parts, output_shapes=shapes)
    return made("TensorSliceDataset", variant, spec)


def _check_rows(tensors):
    """All have as many rows, where that is known."""
    known = None
    for t in tensors:
        rows = t.shape[0] if t.shape.rank else None
        if known is not None and rows is not None and rows != known:
            raise ValueError(f"Dimensions {known} and {rows} are not compatible")
        known = rows if known is None else known


@source
def range_(*args, **kwargs):
    """int64 numbers from start to stop by step, as Python's range; `output_type`
    casts.
    """
    return _range(*args, **kwargs)


def _range(*args, output_type=dtypes.int64, name=None):
    if not 1 <= len(args) <= 3:
        raise ValueError(
            f"Invalid `args`. The length of `args` should be between 1 and 3 but "
            f"was {len(args)}."
        )
    bounds = [0, *args] if len(args) == 1 else [*args]
    bounds += [1] * (3 - len(bounds))
    bounds = [conversion.convert_to_tensor(n, dtypes.int64) for n in bounds]
    spec = TensorSpec([], dtypes.as_dtype(output_type))
    return made("RangeDataset", raw.RangeDataset(*bounds, **flat(spec)), spec)


@source
def counter(start=0, step=1, dtype=dtypes.int64, name=None):
    """Integers without end."""
    dtype = dtypes.as_dtype(dtype)
    start = conversion.convert_to_tensor(start, dtype)
    step = conversion.convert_to_tensor(step, dtype)
    turns = Dataset.from_tensors(0).repeat(None)
    return turns.scan(start, lambda state, _: (state + step, state))


@source
def zip_(*args, datasets=None, name=None):
    """Elements of a structure of datasets side by side, as long as the shortest."""
    if not args and datasets is None:
        raise TypeError("Must pass at least one dataset to `zip`.")
    if args and datasets is not None:
        raise TypeError("Both `*args` and `datasets` cannot be set.")
    if args:
        datasets = args[0] if len(args) == 1 else args
    inputs = nest.flatten(datasets)
    for d in inputs:
        if not isinstance(d, Dataset):
            raise TypeError(
                "Invalid input to `zip`. Inputs are expected to be (nested) structures "
                "of `tf.data.Dataset` objects"
                + (
                    ". Python `list` is not supported and you should use `tuple` instead."
                    if isinstance(d, list)
                    else f" but encountered object of type {type(d)}."
                )
            )
    spec = nest.map_structure(lambda d: d.element_spec, datasets)
    variant = raw.ZipDataset([d._variant_tensor for d in inputs], **flat(spec))
    return made("ZipDataset", variant, spec, inputs)


def seeds(seed):
    """The pair of seeds of a dataset, as tensors."""
    first, second = random_seed.op_seeds(seed)
    as_int = conversion.convert_to_tensor
    return as_int(first, dtypes.int64), as_int(second, dtypes.int64)


@source
def random(seed=None, rerandomize_each_iteration=None, name=None):
    """Random int64 numbers in [0, 2^32) without end.

    With `seed` the same in each program; new ones in each walk only with
    `rerandomize_each_iteration`.
    """
    again = bool(rerandomize_each_iteration)
    pair = seeds(seed)
    spec = TensorSpec([], dtypes.int64)
    drawn = raw.AnonymousSeedGenerator(*pair, again)
    variant = raw.RandomDatasetV2(
        *pair, drawn[0], rerandomize_each_iteration=again, **flat(spec)
    )
    dataset = made("RandomDatasetV2", variant, spec)
    dataset._seeds = drawn  # lives as long as the dataset
    return dataset


@source
def list_files(file_pattern, shuffle=None, seed=None, name=None):
    """The names of files that match glob patterns: strings.

    They come in random order, sorted with `shuffle=False`. When eager,
    InvalidArgumentError where none is.
    """
    shuffle = True if shuffle is None else shuffle
    pattern = conversion.convert_to_tensor(file_pattern, dtypes.string)
    names = raw.MatchingFiles(pattern)
    if _headrace.is_eager() and names.shape[0] == 0:
        raise InvalidArgumentError._of(
            "Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized "
            f"data: b'No files matched pattern: {_joined(pattern)}'"
        )
    dataset = Dataset.from_tensor_slices(names)
    if shuffle:
        count = raw.Maximum(raw.Size(names, out_type=dtypes.int64), np.int64(1))
        dataset = dataset.shuffle(count, seed=seed)
    return dataset


def _joined(pattern):
    values = pattern.numpy()
    values = [values] if isinstance(values, bytes) else values.tolist()
    return ", ".join(v.decode() for v in values)


def _listed(datasets):
    datasets = list(datasets)
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    return datasets


def _by_turns(selector, datasets, stop_on_empty_dataset):
    """Elements of the datasets that a dataset of numbers names."""
    spec = datasets[0].element_spec
    for i, d in enumerate(datasets[1:], 1):
        try:
            spec = structure.common(spec, d.element_spec)
        except TypeError:
            raise TypeError(
                "Invalid `datasets`. `datasets` must have compatible element specs."
                f"\n Dataset 0 element_spec={datasets[0].element_spec}.\n"
                f"Dataset {i} element_spec={d.element_spec}."
            ) from None
    variant = raw.DirectedInterleaveDataset(
        selector._variant_tensor,
        [d._variant_tensor for d in datasets],
        stop_on_empty_dataset=bool(stop_on_empty_dataset),
        **flat(spec),
    )
    return made("DirectedInterleaveDataset", variant, spec, [selector, *datasets])


@source
def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
    """Elements of the datasets whose numbers (int64) `choice_dataset` has.

    It ends with the choices or, with `stop_on_empty_dataset`, where a dataset has
    no more; else choices of it are passed over. InvalidArgumentError for no
    dataset's number.
    """
    datasets = _listed(datasets)
    if choice_dataset.element_spec != TensorSpec([], dtypes.int64):
        raise TypeError(
            "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar "
            f"`tf.int64` tensors but are {choice_dataset.element_spec}."
        )
    return _by_turns(choice_dataset, datasets, stop_on_empty_dataset)


@source
def sample_from_datasets(
    datasets,
    weights=None,
    seed=None,
    stop_on_empty_dataset=False,
    rerandomize_each_iteration=None,
):
    """The next element of a dataset drawn at random, by `weights` (alike without).

    With `stop_on_empty_dataset` it ends where a drawn dataset has no more; else
    those that are left go on.
    """
    datasets = _listed(datasets)
    if isinstance(weights, Dataset):
        logits = weights.map(lambda *p: raw.Log(p[0] if len(p) == 1 else list(p)))
        numbers = Dataset.random(seed, rerandomize_each_iteration).batch(2)
        choices = Dataset.zip((logits, numbers)).map(_draw)
        return _by_turns(choices, datasets, stop_on_empty_dataset)
    if weights is None:
        weights = [1.0] * len(datasets)
        logits = np.full([1, len(datasets)], 1.0, np.float32)
    else:
        if not isinstance(weights, _headrace.Tensor):
            _check_weights(conversion.convert_to_tensor(weights))
            weights = [float(w) for w in weights]
            if len(weights) != len(datasets):
                raise ValueError(
                    "Invalid `weights`. `weights` should have the same length as "
                    f"`datasets` but got `len(weights)={len(weights)}` vs. "
                    f"`len(datasets)={len(datasets)}`."
                )
            kept = [(w, d) for w, d in zip(weights, datasets) if w > 0]
            if not kept:
                kept = [(1.0, datasets[0].take(0))]  # nothing is ever drawn
            weights, datasets = [w for w, _ in kept], [d for _, d in kept]
        as_floats = conversion.convert_to_tensor(weights, dtype_hint=dtypes.float32)
        _check_weights(as_floats)
        if not as_floats.shape.is_compatible_with([len(datasets)]):
            raise ValueError(
                "Invalid `weights`. The shape of `weights` should be compatible with "
                f"`[len(datasets)]` but is {as_floats.shape}."
            )
        logits = raw.ExpandDims(raw.Log(as_floats), 0)
    if len(datasets) == 1:
        return datasets[0]
    choices = Dataset.random(seed, rerandomize_each_iteration).batch(2)
    choices = choices.map(lambda s: _drawn(logits, s))
    return _by_turns(choices, datasets, stop_on_empty_dataset)


def _check_weights(weights):
    if weights.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(
            "Invalid `weights`. `weights` type must be either `tf.float32` or "
            f"`tf.float64` but is {weights.dtype!s}."
        )


def _draw(logits, seed):
    return _drawn(raw.ExpandDims(logits, 0), seed)


def _drawn(logits, seed):
    drawn = raw.StatelessMultinomial(logits, 1, seed, output_dtype=dtypes.int64)
    return raw.Reshape(drawn, np.zeros([0], np.int32))
