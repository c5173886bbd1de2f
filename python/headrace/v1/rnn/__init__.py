"""Recurrent networks of tf.compat.v1.nn: cells and the loops that run them."""
