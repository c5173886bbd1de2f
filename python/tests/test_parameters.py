"""Parameters of public names are TensorFlow's, but for those that a list says, each with
its reason."""

import importlib
import pathlib

import headrace as tf
import pytest

ROOT = pathlib.Path(__file__).parents[2]
LIST = ROOT / "tests/golden/surface/upstream/other_parameters.txt"


def reasons():
    """{name: reason} of the list."""
    lines = LIST.read_text().splitlines()
    return dict(line.split(" ", 1) for line in lines if not line.startswith("#"))


@pytest.fixture
def coverage(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("name_coverage")


def test_the_list_is_true_and_whole(coverage):
    listed = reasons()
    assert all(listed.values())
    found = {v: [n for n, _, _ in coverage.compare(tf, v)[2]] for v in ("v2", "v1")}
    of_v1 = [
        name
        for name in found["v1"]
        if name.replace("tf.compat.v1.", "tf.") not in listed
    ]
    assert sorted(listed) == sorted(found["v2"] + of_v1)
