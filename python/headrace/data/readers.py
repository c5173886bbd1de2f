"""Datasets of what lies in files."""

import os

from headrace._load import _headrace, raw
from headrace.data.dataset import AUTOTUNE, Dataset
from headrace.framework import conversion, dtypes
from headrace.framework.support import signatures
from headrace.framework.type_spec import TensorSpec

_TEXT = TensorSpec([], dtypes.string)


def _text(value):
    return conversion.convert_to_tensor(value or "", dtypes.string)


def _number(value):
    return conversion.convert_to_tensor(value or 0, dtypes.int64)


def _as_text(paths):
    """Paths, alone or in lists, as text."""
    if isinstance(paths, (list, tuple)):
        return [_as_text(p) for p in paths]
    return os.fspath(paths) if isinstance(paths, os.PathLike) else paths


class _FileDataset(Dataset):
    """Datasets of files, one or several at a time, as the op `_op` reads them."""

    _shows_names = False

    def __init__(self, filenames, num_parallel_reads, name, **settings):
        self._settings = {
            name: _text(value) if name == "compression_type" else _number(value)
            for name, value in settings.items()
        }
        if isinstance(filenames, Dataset):
            spec = filenames.element_spec
            if getattr(spec, "dtype", None) != dtypes.string:
                kind = getattr(spec, "dtype", spec)
                raise TypeError(
                    "The `filenames` argument must contain `tf.string` elements. Got a "
                    f"dataset of `{kind!r}` elements."
                )
            if spec.shape.rank != 0:
                raise TypeError(
                    "The `filenames` argument must contain `tf.string` elements of "
                    "shape [] (i.e. scalars). Got a dataset of element shape "
                    f"{spec.shape!r}."
                )
            several = filenames
        else:
            filenames = _as_text(filenames)
            empty = isinstance(filenames, (list, tuple)) and not filenames
            names = conversion.convert_to_tensor(
                filenames, dtypes.string if empty else None
            )
            if names.dtype != dtypes.string:
                raise TypeError(
                    "The `filenames` argument must contain `tf.string` elements. Got "
                    f"`{names.dtype!r}` elements."
                )
            flat_names = raw.Reshape(names, [-1])
            several = Dataset.from_tensor_slices(flat_names)
        read = self._read

        def one(name):
            return Dataset(read(name), _TEXT)

        if num_parallel_reads is None:
            inner = several.flat_map(one)
        else:
            cycle = num_parallel_reads
            inner = several.interleave(
                one,
                cycle_length=cycle if cycle != AUTOTUNE else None,
                num_parallel_calls=num_parallel_reads,
            )
        # What it is made of is its own affair: upstream's has no inputs, but for the
        # dataset of names of TFRecord files.
        inputs = [several] if self._shows_names else []
        super().__init__(inner._variant_tensor, _TEXT, inputs, [inner])

    def _read(self, names):
        return _headrace.raw_op(self._op)(filenames=names, **self._settings)


class _StreamDataset(_FileDataset):
    """Files that may be compressed and tell themselves where an element ends."""

    __init__ = signatures.having(
        "self, filenames, compression_type=None, buffer_size=None, "
        "num_parallel_reads=None, name=None"
    )(_FileDataset.__init__)


class TFRecordDataset(_StreamDataset):
    """The records of TFRecord files."""

    _op = "TFRecordDataset"
    _shows_names = True


class TextLineDataset(_StreamDataset):
    """The lines of text files."""

    _op = "TextLineDataset"


class FixedLengthRecordDataset(_FileDataset):
    """The records of files whose records have one size."""

    _op = "FixedLengthRecordDatasetV2"

    __init__ = signatures.having(
        "self, filenames, record_bytes, header_bytes=None, footer_bytes=None, "
        "buffer_size=None, compression_type=None, num_parallel_reads=None, name=None"
    )(_FileDataset.__init__)
