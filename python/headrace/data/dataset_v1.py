"""tf.compat.v1.data.Dataset: datasets with the methods of TensorFlow 1.

What is made of one by its methods is one, too.
"""

import functools
import types

from headrace.data import (
    applied,
    csv_files,
    example_files,
    graph_iterator,
    readers,
    sql,
)
from headrace.data.dataset import Dataset
from headrace.framework.sparse_tensor import SparseTensor
from headrace.ops.faces import add_calls


class DatasetV1(Dataset):
    """The elements of another dataset."""

    def __init__(self, dataset):
        super().__init__(
            dataset._variant_tensor, dataset.element_spec, inputs=[dataset]
        )

    def make_one_shot_iterator(self):
        """tf.compat.v1.data.make_one_shot_iterator of it."""
        return graph_iterator.make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name=None):
        """tf.compat.v1.data.make_initializable_iterator of it."""
        return graph_iterator.make_initializable_iterator(self, shared_name)

    output_types = property(
        graph_iterator.get_output_types, doc="The dtypes of elements."
    )
    output_shapes = property(
        graph_iterator.get_output_shapes, doc="The static shapes of elements."
    )
    output_classes = property(
        graph_iterator.get_output_classes, doc="The classes of elements."
    )

    def map_with_legacy_function(
        self, map_func, num_parallel_calls=None, deterministic=None
    ):
        """map: functions are of one kind here."""
        return self.map(map_func, num_parallel_calls, deterministic)

    def filter_with_legacy_function(self, predicate):
        """filter: functions are of one kind here."""
        return self.filter(predicate)

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor):
        """The rows of a tf.sparse.SparseTensor as (indices, values, dense_shape).

        TypeError for anything else.
        """
        if not isinstance(sparse_tensor, SparseTensor):
            raise TypeError(
                "Invalid `sparse_tensor`. `sparse_tensor` must be a "
                f"`tf.sparse.SparseTensor`. Got {type(sparse_tensor)}."
            )
        rows = Dataset.from_tensor_slices(sparse_tensor)
        return DatasetV1(rows.map(lambda r: (r.indices, r.values, r.dense_shape)))


def adapted(function):
    """The function; a dataset that it gives has the methods of TensorFlow 1."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        result = function(*args, **kwargs)
        if isinstance(result, Dataset) and not isinstance(result, DatasetV1):
            return DatasetV1(result)
        return result

    return call


def _adapt_methods():
    """The public functions of Dataset, made to give datasets of this kind."""
    for name, value in vars(Dataset).items():
        if name.startswith("_") or name in vars(DatasetV1):
            continue
        if isinstance(value, staticmethod):
            setattr(DatasetV1, name, staticmethod(adapted(value.__func__)))
        elif isinstance(value, types.FunctionType):
            setattr(DatasetV1, name, adapted(value))


_adapt_methods()

TFRecordDataset = adapted(readers.TFRecordDataset)
TextLineDataset = adapted(readers.TextLineDataset)
FixedLengthRecordDataset = adapted(readers.FixedLengthRecordDataset)
Counter = adapted(applied.Counter)
RandomDataset = adapted(applied.RandomDataset)
choose_from_datasets = adapted(applied.choose_from_datasets)
sample_from_datasets = adapted(applied.sample_from_datasets)
CsvDataset = adapted(csv_files.CsvDataset)
make_csv_dataset = adapted(csv_files.make_csv_dataset)
make_batched_features_dataset = adapted(example_files.make_batched_features_dataset)
SqlDataset = adapted(sql.SqlDataset)


# The last ones are older names of specs, with their parameters in another order.
add_calls(
    globals(),
    """
map_and_batch_with_legacy_function data.experimental.map_and_batch(map_func, batch_size,
        num_parallel_batches=None, drop_remainder=False, num_parallel_calls=None)
    map_and_batch: functions are of one kind here.
TensorStructure TensorSpec(dtype, shape)
    tf.TensorSpec(shape, dtype).
SparseTensorStructure SparseTensorSpec(dtype, shape)
    tf.SparseTensorSpec(shape, dtype).
RaggedTensorStructure RaggedTensorSpec(dtype, shape, ragged_rank)
    tf.RaggedTensorSpec(shape, dtype, ragged_rank).
TensorArrayStructure TensorArraySpec(dtype, element_shape, dynamic_size, infer_shape)
    tf.TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape).
""",
)
