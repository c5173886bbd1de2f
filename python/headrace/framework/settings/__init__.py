"""What is set for the whole program: tf.config, seeds, messages, versions."""
