"""Graphs and operations."""
