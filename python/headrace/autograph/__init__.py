"""AutoGraph: Python's control flow on tensors becomes that of graphs."""

from headrace import _names

__getattr__ = _names.of_package(__name__)
