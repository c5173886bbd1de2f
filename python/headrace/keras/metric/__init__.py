"""Metrics, a family a file."""
