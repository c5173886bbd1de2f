"""tf.data.experimental: transformations as functions for Dataset.apply."""

from headrace.data import structure
from headrace.data.dataset import Dataset, _VariantDataset
from headrace.data.functions import raw
from headrace.data.transforms import _UnaryDataset, as_int
from headrace.framework import dtypes


def _applied(method):
    """A function that gives a function of a dataset."""

    def outer(*args, **kwargs):
        return lambda dataset: getattr(dataset, method)(*args, **kwargs)

    outer.__name__ = outer.__qualname__ = method
    outer.__doc__ = f"For Dataset.apply: see Dataset.{method}."
    return outer


bucket_by_sequence_length = _applied("bucket_by_sequence_length")
enumerate_dataset = _applied("enumerate")
group_by_window = _applied("group_by_window")
ignore_errors = _applied("ignore_errors")
rejection_resample = _applied("rejection_resample")
scan = _applied("scan")
snapshot = _applied("snapshot")
take_while = _applied("take_while")
unbatch = _applied("unbatch")
unique = _applied("unique")
dense_to_ragged_batch = _applied("ragged_batch")


def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=False):
    """See Dataset.choose_from_datasets."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def sample_from_datasets(
    datasets, weights=None, seed=None, stop_on_empty_dataset=False
):
    """See Dataset.sample_from_datasets."""
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def cardinality(dataset):
    """See Dataset.cardinality."""
    return dataset.cardinality()


def get_single_element(dataset):
    """See Dataset.get_single_element."""
    return dataset.get_single_element()


def get_structure(dataset_or_iterator):
    """The element spec."""
    return dataset_or_iterator.element_spec


def get_next_as_optional(iterator):
    """See Iterator.get_next_as_optional."""
    return iterator.get_next_as_optional()


def from_variant(variant, structure):
    """A dataset by its variant tensor."""
    return _VariantDataset(variant, structure)


def to_variant(dataset):
    """The variant tensor of a dataset."""
    return dataset._variant_tensor


def from_list(elements, name=None):
    """The elements of a list."""
    if not isinstance(elements, list):
        raise TypeError("`elements` must be a list.")
    if not elements:
        raise ValueError("`elements` must not be empty.")
    return _ListDataset(elements)


class _ListDataset(Dataset):
    """Elements given one by one."""

    def __init__(self, elements):
        values = [structure.normalize(e) for e in elements]
        spec = structure.spec_of(values[0])
        for v in values[1:]:
            spec = structure.common(spec, structure.spec_of(v))
        tensors = [t for v in values for t in structure.to_tensors(spec, v)]
        super().__init__(
            raw("ListDataset")(
                tensors=tensors,
                output_types=structure.flat_types(spec),
                output_shapes=structure.flat_shapes(spec),
            ),
            spec,
        )


class _AssertCardinalityDataset(_UnaryDataset):
    def __init__(self, source, expected):
        super().__init__(
            "AssertCardinalityDataset", source, cardinality=as_int(expected)
        )


def assert_cardinality(expected_cardinality):
    """For Dataset.apply: promises the number of elements, and checks it."""
    return lambda d: _AssertCardinalityDataset(d, expected_cardinality)


def Counter(start=0, step=1, dtype=dtypes.int64):
    """See Dataset.counter."""
    return Dataset.counter(start, step, dtype)


def RandomDataset(seed=None, rerandomize_each_iteration=None, name=None):
    """See Dataset.random."""
    return Dataset.random(seed, rerandomize_each_iteration)


def map_and_batch(
    map_func,
    batch_size,
    num_parallel_batches=None,
    drop_remainder=False,
    num_parallel_calls=None,
):
    """For Dataset.apply: a map and a batch."""
    calls = num_parallel_calls
    if calls is None and num_parallel_batches is not None:
        calls = num_parallel_batches * batch_size
    return lambda d: d.map(map_func, calls).batch(batch_size, drop_remainder)


def shuffle_and_repeat(buffer_size, count=None, seed=None):
    """For Dataset.apply: a shuffle and a repeat."""
    return lambda d: d.shuffle(buffer_size, seed).repeat(count)


def parallel_interleave(
    map_func,
    cycle_length,
    block_length=1,
    sloppy=False,
    buffer_output_elements=None,
    prefetch_input_elements=None,
):
    """For Dataset.apply: an interleave whose datasets are read ahead."""
    return lambda d: d.interleave(
        map_func,
        cycle_length,
        block_length,
        num_parallel_calls=cycle_length,
        deterministic=not sloppy,
    )
