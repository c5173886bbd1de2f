"""Datasets of files of separated fields: CsvDataset and make_csv_dataset."""

import collections
import csv
import gzip
import itertools
import zlib

from headrace._load import _headrace, raw
from headrace.data import readers
from headrace.data.dataset import AUTOTUNE, Dataset
from headrace.data.functions import flat
from headrace.framework import conversion, dtypes
from headrace.framework.support import signatures
from headrace.framework.type_spec import TensorSpec
from headrace.io import gfile

_TYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)
_BUFFER = 4 << 20  # bytes
_INT32 = range(-(1 << 31), 1 << 31)
_INT64 = range(-(1 << 63), 1 << 63)
_FLOAT32_MAX = 3.4028234663852886e38


def _default(value):
    """A field's default as a tensor: an empty one for a type, which is required."""
    if isinstance(value, _headrace.Tensor):
        return value
    if isinstance(value, dtypes.DType) or value in ("int32", "int64", "string"):
        return conversion.convert_to_tensor([], dtypes.as_dtype(value))
    return conversion.convert_to_tensor(value)


def _columns(value):
    return conversion.convert_to_tensor(value or [], dtypes.int64)


class CsvDataset(Dataset):
    """The records of files as tuples of scalars, a column a default.

    A default that is a type, or an empty tensor, says that the field is required.
    """

    @signatures.having(
        "self, filenames, record_defaults, compression_type=None, buffer_size=None, "
        "header=False, field_delim=',', use_quote_delim=True, na_value='', "
        "select_cols=None, exclude_cols=None"
    )
    def __init__(self, filenames, record_defaults, buffer_size, **given):
        defaults = [_default(value) for value in record_defaults]
        spec = tuple(TensorSpec([], d.dtype) for d in defaults)
        given["compression_type"] = readers._text(given["compression_type"])
        size = _BUFFER if buffer_size is None else buffer_size
        for name in ("header", "use_quote_delim"):
            given[name] = bool(given[name])
        for name in ("select_cols", "exclude_cols"):
            given[name] = _columns(given[name])
        variant = raw.CSVDatasetV2(
            filenames=conversion.convert_to_tensor(filenames, dtypes.string),
            buffer_size=readers._number(size),
            record_defaults=defaults,
            output_shapes=flat(spec)["output_shapes"],
            **given,
        )
        super().__init__(variant, spec)


def matching_files(file_pattern):
    """The names, sorted, of files that match one pattern or several."""
    patterns = (
        file_pattern if isinstance(file_pattern, (list, tuple)) else [file_pattern]
    )
    if not patterns:
        raise ValueError("Argument `file_pattern` should not be empty.")
    names = sorted(itertools.chain.from_iterable(gfile.glob(p) for p in patterns))
    if not names:
        raise ValueError(f"No files match `file_pattern` {file_pattern}.")
    return names


def interleaved(files, read, shuffle, seed, threads, sloppy):
    """What read(name) gives of files, several at a time."""
    dataset = Dataset.from_tensor_slices(files)
    if shuffle:
        dataset = dataset.shuffle(len(files), seed)
    threads = 1 if threads is None else threads
    return dataset.interleave(
        read, cycle_length=threads, num_parallel_calls=threads, deterministic=not sloppy
    )


def shuffled_and_repeated(dataset, num_epochs, shuffle, buffer_size, seed):
    """The elements as training wants them; epochs of None are without end."""
    if shuffle:
        dataset = dataset.shuffle(buffer_size, seed)
    return dataset if num_epochs == 1 else dataset.repeat(num_epochs)


class _Reader:
    """Reads records here, to learn what columns there are."""

    def __init__(self, field_delim, use_quote_delim, compression_type, encoding):
        if compression_type not in (None, "", "GZIP", "ZLIB"):
            raise ValueError(f"unknown compression {compression_type!r}")
        self._compression = compression_type
        self._encoding = encoding
        quoting = csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE
        self._dialect = {"delimiter": field_delim, "quoting": quoting}

    def rows(self, name):
        if self._compression == "GZIP":
            with gzip.open(name, "rt", encoding=self._encoding, newline="") as f:
                yield from csv.reader(f, **self._dialect)
        elif self._compression == "ZLIB":
            with gfile.GFile(name, "rb") as f:
                text = zlib.decompress(f.read()).decode(self._encoding)
            yield from csv.reader(text.splitlines(True), **self._dialect)
        else:
            with open(name, encoding=self._encoding, newline="") as f:
                yield from csv.reader(f, **self._dialect)

    def header(self, names):
        """The column names of all files, which must have the same."""
        first = next(self.rows(names[0]), [])
        for name in names[1:]:
            if next(self.rows(name), []) != first:
                raise ValueError(
                    "All input CSV files should have the same column names in the "
                    f"header row. File {name} has different column names."
                )
        return first


