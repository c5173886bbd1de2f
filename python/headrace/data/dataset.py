"""tf.data.Dataset: the base of all datasets, with its transformations."""

import numpy as np

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.data.dataset_batch import DatasetBatch
from headrace.data.functions import flat
from headrace.data.holder_spec import VariantHolderSpec
from headrace.data.iterator import NumpyIterator, OwnedIterator
from headrace.data.options import Options
from headrace.elements import structure
from headrace.framework import dtypes, tensor_shape, type_spec
from headrace.framework.properties import read_only
from headrace.framework.trackable import Trackable
from headrace.ragged.spec import RaggedTensorSpec

AUTOTUNE = -1
INFINITE = INFINITE_CARDINALITY = -1
UNKNOWN = UNKNOWN_CARDINALITY = -2


class Dataset(Trackable):
    """A sequence of elements, each a structure of tensors."""

    _is_composite_tensor = True

    def __init__(self, variant_tensor, element_spec=None, inputs=(), functions=()):
        self._variant_tensor = variant_tensor
        self._element_spec = element_spec
        self._input_datasets = list(inputs)
        # Traces live as long as those that use them.
        self._functions = list(functions)

    # --- what it is ---

    element_spec = read_only(
        "_element_spec", "The structure of TypeSpecs of every element."
    )

    @property
    def _type_spec(self):
        return DatasetSpec(self.element_spec)

    def _components(self):
        return [self._variant_tensor]

    def _from_components(self, parts):
        return _VariantDataset(parts[0], self.element_spec)

    def _inputs(self):
        return self._input_datasets

    def __repr__(self):
        return f"<{type(self).__name__} element_spec={self.element_spec}>"

    def __bool__(self):
        return True

    __nonzero__ = __bool__

    def __len__(self):
        if not _headrace.is_eager():
            raise TypeError(
                "`tf.data.Dataset` only supports `len` in eager mode. Use "
                "`tf.data.Dataset.cardinality()` instead."
            )
        n = int(self.cardinality())
        if n == INFINITE:
            raise TypeError("The dataset is infinite.")
        if n == UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return n

    def cardinality(self):
        """The number of elements: an int64 scalar, -1 for infinite, -2 for unknown.

        After filter, flat_map and their like it is unknown, without a run.
        """
        return raw.DatasetCardinality(self._variant_tensor)

    def options(self):
        """The options that apply, of this dataset and of those before it."""
        merged = Options()
        for d in self._inputs():
            merged = merged.merge(d.options())
        return merged

    def with_options(self, options, name=None):
        """The same elements under a tf.data.Options, which also holds for what is made
        of it.
        """
        return transforms._OptionsDataset(self, options)

    # --- going along it ---

    def __iter__(self):
        if stack.plain_graph() is not None:
            raise RuntimeError(
                "`tf.data.Dataset` only supports Python-style iteration in eager mode "
                "or within tf.function."
            )
        return OwnedIterator(self)

    def as_numpy_iterator(self):
        """An iterator of structures of NumPy values; RuntimeError in graphs.

        TypeError for elements that NumPy has nothing for, such as datasets.
        """
        if not _headrace.is_eager():
            raise RuntimeError(
                "`tf.data.Dataset.as_numpy_iterator()` is only supported in eager mode."
            )
        for spec in structure.nest.flatten(self.element_spec):
            _check_numpy(spec)
        return NumpyIterator(self)

    def get_single_element(self, name=None):
        """The element of a dataset of one; InvalidArgumentError for none or several."""
        tensors = raw.DatasetToSingleElement(
            self._variant_tensor, name=name, **flat(self.element_spec)
        )
        return structure.from_tensors(self.element_spec, tensors)

    def reduce(self, initial_state, reduce_func, name=None):
        """The last state of reduce_func(state, element), over all elements in turn.

        The state is a structure of tensors and keeps its dtypes; shapes may change.
        """
        return transforms.reduce(self, initial_state, reduce_func, name)

    # --- sources ---

    @staticmethod
    def from_tensors(tensors, name=None):
        """A dataset of one element: a structure of what tensors are made of."""
        return sources._TensorDataset(tensors)

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        """The rows of tensors: element i has row i of each part of the structure.

        ValueError where a part is a scalar or the numbers of rows differ.
        """
        return sources._TensorSliceDataset(tensors)

    @staticmethod
    def from_generator(
        generator,
        output_types=None,
        output_shapes=None,
        args=None,
        output_signature=None,
        name=None,
    ):
        """What iterators of `generator(*args)` yield, a new one for each walk.

        `output_signature` is the structure of TypeSpecs that they yield; `output_types`
        with `output_shapes` say it for plain tensors. It runs Python code in this
        process, one call at a time, so that graphs with it cannot run elsewhere.
        """
        return generators.from_generator(
            generator, output_types, output_shapes, args, output_signature
        )

    @staticmethod
    def range(*args, **kwargs):
        """int64 numbers from start to stop by step, as Python's range; `output_type`
        casts.
        """
        return sources._RangeDataset(*args, **kwargs)

    @staticmethod
    def counter(start=0, step=1, dtype=dtypes.int64, name=None):
        """Integers without end."""
        return sources.counter(start, step, dtype)

    @staticmethod
    def random(seed=None, rerandomize_each_iteration=None, name=None):
        """Random int64 numbers in [0, 2^32) without end.

        With `seed` the same in each program; new ones in each walk only with
        `rerandomize_each_iteration`.
        """
        return sources._RandomDataset(seed, rerandomize_each_iteration)

    @staticmethod
    def list_files(file_pattern, shuffle=None, seed=None, name=None):
        """The names of files that match glob patterns: strings.

        They come in random order, sorted with `shuffle=False`. When eager,
        InvalidArgumentError where none is.
        """
        return sources.list_files(file_pattern, shuffle, seed)

    @staticmethod
    def zip(*args, datasets=None, name=None):
        """Elements of a structure of datasets side by side, as long as the shortest."""
        return sources.zip_datasets(args, datasets)

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        """Elements of the datasets whose numbers (int64) `choice_dataset` has.

        It ends with the choices or, with `stop_on_empty_dataset`, where a dataset has
        no more; else choices of it are passed over. InvalidArgumentError for no
        dataset's number.
        """
        return sources.choose_from_datasets(
            datasets, choice_dataset, stop_on_empty_dataset
        )

    @staticmethod
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
        return sources.sample_from_datasets(
            datasets, weights, seed, stop_on_empty_dataset, rerandomize_each_iteration
        )

    @staticmethod
    def load(path, element_spec=None, compression=None, reader_func=None, wait=False):
        """The elements that save() wrote to a folder, in the order of the shards.

        `compression` must be that of the files; `wait` waits for them to be written.
        `reader_func` takes a dataset of datasets, one a shard, and gives the elements.
        """
        return saved.load(path, element_spec, compression, reader_func, wait)

    def save(self, path, compression=None, shard_func=None, checkpoint_args=None):
        """Writes all elements to a folder, in their order; runs the dataset once.

        `compression` is None, "GZIP", "SNAPPY" or "AUTO"; shard_func(element) gives an
        int64 shard, one shard without. `checkpoint_args`, those of a CheckpointManager
        with "step_counter", keep how far it came, so that an interrupted save goes on.
        """
        return saved.save(self, path, compression, shard_func, checkpoint_args)

    def snapshot(
        self,
        path,
        compression="AUTO",
        reader_func=None,
        shard_func=None,
        name=None,
    ):
        """The elements, written to a folder by the first walk and read by later ones.

        `shard_func` gives an int64 scalar (TypeError else); without it elements are
        spread over as many shards as there are processors, and the order may change.
        """
        return saved.snapshot(self, path, compression, reader_func, shard_func)

    # --- transformations ---

    def _made(self, op, **numbers):
        """What an op makes of this dataset by int64 numbers."""
        numbers = {name: transforms.as_int(value) for name, value in numbers.items()}
        return transforms.made(op, self, **numbers)

    def apply(self, transformation_func):
        """transformation_func(self), which must be a dataset."""
        dataset = transformation_func(self)
        if not isinstance(dataset, Dataset):
            raise TypeError(
                "`transformation_func` must return a `tf.data.Dataset` object. Got "
                f"{type(dataset)}."
            )
        dataset._input_datasets = [self]
        return dataset

    def batch(
        self,
        batch_size,
        drop_remainder=False,
        num_parallel_calls=None,
        deterministic=None,
        name=None,
    ):
        """Consecutive elements stacked: [batch_size, ...], the last may be smaller.

        `drop_remainder` leaves a smaller one out, which makes the size static.
        `num_parallel_calls` copies batches on that many threads (tf.data.AUTOTUNE: as
        many as fit). InvalidArgumentError for elements of different shapes or a size
        below 1.
        """
        return transforms.batch(
            self, batch_size, drop_remainder, num_parallel_calls, deterministic
        )

    def padded_batch(
        self,
        batch_size,
        padded_shapes=None,
        padding_values=None,
        drop_remainder=False,
        name=None,
    ):
        """Consecutive elements, padded at their ends to one shape and stacked.

        `padded_shapes` has the shape of each part; sizes of None or -1 are the largest
        of the batch. `padding_values` are scalars: 0 and "" by default.
        """
        return padding.PaddedBatchDataset(
            self, batch_size, padded_shapes, padding_values, drop_remainder
        )

    def ragged_batch(
        self,
        batch_size,
        drop_remainder=False,
        row_splits_dtype=dtypes.int64,
        name=None,
    ):
        """Consecutive elements of any sizes as ragged tensors: [batch_size, ...]."""
        return grouping.ragged_batch(self, batch_size, drop_remainder, row_splits_dtype)

    def sparse_batch(self, batch_size, row_shape, name=None):
        """Consecutive elements as sparse tensors of [batch_size, *row_shape].

        Sizes of None are the largest of the batch; TypeError for elements that are
        structures.
        """
        return grouping.SparseBatchDataset(self, batch_size, row_shape)

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        """The rows of batches in batches of another size.

        `batch_size` may be a list of sizes, which come by turns. ValueError where
        elements are scalars.
        """
        return grouping.rebatch(self, batch_size, drop_remainder)

    def unbatch(self, name=None):
        """The rows of elements as elements; ValueError where elements are scalars."""
        return grouping.unbatch(self)

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        """Datasets of `size` consecutive elements, each a structure of datasets.

        A window begins `shift` elements (else `size`) behind the one before, and takes
        every stride-th one. The last ones may be smaller, unless `drop_remainder` is
        True.
        """
        return grouping.window(self, size, shift, stride, drop_remainder)

    def group_by_window(
        self, key_func, reduce_func, window_size=None, window_size_func=None, name=None
    ):
        """Gathers elements of one key: those of the datasets reduce_func(key, window).

        `key_func` gives an integer scalar; `window_size`, or window_size_func(key),
        says how many elements a window has; smaller ones come at the end.
        """
        return grouping._GroupByWindowDataset(
            self, key_func, reduce_func, window_size, window_size_func
        )

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
        padding = (padded_shapes, padding_values, pad_to_bucket_boundary, no_padding)
        return grouping.bucket_by_sequence_length(
            *(self, element_length_func, bucket_boundaries, bucket_batch_sizes),
            *(*padding, drop_remainder),
        )

    def map(
        self,
        map_func,
        num_parallel_calls=None,
        deterministic=None,
        synchronous=None,
        use_unbounded_threadpool=False,
        name=None,
    ):
        """map_func(*element) of every element; its result is the new element.

        It is traced once: Python effects are not repeated. `num_parallel_calls` runs
        that many at once (tf.data.AUTOTUNE: as many as fit), in order unless
        `deterministic` is False; without it one after another. `synchronous` with it is
        a ValueError.
        """
        return transforms.map_(
            self, map_func, num_parallel_calls, deterministic, synchronous
        )

    def flat_map(self, map_func, name=None):
        """The elements of the datasets map_func(*element), one behind another.

        TypeError where it returns no dataset.
        """
        return transforms.flat_map(self, map_func)

    def interleave(
        self,
        map_func,
        cycle_length=None,
        block_length=None,
        num_parallel_calls=None,
        deterministic=None,
        name=None,
    ):
        """Elements of the datasets that map_func(*element) returns, by turns.

        `cycle_length` datasets are open at a time, and each gives `block_length`
        elements (1) in its turn. `num_parallel_calls` reads that many at once, in order
        unless `deterministic` is False. TypeError where map_func returns no dataset.
        """
        how = (cycle_length, block_length, num_parallel_calls, deterministic)
        return transforms.interleave(self, map_func, *how)

    def filter(self, predicate, name=None):
        """The elements for which predicate(*element), a bool scalar (ValueError else),
        holds.
        """
        return transforms.filter_(self, predicate)

    def take_while(self, predicate, name=None):
        """The elements before the first for which predicate(*element), a bool scalar,
        fails.
        """
        return transforms.take_while(self, predicate)

    def scan(self, initial_state, scan_func, name=None):
        """The outputs of scan_func(state, element) -> (new state, output).

        The state keeps its structure and dtypes (TypeError else).
        """
        return transforms.scan(self, initial_state, scan_func)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        """Elements drawn at random from a buffer of the next `buffer_size` ones.

        Evenly only where the buffer has room for all. With `reshuffle_each_iteration`
        each walk has another order; `seed` and tf.random.set_seed fix them.
        InvalidArgumentError for a size of 0.
        """
        return transforms.shuffle(self, buffer_size, seed, reshuffle_each_iteration)

    def repeat(self, count=None, name=None):
        """The elements `count` times over; without end for None or -1."""
        return self._made("RepeatDataset", count=-1 if count is None else count)

    def take(self, count, name=None):
        """The first `count` elements; all of them for -1."""
        return self._made("TakeDataset", count=count)

    def skip(self, count, name=None):
        """All but the first `count` elements; none for -1."""
        return self._made("SkipDataset", count=count)

    def shard(self, num_shards, index, name=None):
        """Elements index, index + num_shards, and so on.

        InvalidArgumentError for an index that is not below num_shards. To be used
        before a shuffle, so that the shards of all workers together are the whole.
        """
        return self._made("ShardDataset", num_shards=num_shards, index=index)

    def enumerate(self, start=0, name=None):
        """(number, element) of every element: int64 numbers from `start` on."""
        numbers = Dataset.range(start, np.iinfo(np.int64).max)
        return Dataset.zip((numbers, self))

    def concatenate(self, dataset, name=None):
        """The elements of this dataset, then those of another of its structure.

        TypeError where structures or dtypes differ; shapes become what both have.
        """
        return transforms._ConcatenateDataset(self, dataset)

    def prefetch(self, buffer_size, name=None):
        """The same elements, up to `buffer_size` of them made ahead by a thread.

        tf.data.AUTOTUNE, or None, finds a size.
        """
        size = AUTOTUNE if buffer_size is None else buffer_size
        return self._made("PrefetchDataset", buffer_size=size)

    def cache(self, filename="", name=None):
        """The elements, kept once they have been walked.

        In memory, or in files whose names begin with `filename`. Only a walk to the end
        completes it; later walks do not ask the input again.
        """
        return transforms.CacheDataset(self, filename)

    def unique(self, name=None):
        """Each element once, where it came first; all of them are kept in memory.

        TypeError unless elements are of int32, int64 or string.
        """
        return transforms.unique(self)

    def ignore_errors(self, log_warning=False, name=None):
        """The elements without those that fail; `log_warning` tells of them."""
        return transforms.made(
            "IgnoreErrorsDataset", self, log_warning=bool(log_warning)
        )

    def rejection_resample(
        self, class_func, target_dist, initial_dist=None, seed=None, name=None
    ):
        """(class, element) pairs, drawn so that classes come as `target_dist` says.

        class_func(*element) is an int32 or int64 scalar; the distributions are vectors
        of a number each class. `initial_dist` is counted along the way where it is not
        given.
        """
        return resampling.rejection_resample(
            self, class_func, target_dist, initial_dist, seed
        )


