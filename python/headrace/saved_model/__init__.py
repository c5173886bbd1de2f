"""tf.saved_model: models on disk, with what they compute."""

from headrace import _names

__getattr__ = _names.of_package(__name__)
