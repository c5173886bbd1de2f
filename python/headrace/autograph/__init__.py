"""AutoGraph: Python's control flow on tensors becomes that of graphs."""
