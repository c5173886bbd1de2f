"""Random calls of ops compared with TensorFlow, where that is installed."""

import os
import shutil
import sys

import pytest

PYTHON = os.environ.get("HEADRACE_TENSORFLOW_PYTHON", "")
TOOL = os.path.join(os.path.dirname(__file__), "../../../tests/compare")


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which(PYTHON) is None, reason="no Python that has TensorFlow"
)
def test_no_difference_but_those_decided(monkeypatch):
    monkeypatch.syspath_prepend(TOOL)
    import compare_ops

    found, ran = compare_ops.compare(PYTHON, [], 5, seed=2)
    decided = compare_ops.known()
    other = [
        (op, kind, text)
        for op, kind, _, _, text in found
        if not compare_ops.is_known(decided, op, kind, text, broken=False)
    ]
    assert not other
    assert sum(ran.values()) > 1500


def test_every_recipe_draws_the_same_calls_again(monkeypatch):
    monkeypatch.syspath_prepend(TOOL)
    import compare_ops

    table = compare_ops.recipes()
    ops = {op for op in table if table[op].__module__ != "recipes_program"}
    assert ops <= set(dir(sys.modules["headrace"].raw_ops))
    for op in sorted(table)[::7]:
        first, again = (
            [compare_ops.describe(k) for _, k in compare_ops.cases(op, table[op], 2, 9)]
            for _ in range(2)
        )
        assert first == again
