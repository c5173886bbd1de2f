"""tf.estimator: models as functions that make a graph, trained from a folder."""

from headrace import _names

__getattr__ = _names.of_package(__name__)
