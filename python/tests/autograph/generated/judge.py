"""Runs a program plainly and under tf.function and says whether they agree."""

import dataclasses
import importlib.util
import linecache
import sys

import numpy as np

from .program import INPUTS

# Fused and reordered sums of floats may differ a little, and loops enlarge that.
TOLERANCE = {"rtol": 2e-4, "atol": 2e-5}


@dataclasses.dataclass
class Verdict:
    """kind: "agrees", "plain fails", "traced fails", "differs" or "gradient differs"."""

    kind: str
    text: str = ""

    def __bool__(self):
        return self.kind == "agrees"

    def like(self, other):
        """The same failure, for cutting a program down to what shows it."""
        first = lambda text: text.strip().split("\n")[-1][:60]
        same = self.kind == other.kind
        return same and (
            self.kind != "traced fails" or first(self.text) == first(other.text)
        )


def load(source, path):
    """The module of that source, in a file of its own, so that inspect finds it."""
    path.write_text(source)
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def tensors(tf, given):
    """The arguments of one call of f, as tensors and Python's own int."""
    x, n, v, k = given
    return tf.constant(x), tf.constant(n), tf.constant(v), k


def leaves(tree, path="result"):
    """(path, value) of each value of nested tuples, lists and dicts."""
    if isinstance(tree, (list, tuple)):
        yield f"length of {path}", len(tree)
        for i, value in enumerate(tree):
            yield from leaves(value, f"{path}[{i}]")
    elif isinstance(tree, dict):
        for key in sorted(tree):
            yield from leaves(tree[key], f"{path}[{key!r}]")
    else:
        yield path, tree


def difference(plain, traced):
    """What of two results differs, in words, or None."""
    plain, traced = list(leaves(plain)), list(leaves(traced))
    if [p for p, _ in plain] != [p for p, _ in traced]:
        return f"structure: plain {plain}, traced {traced}"
    for (path, a), (_, b) in zip(plain, traced):
        typed = hasattr(a, "dtype")
        a, b = np.asarray(a), np.asarray(b)
        if typed and a.dtype != b.dtype or a.dtype.kind != b.dtype.kind:
            return f"{path}: plain {a.dtype}, traced {b.dtype}"
        if a.shape != b.shape:
            return f"{path}: plain has shape {a.shape}, traced {b.shape}"
        exact = a.dtype.kind != "f"
        near = (
            np.array_equal(a, b)
            if exact
            else np.allclose(a, b, **TOLERANCE, equal_nan=True)
        )
        if not near:
            return f"{path}: plain {a}, traced {b}"
    return None


def _floats(tf, tree):
    found = [tf.convert_to_tensor(v) for p, v in leaves(tree) if p[:6] != "length"]
    return [tf.reduce_sum(t) for t in found if t.dtype == tf.float32]


def _with_gradients(tf, function):
    """A function that gives also the gradients of its float results by x and v."""

    def both(x, n, v, k):
        with tf.GradientTape() as tape:
            tape.watch([x, v])
            result = function(x, n, v, k)
            total = tf.add_n(_floats(tf, result))
        found = tape.gradient(total, [x, v], unconnected_gradients="zero")
        return result, [tf.convert_to_tensor(g) for g in found]

    return both


def check(tf, function, differentiable=True, tape_inside=False, inputs=INPUTS):
    """The verdict on one function over all inputs.

    tape_inside: the tape is part of what is traced, not around it.
    """
    plain, traced = function, tf.function(function)
    if differentiable:
        plain = _with_gradients(tf, function)
        if tape_inside:
            traced = tf.function(plain)
        else:
            traced = _with_gradients(tf, traced)
    for given in inputs:
        arguments = tensors(tf, given)
        try:
            expected = plain(*arguments)
        except Exception as error:
            return Verdict("plain fails", f"f{given}: {_words(error)}")
        try:
            found = traced(*arguments)
        except Exception as error:
            return Verdict("traced fails", f"f{given}: {_words(error)}")
        parts = [("differs", expected, found)]
        if differentiable:
            parts = [
                ("differs", expected[0], found[0]),
                ("gradient differs", expected[1], found[1]),
            ]
        for kind, a, b in parts:
            text = difference(a, b)
            if text:
                return Verdict(kind, f"f{given}: {text}")
    return Verdict("agrees")


def _words(error):
    return f"{type(error).__name__}: {error}".strip()
