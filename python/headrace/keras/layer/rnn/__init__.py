"""Recurrent layers: cells and the loops over them."""
