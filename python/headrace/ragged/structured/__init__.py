"""tf.experimental.StructuredTensor: ragged arrays of records."""
