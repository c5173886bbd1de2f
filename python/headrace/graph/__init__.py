"""Graphs, operations and sessions."""
