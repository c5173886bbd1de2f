"""AutoGraph: Python's control flow as operations of a graph."""
