"""tf.lookup: tables from keys to values."""

from headrace import _names

__getattr__ = _names.of_package(__name__)
