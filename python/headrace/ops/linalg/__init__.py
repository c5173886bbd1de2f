"""tf.linalg."""
