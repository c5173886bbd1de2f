"""Lists of tensors: results, known shapes and errors, as TensorFlow has them."""

import json
import pathlib

import pytest

import list_error_cases

import headrace as tf

_GOLDEN = pathlib.Path(__file__).parents[3] / "tests/golden/errors/lists.json"
_ROWS = json.loads(_GOLDEN.read_text(encoding="utf-8"))


def _agree(ours, theirs):
    """Our texts may say more: a shape rule speaks for graphs and for the kernel."""
    if isinstance(theirs, str) and isinstance(ours, str):
        return theirs.split(" for '{{node")[0].split(" [Op:")[0] in ours
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(_agree, ours, theirs))
    return ours == theirs


@pytest.mark.parametrize("row", _ROWS)
def test_as_tensorflow(row):
    for way, theirs in zip(
        (list_error_cases.eager, list_error_cases.traced), _ROWS[row]
    ):
        ours = way(tf, row)
        assert _agree(ours, theirs), f"{way.__name__}: {ours} for {theirs}"


@pytest.mark.parametrize(
    "row, text",
    [
        ("set(F,[1],5.)", "Expected argument 1 to be a scalar"),
        ("put(F,[7.],[-1])", "must all be non-negative"),  # upstream: memory of others
        ("put(F,[[7.]],[1])", "Specified a list with shape"),
        ("concat(V,[2],lead=[-1])", "leading_dims"),
        ("reserve([-2],2)", "Dimension -2 must be >= -1"),
    ],
)
def test_refused(row, text):
    for way in (list_error_cases.eager, list_error_cases.traced):
        told = way(tf, row)
        assert "InvalidArgumentError" in told and text in told[-1]
