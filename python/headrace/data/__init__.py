"""tf.data: pipelines of elements."""

from headrace import _names

__getattr__ = _names.of_package(__name__)
