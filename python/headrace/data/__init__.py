"""tf.data: pipelines of elements."""
