"""tf.distribute.cluster_resolver: where the tasks of a cluster are said."""
