"""tf.experimental.numpy: NumPy's functions on tensors, and tensors that behave as arrays."""
