"""Branches, loops and tensor arrays, eager and traced."""
