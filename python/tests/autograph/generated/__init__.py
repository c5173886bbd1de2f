"""A seeded generator of functions that AutoGraph has to convert, and their judge.

Each program is a small module. Its function `f` is run as plain Python on eager
tensors and again under `tf.function`; results and gradients must be the same.

From the folder above, `python -m generated --module headrace --count 1000 --seed 1`
tells how many agree; with `--module tensorflow`, in a Python that has TensorFlow, it
tells so of TensorFlow, which says what the language is: a program that TensorFlow
itself cannot trace is the generator's fault, not AutoGraph's.
"""

from .judge import Verdict, check, load
from .program import INPUTS, Program, make

__all__ = ["INPUTS", "Program", "Verdict", "check", "load", "make"]
