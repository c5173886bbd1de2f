"""tf.keras.applications: networks for images, by families."""
