"""tf.function: tracing, signatures, concrete functions."""
