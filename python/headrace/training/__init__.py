"""tf.compat.v1.train: sessions with hooks, and optimizers of graphs."""
