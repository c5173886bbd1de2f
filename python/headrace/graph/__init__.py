"""Graphs and operations."""

# These say what default graphs and variables in graphs are made of.
from headrace.graph import graph, graph_variables  # noqa: F401
