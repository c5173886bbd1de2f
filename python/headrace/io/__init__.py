"""tf.io: record files and parsing of Examples."""

from headrace import _names

__getattr__ = _names.of_package(__name__)