def _type_of(text, known):
    """The narrowest type that holds `text` and what is of type `known`."""
    kinds = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string]
    kind = dtypes.string
    try:
        number = int(text)
        kind = dtypes.int32 if number in _INT32 else dtypes.int64
        if number not in _INT64:
            kind = dtypes.float32
    except ValueError:
        try:
            wide = abs(float(text))
            narrow = wide <= _FLOAT32_MAX or wide != wide or wide == float("inf")
            kind = dtypes.float32 if narrow else dtypes.float64
        except ValueError:
            pass
    return kind if known is None else max(kind, known, key=kinds.index)


def _inferred_defaults(reader, names, header, width, columns, missing, most):
    """Defaults of the types that the first rows have: a zero or an empty text."""
    kinds = [None] * len(columns)
    rows = (
        row
        for name in names
        for row in itertools.islice(reader.rows(name), header, None)
    )
    for row in itertools.islice(rows, most):
        if len(row) != width:
            raise ValueError(
                "Problem inferring types: CSV row has different number of fields than "
                f"expected: {len(row)}, not {width}."
            )
        for i, column in enumerate(columns):
            if row[column] not in ("", missing):
                kinds[i] = _type_of(row[column], kinds[i])
    kinds = [kind or dtypes.string for kind in kinds]
    return [
        conversion.convert_to_tensor("" if k == dtypes.string else 0, k) for k in kinds
    ]


def _selected(columns, names):
    """The numbers, rising, of columns that are given by number or name."""
    numbers = {name: i for i, name in enumerate(names)}
    chosen = []
    for column in columns:
        if isinstance(column, int):
            if not 0 <= column < len(names):
                raise ValueError(
                    f"Column index {column} specified in `select_columns` should be > 0 "
                    f" and <= {len(names)}, which is the number of columns."
                )
            chosen.append(column)
        elif column in numbers:
            chosen.append(numbers[column])
        else:
            raise ValueError(
                f"Column {column} specified in `select_columns` must be of one of the "
                f"columns: {numbers.keys()}."
            )
    if len(set(chosen)) != len(chosen):
        twice = {c for c in chosen if chosen.count(c) > 1}
        raise ValueError(
            f"The `select_columns` argument contains duplicate columns: {twice}."
        )
    return sorted(chosen)


def _check_names(names):
    twice = {n for n in names if list(names).count(n) > 1}
    if twice:
        raise ValueError(
            "Either `column_names` argument or CSV header row contains duplicate "
            f"column names: {twice}."
        )


def _check_label(label, names):
    if label is not None and label not in names:
        raise ValueError(
            f"`label_name` provided must be one of the columns: {names}. Received: "
            f"{label}."
        )


def make_csv_dataset(
    file_pattern,
    batch_size,
    column_names=None,
    column_defaults=None,
    label_name=None,
    select_columns=None,
    field_delim=",",
    use_quote_delim=True,
    na_value="",
    header=True,
    num_epochs=None,
    shuffle=True,
    shuffle_buffer_size=10000,
    shuffle_seed=None,
    prefetch_buffer_size=None,
    num_parallel_reads=None,
    sloppy=False,
    num_rows_for_inference=100,
    compression_type=None,
    ignore_errors=False,
    encoding="utf-8",
):
    """Batches {column: values}, with a label's values beside them where one is named.

    Names of columns come from the files' first lines, types from their first rows,
    where they are not given.
    """
    if column_names is None and not header:
        raise ValueError(
            "Expected `column_names` or `header` arguments. Neither is provided."
        )
    files = matching_files(file_pattern)
    reader = _Reader(field_delim, use_quote_delim, compression_type, encoding)
    if column_names is None:
        column_names = reader.header(files)
    _check_names(column_names)
    columns = list(range(len(column_names)))
    if select_columns is not None:
        columns = _selected(select_columns, column_names)
    if column_defaults is None:
        column_defaults = _inferred_defaults(
            reader,
            files,
            bool(header),
            len(column_names),
            columns,
            na_value,
            num_rows_for_inference,
        )
    if select_columns is not None and len(column_defaults) != len(columns):
        raise ValueError(
            "If specified, `column_defaults` and `select_columns` must have the same "
            f"length: {len(column_defaults)} and {len(columns)}."
        )
    names = [column_names[i] for i in columns]
    _check_label(label_name, names)

    def one_file(name):
        dataset = CsvDataset(
            name,
            column_defaults,
            compression_type,
            header=header,
            field_delim=field_delim,
            use_quote_delim=use_quote_delim,
            na_value=na_value,
            select_cols=None if select_columns is None else columns,
        )
        return dataset.ignore_errors() if ignore_errors else dataset

    def named(*values):
        features = collections.OrderedDict(zip(names, values))
        if label_name is None:
            return features
        label = features.pop(label_name)
        return features, label

    how = (shuffle, shuffle_seed, num_parallel_reads, sloppy)
    dataset = interleaved(files, one_file, *how)
    dataset = shuffled_and_repeated(
        dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed
    )
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None).map(named)
    return dataset.prefetch(
        AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size
    )
