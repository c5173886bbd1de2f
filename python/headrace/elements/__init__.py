"""Elements of datasets and loops: their structures, and the tensors they are made of."""
