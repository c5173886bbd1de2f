"""tf.signal and tf.audio."""
