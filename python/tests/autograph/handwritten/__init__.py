"""Small functions, each of one construct that AutoGraph converts, with what they give.

What is expected here is what TensorFlow gives. From the folder above,
`HEADRACE_TESTED=tensorflow python -m handwritten` asks a TensorFlow for it anew.
"""
