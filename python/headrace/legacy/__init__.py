"""Names and signatures of TensorFlow 1 (tf.compat.v1) for what tf has otherwise."""
