"""Ragged tensors: rows of different lengths."""

from headrace import _names

__getattr__ = _names.of_package(__name__)

# First of all, for most modules of the package are about its class, and it about them.
from headrace.ragged import ragged_tensor  # noqa: E402, F401
