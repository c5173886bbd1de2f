"""Ragged tensors: rows of different lengths."""

from headrace import _names

__getattr__ = _names.of_package(__name__)
