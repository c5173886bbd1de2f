"""Calls drawn for the comparison with TensorFlow (tests/compare), here eager calls
against calls of functions traced with tensors of any shape."""

import os
import sys

import headrace as tf
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "..", "tests", "compare"))
compare_ops = pytest.importorskip("compare_ops", reason="needs ml_dtypes")

_RECIPES = {
    name: recipe
    for name, recipe in compare_ops.recipes().items()
    if recipe.__module__ != "recipes_program"
}
_PARTS = sorted({recipe.__module__ for recipe in _RECIPES.values()})


@pytest.mark.parametrize("part", _PARTS)
def test_traced_with_unknown_shapes(part):
    wrong, ran = [], 0
    for op, recipe in _RECIPES.items():
        if recipe.__module__ != part:
            continue
        for _, kwargs in compare_ops.cases(op, recipe, 2, 5):
            eager = compare_ops.run(tf, op, kwargs)
            traced = compare_ops.run(tf, op, kwargs, traced=True)
            for kind, a, b in zip(("value", "gradient"), eager, traced, strict=True):
                if isinstance(a, tuple):  # an error, which may come earlier or later
                    continue
                ran += 1
                text = compare_ops.difference(a, b)
                # The one rule that asks for sizes, here and upstream.
                if text and (op, kind) != ("Qr", "gradient"):
                    wrong.append(f"{op} {kind}: {text}")
    assert not wrong
    assert ran > 10
