"""The op functions, by upstream's rooms: array, math, neural networks, ..."""
