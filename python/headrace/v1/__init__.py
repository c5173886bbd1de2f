"""TensorFlow 1 as tf.compat.v1 has it: sessions, variable scopes, collections, and the
functions whose names or parameters differ from those of tf."""

from headrace.graph import graph  # noqa: F401  (default graphs are made of its class)
