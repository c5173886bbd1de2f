"""What everything else stands on: dtypes, shapes, tensors, variables, errors."""
