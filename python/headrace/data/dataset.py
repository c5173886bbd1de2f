"""tf.data.Dataset: the base of all datasets, with its transformations."""

import functools

import numpy as np

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.data.dataset_batch import DatasetBatch
from headrace.data.functions import flat
from headrace.data.holder_spec import Holder, VariantHolderSpec
from headrace.data.iterator import NumpyIterator, OwnedIterator
from headrace.data.options import Options
from headrace.elements import structure
from headrace.framework import conversion, dtypes, execution, tensor_shape, type_spec
from headrace.framework.support import markup
from headrace.framework.trackable import Trackable
from headrace.ragged.spec import RaggedTensorSpec

AUTOTUNE = -1
INFINITE = INFINITE_CARDINALITY = -1
UNKNOWN = UNKNOWN_CARDINALITY = -2


def _components(spec, path):
    """(path, TypeSpec) of each component of an element."""
    if isinstance(spec, dict):
        parts = [(f"{path}[{key!r}]", x) for key, x in spec.items()]
    elif hasattr(spec, "_fields"):
        parts = [(f"{path}.{name}", getattr(spec, name)) for name in spec._fields]
    elif isinstance(spec, (list, tuple)):
        parts = [(f"{path}[{i}]", x) for i, x in enumerate(spec)]
    else:
        return [(path or "element", spec)]
    return [found for name, x in parts for found in _components(x, name)]


def _shape_and_dtype(spec):
    dtype = getattr(spec, "dtype", None)
    return getattr(spec, "shape", ""), "" if dtype is None else dtype.name


class Dataset(Holder, Trackable):
    """A sequence of elements, each a structure of tensors."""

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

    _type_spec = property(lambda self: DatasetSpec(self.element_spec))

    def _inputs(self):
        return self._input_datasets

    _shown = None  # instead of its element_spec

    def __repr__(self):
        if self._shown is not None:
            return f"<{self._shown}>"
        return f"<{type(self).__name__} element_spec={self.element_spec}>"

    def _repr_html_(self):
        """What notebooks show: the components of an element, and how many there are."""
        rows = [
            (path, type(spec).__name__, *_shape_and_dtype(spec))
            for path, spec in _components(self.element_spec, "")
        ]
        known = {INFINITE: "infinitely many elements", UNKNOWN: "of unknown length"}
        count = int(self.cardinality()) if _headrace.is_eager() else UNKNOWN
        heads = ("component", "spec", "shape", "dtype")
        note = known.get(count, f"{count} elements")
        return markup.table(type(self).__name__.lstrip("_"), heads, rows, note)

    def __bool__(self):
        return True

    __nonzero__ = __bool__

    def __len__(self):
        execution.only_eagerly(
            TypeError,
            "`tf.data.Dataset` only supports `len` in eager mode. Use "
            "`tf.data.Dataset.cardinality()` instead.",
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
        execution.only_eagerly(
            RuntimeError,
            "`tf.data.Dataset.as_numpy_iterator()` is only supported in eager mode.",
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

    # --- transformations ---

    def _made(self, op, **numbers):
        """What an op makes of this dataset by int64 numbers."""
        numbers = {name: as_int(value) for name, value in numbers.items()}
        return made_of(op, self, **numbers)

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

    def prefetch(self, buffer_size, name=None):
        """The same elements, up to `buffer_size` of them made ahead by a thread.

        tf.data.AUTOTUNE, or None, finds a size.
        """
        size = AUTOTUNE if buffer_size is None else buffer_size
        return self._made("PrefetchDataset", buffer_size=size)

    def ignore_errors(self, log_warning=False, name=None):
        """The elements without those that fail; `log_warning` tells of them."""
        return made_of("IgnoreErrorsDataset", self, log_warning=bool(log_warning))


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


def method(function):
    """Makes a function of another module a method of datasets."""
    return _attach(function, function)


def source(function):
    """Makes a function of another module one that begins datasets: a static method."""
    return _attach(function, staticmethod(function))


def _attach(function, value):
    function.__name__ = function.__name__.removesuffix("_")
    function.__qualname__ = f"{Dataset.__name__}.{function.__name__}"
    setattr(Dataset, function.__name__, value)
    return function


# Programs that may not import us know datasets by the name of their base.
Dataset.__name__ = Dataset.__qualname__ = "DatasetV2"


class _VariantDataset(Dataset):
    """A dataset by its variant tensor."""


@functools.cache
def _class_of(name):
    return type(name, (Dataset,), {"__module__": __name__})


def made(op, variant, spec, inputs=(), functions=(), class_name=None):
    """The dataset of an op's output, of a class of its name: a _ShuffleDataset."""
    if class_name is None:
        class_name = f"_{op.partition('DatasetV')[0].removesuffix('Dataset')}Dataset"
    return _class_of(class_name)(variant, spec, inputs, functions)


def as_int(value):
    return conversion.convert_to_tensor(value, dtypes.int64)


def as_bool(value):
    return conversion.convert_to_tensor(value, dtypes.bool)


def made_of(op, source, spec=None, functions=(), class_name=None, **arguments):
    """What an op makes of a dataset; the element spec stays, or is given."""
    spec = source.element_spec if spec is None else spec
    variant = _headrace.raw_op(op)(
        input_dataset=source._variant_tensor, **arguments, **flat(spec)
    )
    return made(op, variant, spec, [source], functions, class_name)


class DatasetSpec(VariantHolderSpec):
    """What a dataset is like."""

    value_type = Dataset

    def __init__(self, element_spec, dataset_shape=()):
        super().__init__(element_spec)
        self._dataset_shape = tensor_shape.as_shape(dataset_shape)

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

    def _batch(self, batch_size):
        shape = tensor_shape.TensorShape([batch_size]).concatenate(self._dataset_shape)
        return DatasetSpec(self._element_spec, shape)

    def _unbatch(self):
        return DatasetSpec(self._element_spec, self._dataset_shape[1:])
