"""tf.data.experimental.SqlDataset: the rows of a query, by Python's own SQLite."""

import os
import re
import urllib.parse

import numpy as np

from headrace.context.errors import InvalidArgumentError, UnimplementedError
from headrace.data.dataset import Dataset
from headrace.framework import conversion, dtypes, execution
from headrace.framework.type_spec import TensorSpec

_TYPES = (
    dtypes.string,
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint16,
    dtypes.bool,
    dtypes.float64,
)


def _text(value, name):
    value = conversion.convert_to_tensor(value, dtypes.string)
    text = f"SqlDataset: {name} of a traced function or graph"
    execution.only_eagerly(UnimplementedError._of, text)
    return value.numpy().decode()


_INTEGER = re.compile(r"\s*[+-]?\d+")
_REAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def _number(value, pattern, kind):
    """A value as SQLite reads it as a number: of a text, what it begins with."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, str):
        found = pattern.match(value)
        return kind(found.group()) if found else kind(0)
    return value


def _as_text(value):
    """A value as SQLite writes it."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        mantissa, e, exponent = f"{value:.15g}".partition("e")
        if "." not in mantissa and mantissa.lstrip("-").isdigit():
            mantissa += ".0"
        value = mantissa + e + exponent
    return str(value).encode()


def _converted(value, dtype):
    """A value of a row as an element; NULL is a zero or an empty text."""
    if dtype == dtypes.string:
        return b"" if value is None else _as_text(value)
    if value is None:
        value = 0
    if dtype == dtypes.float64:
        return np.float64(_number(value, _REAL, float))
    number = _number(value, _INTEGER, int)
    if isinstance(number, float) and number != number:
        number = 0
    # Reals are cut to 64 bits, integers to the type's last bits.
    whole = np.int64(min(max(number, -(1 << 63)), (1 << 63) - 1))
    if dtype == dtypes.bool:
        return np.bool_(whole != 0)
    return whole.astype(dtype.as_numpy_dtype)


class SqlDataset(Dataset):
    """The rows that a query of a database gives, as tuples of scalars."""

    def __init__(self, driver_name, data_source_name, query, output_types):
        driver = _text(driver_name, "driver_name")
        if driver != "sqlite":
            raise InvalidArgumentError._of(
                f"The database type, {driver}, is not supported by SqlDataset. The "
                "set of supported databases is: {'sqlite'}."
            )
        path = _text(data_source_name, "data_source_name")
        query = _text(query, "query")
        types = tuple(dtypes.as_dtype(t) for t in output_types)
        for t in types:
            if t not in _TYPES:
                raise InvalidArgumentError._of(
                    f"SqlDataset: columns of {t} are not supported"
                )
        rows = _Rows(path, query, types)
        spec = tuple(TensorSpec([], t) for t in types)
        inner = Dataset.from_generator(rows, output_signature=spec)
        super().__init__(inner._variant_tensor, spec, [inner])


class _Rows:
    """Runs the query anew for every walk."""

    def __init__(self, path, query, types):
        self._path = os.path.abspath(path)
        self._query = query
        self._types = types

    def __call__(self):
        try:
            import sqlite3
        except ImportError:
            raise UnimplementedError._of(
                "SqlDataset: this Python was built without SQLite"
            ) from None
        uri = f"file:{urllib.parse.quote(self._path)}?mode=ro"
        try:
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            try:
                yield from self._rows(connection.execute(self._query))
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise RuntimeError(f"SqlDataset: {error}") from None

    def _rows(self, cursor):
        columns = len(cursor.description or ())
        if columns != len(self._types):
            raise ValueError(
                f"The number of columns in query ({columns}) must match the number of "
                f"elements in output_types ({len(self._types)})."
            )
        for row in cursor:
            yield tuple(_converted(v, t) for v, t in zip(row, self._types))
