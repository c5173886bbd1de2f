"""fit, evaluate and predict show, give and call what tf-keras 2.21's do."""

import json
import pathlib
import re

import fit_cases
import headrace as tf
import pytest

GOLDEN = pathlib.Path(__file__).parents[3] / "tests/golden/keras/fit.json"
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text())


def assert_same(got, want, where):
    """Equal but for the last digits of numbers with a point, in texts too."""
    if isinstance(want, dict):
        assert list(got) == list(want), where
        for key in want:
            assert_same(got[key], want[key], f"{where}.{key}")
    elif isinstance(want, list):
        assert len(got) == len(want), (where, got, want)
        for i, (a, b) in enumerate(zip(got, want)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(want, str):
        assert NUMBER.sub("#", got) == NUMBER.sub("#", want), where
        numbers = [float(x) for x in NUMBER.findall(want)]
        near = pytest.approx(numbers, rel=1e-3, abs=2e-4)
        assert [float(x) for x in NUMBER.findall(got)] == near, where
    elif isinstance(want, float):
        assert got == pytest.approx(want, rel=1e-4, abs=1e-4), where
    else:
        assert got == want, where


@pytest.mark.parametrize("name", list(fit_cases.CASES))
def test_case(golden, name):
    found = fit_cases.run(tf, name)
    for part in ("text", "result", "calls"):
        assert_same(found[part], golden[name][part], part)
