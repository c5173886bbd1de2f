"""Convolutions and what else works on windows: pools, padding, enlarging."""
