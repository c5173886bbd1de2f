"""tf.experimental.ExtensionType: classes of the user's that are made of tensors."""
