"""tf.distribute: clusters, and strategies that train on several devices."""
