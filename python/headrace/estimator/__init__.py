"""tf.estimator: models as functions that make a graph, trained from a folder."""
