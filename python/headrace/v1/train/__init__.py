"""tf.compat.v1.train: sessions with hooks, savers, and optimizers of graphs."""
