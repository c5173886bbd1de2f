"""tf.io: record files and parsing of Examples."""
