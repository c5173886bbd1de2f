"""Graphs and operations."""

# Tensors of graphs know their operation, and more, as soon as it is loaded.
from headrace.graph import graph  # noqa: F401
