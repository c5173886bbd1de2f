"""tf.summary: events that TensorBoard shows."""
