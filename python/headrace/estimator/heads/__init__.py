"""tf.estimator's heads: the loss, metrics and predictions of a kind of task."""
