"""What tf.compat.v1.keras has otherwise than tf.keras."""
