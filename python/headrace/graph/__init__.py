"""Graphs and operations."""

from headrace.graph import graph  # noqa: F401  (default graphs are made of its class)
