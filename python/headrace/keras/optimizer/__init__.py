"""Optimizers, those before Keras 2.11 included."""
