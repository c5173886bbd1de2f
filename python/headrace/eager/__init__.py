"""Gradients of what runs: tapes, custom gradients, forward accumulators."""
