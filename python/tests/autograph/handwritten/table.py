"""The table that the modules of this folder fill, and how one row is judged."""

import dataclasses
import importlib
import os

import numpy as np

tf = importlib.import_module(os.environ.get("HEADRACE_TESTED", "headrace"))

ROWS = []


@dataclasses.dataclass(frozen=True)
class Static:
    """An argument that stays Python's own."""

    value: object


@dataclasses.dataclass
class Row:
    function: object
    arguments: tuple
    expected: object = None  # of a call as plain Python and of a traced one
    error: str = ""  # the class that the traced call raises
    text: str = ""  # and the decisive part of what it says
    plain: bool = True  # plain Python gives what is expected, too
    features: tuple = ()  # names of tf.autograph.experimental.Feature

    def __str__(self):
        return self.function.__name__

    def traced(self):
        """The function under tf.function."""
        known = tf.autograph.experimental.Feature
        options = tuple(getattr(known, name) for name in self.features) or None
        return tf.function(self.function, experimental_autograph_options=options)

    def given(self):
        """The arguments anew: tensors, but for what is static."""
        return [
            a.value if isinstance(a, Static) else tf.constant(a) for a in self.arguments
        ]


def gives(expected, *arguments, plain=True, features=()):
    """Plain Python and the traced function give this for these arguments."""

    def add(function):
        ROWS.append(Row(function, arguments, expected, plain=plain, features=features))
        return function

    return add


def fails(error, text, *arguments, features=()):
    """The traced function raises an error of that class whose words contain `text`."""

    def add(function):
        ROWS.append(Row(function, arguments, error=error, text=text, features=features))
        return function

    return add


def values(tree):
    """The same structure, tensors as numpy arrays."""
    return tf.nest.map_structure(
        lambda t: t.numpy() if hasattr(t, "numpy") else t, tree
    )


def same(found, expected):
    """Of the same structure, numbers nearly equal, floats apart from ints and bools."""
    if isinstance(expected, (tuple, list, dict)) and not isinstance(found, np.ndarray):
        if not isinstance(found, type(expected)) or len(found) != len(expected):
            return False
        if isinstance(expected, dict):
            return all(k in found and same(found[k], v) for k, v in expected.items())
        return all(same(a, b) for a, b in zip(found, expected))
    found, expected = np.asarray(found), np.asarray(expected)
    kinds = found.dtype.kind == expected.dtype.kind or found.dtype.kind in "SOU"
    if expected.size == 0:
        return found.shape == expected.shape
    if expected.dtype.kind in "OUSb" or found.dtype.kind == "O":
        return kinds and found.tolist() == expected.tolist()
    return (
        kinds and found.shape == expected.shape and np.allclose(found, expected, 1e-5)
    )
