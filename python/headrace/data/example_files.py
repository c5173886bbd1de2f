"""tf.data.experimental: records of Examples as batches of features, and records
written from a dataset."""

from headrace.data.csv_files import interleaved, matching_files, shuffled_and_repeated
from headrace.data.dataset import AUTOTUNE, Dataset
from headrace.data.readers import TFRecordDataset
from headrace.framework import dtypes
from headrace.framework.type_spec import TensorSpec
from headrace.io import parsing, tf_record


def _is_strings(spec, rank):
    if not isinstance(spec, TensorSpec) or spec.dtype != dtypes.string:
        return False
    return spec.shape.rank in (None, rank)


def parse_example_dataset(features, num_parallel_calls=1, deterministic=None):
    """For Dataset.apply: vectors of serialised Examples as dicts of features."""
    if features is None:
        raise ValueError("Argument `features` is required, but not specified.")

    def apply(dataset):
        spec = dataset.element_spec
        if not _is_strings(spec, 1):
            raise TypeError(
                "Input dataset should be a dataset of vectors of strings. Instead it "
                f"is `{spec}`."
            )
        return dataset.map(
            lambda e: parsing.parse_example(e, features),
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
        )

    return apply


def make_batched_features_dataset(
    file_pattern,
    batch_size,
    features,
    reader=None,
    label_key=None,
    reader_args=None,
    num_epochs=None,
    shuffle=True,
    shuffle_buffer_size=10000,
    shuffle_seed=None,
    prefetch_buffer_size=None,
    reader_num_threads=None,
    parser_num_threads=None,
    sloppy_ordering=False,
    drop_final_batch=False,
):
    """Batches of the features of the Examples in files; with a `label_key`, pairs of
    the other features and that one."""
    if label_key is not None and label_key not in features:
        raise ValueError(
            f"The `label_key` provided ({label_key}) must be one of the `features` "
            f"keys: {features.keys()}."
        )
    reader = TFRecordDataset if reader is None else reader
    names = matching_files(file_pattern)
    how = (shuffle, shuffle_seed, reader_num_threads, sloppy_ordering)
    dataset = interleaved(names, lambda n: reader(n, *(reader_args or [])), *how)
    if isinstance(dataset.element_spec, tuple):  # (key, value) of some readers
        dataset = dataset.map(lambda _, value: value)
    dataset = shuffled_and_repeated(
        dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed
    )
    dataset = dataset.batch(
        batch_size, drop_remainder=drop_final_batch or num_epochs is None
    )
    parse = parse_example_dataset(
        features, AUTOTUNE if parser_num_threads is None else parser_num_threads
    )
    dataset = dataset.apply(parse)
    if label_key is not None:
        dataset = dataset.map(
            lambda found: (
                {k: v for k, v in found.items() if k != label_key},
                found[label_key],
            )
        )
    return dataset.prefetch(
        AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size
    )


class TFRecordWriter:
    """Writes the elements of a dataset of strings into a file of records."""

    def __init__(self, filename, compression_type=None):
        self._filename = filename
        self._compression = compression_type

    def write(self, dataset):
        """Writes every element as one record, replacing the file. Runs the dataset
        once.

        TypeError unless the elements are scalar strings; a graph cannot do this.
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(
                "Invalid `dataset.` Expected a `tf.data.Dataset` object but got "
                f"{type(dataset)}."
            )
        spec = dataset.element_spec
        if not _is_strings(spec, 0):
            raise TypeError(
                "Invalid `dataset`. Expected a`dataset` that produces scalar "
                f"`tf.string` elements, but got a dataset of {spec}."
            )
        with tf_record.TFRecordWriter(self._filename, self._compression) as writer:
            for record in dataset.as_numpy_iterator():
                writer.write(record)
