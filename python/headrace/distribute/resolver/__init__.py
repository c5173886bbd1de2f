"""Clusters, and where their tasks are said."""
