"""Layers that prepare data: words, categories, numbers, images."""
