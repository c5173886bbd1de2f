"""tf.compat.v1.layers: layers whose variables are named and shared by scopes."""
