"""tf.train: checkpoints."""
