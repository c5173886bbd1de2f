"""tf.compat.v1.profiler: what a graph's operations cost, by name, kind and line."""
