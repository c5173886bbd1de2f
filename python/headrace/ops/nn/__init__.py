"""tf.nn: activations, convolutions, pools, losses, embeddings."""
