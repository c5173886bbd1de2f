"""Functions of tf that loop and branch, or take ragged tensors, over other functions."""
