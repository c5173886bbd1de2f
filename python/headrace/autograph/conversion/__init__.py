"""The transformer: source code of functions to converted functions."""
