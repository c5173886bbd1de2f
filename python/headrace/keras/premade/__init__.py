"""Whole models that are there to be used: linear, wide and deep, sharpness-aware."""
