"""tf.data.experimental: transformations as functions for Dataset.apply."""

from headrace._load import raw
from headrace.context.errors import UnimplementedError
from headrace.data.dataset import AUTOTUNE, Dataset, _VariantDataset, made
from headrace.data.functions import flat
from headrace.elements import nest, structure
from headrace.framework import conversion, dtypes
from headrace.framework.support import signatures
from headrace.ops.faces import add_calls

SHARD_HINT = -1  # Dataset.shard: for who shards by himself
_MOST = (1 << 63) - 1


def _applied(method, text):
    """A function of the parameters in a text that gives a function of a dataset."""

    def outer(**kwargs):
        return lambda dataset: getattr(dataset, method)(**kwargs)

    doc = f"For Dataset.apply: see Dataset.{method}."
    like = signatures.named(method, doc, __name__)
    parameters = signatures.from_text(text, int64=dtypes.int64)
    return signatures.function_of(like, parameters, outer)


bucket_by_sequence_length = _applied(
    "bucket_by_sequence_length",
    "element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None, "
    "padding_values=None, pad_to_bucket_boundary=False, no_padding=False, "
    "drop_remainder=False",
)
enumerate_dataset = _applied("enumerate", "start=0")
group_by_window = _applied(
    "group_by_window", "key_func, reduce_func, window_size=None, window_size_func=None"
)
ignore_errors = _applied("ignore_errors", "log_warning=False")
rejection_resample = _applied(
    "rejection_resample", "class_func, target_dist, initial_dist=None, seed=None"
)
scan = _applied("scan", "initial_state, scan_func")
snapshot = _applied(
    "snapshot", "path, compression='AUTO', reader_func=None, shard_func=None"
)
take_while = _applied("take_while", "predicate")
unbatch = _applied("unbatch", "")
unique = _applied("unique", "")
dense_to_ragged_batch = _applied(
    "ragged_batch", "batch_size, drop_remainder=False, row_splits_dtype=int64"
)
dense_to_sparse_batch = _applied("sparse_batch", "batch_size, row_shape")


add_calls(
    globals(),
    """
choose_from_datasets data.Dataset.choose_from_datasets(datasets, choice_dataset,
        stop_on_empty_dataset=False)
    See Dataset.choose_from_datasets.
sample_from_datasets data.Dataset.sample_from_datasets(datasets, weights=None,
        seed=None, stop_on_empty_dataset=False)
    See Dataset.sample_from_datasets.
Counter data.Dataset.counter(start=0, step=1, dtype=int64)
    See Dataset.counter.
RandomDataset data.Dataset.random(seed=None, rerandomize_each_iteration=None, name=None)
    See Dataset.random.
cardinality data.Dataset.cardinality(dataset->self)
    See Dataset.cardinality.
get_single_element data.Dataset.get_single_element(dataset->self)
    See Dataset.get_single_element.
get_next_as_optional data.Iterator.get_next_as_optional(iterator->self)
    See Iterator.get_next_as_optional.
save data.Dataset.save(dataset->self, path, compression=None, shard_func=None,
        checkpoint_args=None)
    See Dataset.save.
load data.Dataset.load(path, element_spec=None, compression=None, reader_func=None)
    See Dataset.load.
""",
)


def get_structure(dataset_or_iterator):
    """The element_spec of a dataset or iterator: TensorSpecs in the elements' structure."""
    return dataset_or_iterator.element_spec


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
    values = [structure.normalize(e) for e in elements]
    spec = structure.spec_of(values[0])
    for v in values[1:]:
        spec = structure.common(spec, structure.spec_of(v))
    tensors = [t for v in values for t in structure.to_tensors(spec, v)]
    return made("ListDataset", raw.ListDataset(tensors, **flat(spec)), spec)


def assert_cardinality(expected_cardinality):
    """For Dataset.apply: promises the number of elements, and checks it."""
    return lambda d: d._made(
        "AssertCardinalityDataset", cardinality=expected_cardinality
    )


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


def at(dataset, index):
    """The element at a place, an int64 scalar; the dataset is walked along as far.

    OutOfRangeError outside of the dataset, FailedPreconditionError where the number of
    its elements is infinite, UnimplementedError where it is not known.
    """
    spec = dataset.element_spec
    tensors = raw.GetElementAtIndex(dataset._variant_tensor, index, **flat(spec))
    return structure.from_tensors(spec, tensors)


class Reducer:
    """How group_by_reducer makes one value of the elements of a key."""

    def __init__(self, init_func, reduce_func, finalize_func):
        self.init_func = init_func
        self.reduce_func = reduce_func
        self.finalize_func = finalize_func


def group_by_reducer(key_func, reducer):
    """For Dataset.apply: an element for each key, made by a Reducer.

    The elements of all keys are kept until the last has come.
    """

    def reduce(key, window):
        def reduce_func(state, *element):
            element = element[0] if len(element) == 1 else element
            return reducer.reduce_func(state, element)

        state = window.reduce(reducer.init_func(key), reduce_func)
        parts = state if isinstance(state, tuple) else (state,)
        return Dataset.from_tensors(reducer.finalize_func(*parts))

    return lambda d: d.group_by_window(key_func, reduce, window_size=_MOST)


def pad_to_cardinality(cardinality, mask_key="valid"):
    """For Dataset.apply: elements of zeros behind the others, until there are so many;
    `mask_key` says which is which."""

    def apply(dataset):
        spec = dataset.element_spec
        if not isinstance(spec, dict):
            raise ValueError(
                "`pad_to_cardinality` requires its input dataset to be a dictionary."
            )
        count = int(dataset.cardinality())
        if count < 0:
            raise ValueError(
                "The dataset passed into `pad_to_cardinality` must have a known "
                f"cardinalty, but has cardinality {count}"
            )
        if count > cardinality:
            raise ValueError(
                "The dataset passed into `pad_to_cardinality` must have a cardinalty "
                f"less than the target cardinality ({cardinality}), but has "
                f"cardinality {count}"
            )
        given = dataset.map(lambda x: {**x, mask_key: _constant(True)})
        padding = dataset.take(1).map(
            lambda x: {
                **nest.map_structure(lambda t: raw.ZerosLike(t), x),
                mask_key: _constant(False),
            }
        )
        return given.concatenate(padding.repeat(cardinality - count))

    return apply


def _constant(value):
    return conversion.convert_to_tensor(value)


def _check_device(device):
    kind = str(device).rpartition("device:")[2].strip("/").split(":")[0].upper()
    if kind not in ("", "CPU"):
        raise UnimplementedError._of(f"datasets on the device {device}")


def prefetch_to_device(device, buffer_size=None):
    """For Dataset.apply: elements made ahead of time, in a device's memory."""
    _check_device(device)
    size = AUTOTUNE if buffer_size is None else buffer_size
    return lambda d: d.prefetch(size)


def copy_to_device(target_device, source_device="/cpu:0"):
    """For Dataset.apply: the elements in another device's memory."""
    _check_device(target_device)
    _check_device(source_device)
    return lambda d: d.map(lambda *parts: parts[0] if len(parts) == 1 else parts)
