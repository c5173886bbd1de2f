"""tf.compat: texts and bytes, and what once were Python 2's differences."""

import contextlib
import datetime
import numbers
import os

import numpy as np

from headrace.framework.dimension import Dimension
from headrace.framework.settings import logging

integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)
bytes_or_text_types = (bytes, str)


def as_bytes(bytes_or_text, encoding="utf-8"):
    """Bytes of a text; bytes as they are."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text, encoding="utf-8"):
    """The text of bytes; a text as it is."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value, encoding="utf-8"):
    """A str of anything: bytes decoded, objects as str() has them."""
    return as_str(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path):
    """The text of a path's object; all else as it is."""
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path


def dimension_value(dimension):
    """A dimension as an integer or None."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape, index):
    """The dimension at an index; unknown where the rank is."""
    return Dimension(None) if shape.rank is None else Dimension(shape.dims[index])


# Producers of that day and before are understood, as by TensorFlow 2.21.
_HORIZON = datetime.date(2026, 1, 16)
_DELTA = "TF_FORWARD_COMPATIBILITY_DELTA_DAYS"  # moves the horizon of a process


def _horizon():
    days = os.environ.get(_DELTA)
    try:
        return _HORIZON + datetime.timedelta(days=int(days)) if days else _HORIZON
    except (ValueError, OverflowError):
        raise ValueError(f"{_DELTA} must be a number of days, not {days!r}") from None


_horizons = [_horizon()]


def forward_compatible(year, month, day):
    """Whether a feature of that day may be used: consumers older than it need not be
    thought of any more. See forward_compatibility_horizon.
    """
    return _horizons[-1] > datetime.date(year, month, day)


@contextlib.contextmanager
def forward_compatibility_horizon(year, month, day):
    """Inside, forward_compatible() holds for the days before that one: for tests of
    features that are not switched on yet. A day before the horizon so far changes
    nothing but for a warning.
    """
    day_wanted = datetime.date(year, month, day)
    if day_wanted < _HORIZON:
        logging.warning(
            "Trying to set the forward compatibility date to the past date %s. This will "
            "be ignored by TensorFlow.",
            day_wanted,
        )
        day_wanted = _horizons[-1]
    _horizons.append(day_wanted)
    try:
        yield
    finally:
        _horizons.pop()
