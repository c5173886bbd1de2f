"""tf.feature_column: columns that say how features become inputs of models."""
