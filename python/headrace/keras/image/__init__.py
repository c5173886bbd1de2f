"""tf.keras.preprocessing.image: images changed at random, and batches of them."""
