"""tf.distribute: clusters, and strategies that train on several devices."""

from headrace import _names

__getattr__ = _names.of_package(__name__)
