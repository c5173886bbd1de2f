"""tf.data.experimental: lookup tables of what a dataset holds."""

from headrace.context.errors import UnimplementedError
from headrace.data.dataset import Dataset
from headrace.framework import dtypes, execution
from headrace.lookup import tables


class DatasetInitializer(tables.KeyValueTensorInitializer):
    """Contents from the (key, value) pairs of a finite dataset."""

    def __init__(self, dataset):
        spec = dataset.element_spec
        if not (isinstance(spec, tuple) and len(spec) == 2):
            raise ValueError(
                "The dataset of a table must have pairs of a key and a value as "
                f"elements, not {spec}."
            )
        text = "DatasetInitializer inside a traced function or graph"
        execution.only_eagerly(UnimplementedError._of, text)
        self.dataset = dataset
        keys, values = [], []
        for key, value in dataset.as_numpy_iterator():
            keys.append(key)
            values.append(value)
        super().__init__(keys, values, spec[0].dtype, spec[1].dtype)


def table_from_dataset(
    dataset=None,
    num_oov_buckets=0,
    vocab_size=None,
    default_value=None,
    hasher_spec=None,
    key_dtype=dtypes.string,
    name=None,
):
    """A table of the (key, value) pairs of a dataset, of the first `vocab_size`."""
    if not isinstance(dataset, Dataset):
        raise ValueError(f"`dataset` must be a tf.data.Dataset, got {type(dataset)}.")
    if num_oov_buckets or hasher_spec is not None:
        raise UnimplementedError._of(
            "table_from_dataset: num_oov_buckets and hasher_spec"
        )
    if vocab_size is not None:
        if vocab_size < 1:
            raise ValueError(f"`vocab_size` must be greater than 0, got {vocab_size}.")
        dataset = dataset.take(vocab_size)
    key_spec, value_spec = dataset.element_spec
    if key_spec.dtype != dtypes.as_dtype(key_dtype):
        raise TypeError(
            f"The keys of the dataset are {key_spec.dtype}, `key_dtype` is {key_dtype}."
        )
    if default_value is None:
        default_value = "" if value_spec.dtype == dtypes.string else -1
    return tables.StaticHashTable(DatasetInitializer(dataset), default_value, name)


def index_table_from_dataset(
    dataset=None,
    num_oov_buckets=0,
    vocab_size=None,
    default_value=-1,
    hasher_spec=None,
    key_dtype=dtypes.string,
    name=None,
):
    """A table from the elements of a dataset to their numbers."""
    if isinstance(dataset, Dataset):
        dataset = dataset.enumerate().map(lambda number, key: (key, number))
    how = (num_oov_buckets, vocab_size, default_value, hasher_spec, key_dtype, name)
    return table_from_dataset(dataset, *how)
