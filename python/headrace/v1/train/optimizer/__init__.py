"""The optimizers of tf.compat.v1.train."""
