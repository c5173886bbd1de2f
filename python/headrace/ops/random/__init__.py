"""tf.random, and initializers, which draw."""