def _check_numpy(spec):
    known = (
        type_spec.TensorSpec,
        type_spec.NoneTensorSpec,
        structure.SparseTensorSpec,
        RaggedTensorSpec,
    )
    if not isinstance(spec, known):
        raise TypeError(
            "`tf.data.Dataset.as_numpy_iterator()` is not supported for datasets that "
            f"produce values of type {spec.value_type}."
        )


# Programs that may not import us know datasets by the name of their base.
Dataset.__name__ = Dataset.__qualname__ = "DatasetV2"


class _VariantDataset(Dataset):
    """A dataset by its variant tensor."""


class DatasetSpec(VariantHolderSpec):
    """What a dataset is like."""

    def __init__(self, element_spec, dataset_shape=()):
        super().__init__(element_spec)
        self._dataset_shape = tensor_shape.as_shape(dataset_shape)

    @property
    def value_type(self):
        return Dataset

    @property
    def shape(self):
        """The shape of the tensor that stands for the dataset: a scalar unless
        `dataset_shape` says else.
        """
        return self._dataset_shape

    def _serialize(self):
        return (self._element_spec, self._dataset_shape)

    def _wrap(self, tensor):
        if self._dataset_shape.rank != 0:
            return DatasetBatch(tensor, self)
        return _VariantDataset(tensor, self._element_spec)

    def _batched(self, size):
        shape = tensor_shape.TensorShape([size]).concatenate(self._dataset_shape)
        return DatasetSpec(self._element_spec, shape)

    def _unbatched(self):
        return DatasetSpec(self._element_spec, self._dataset_shape[1:])


# Last, for they have subclasses.
from headrace.data import generator as generators  # noqa: E402
from headrace.data import (  # noqa: E402
    grouping,
    padding,
    resampling,
    saved,
    sources,
    transforms,
)
