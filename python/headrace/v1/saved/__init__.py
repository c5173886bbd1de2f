"""SavedModels of sessions: tf.compat.v1.saved_model."""
