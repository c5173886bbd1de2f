"""Calls of ops that work: the rows of the op tables, and what recipes draw."""

import collections
import functools
import importlib
import pathlib
import sys

import driver
import headrace as tf

_RECIPES = pathlib.Path(__file__).parents[3] / "tests" / "compare"
_variables = []  # whose handles are arguments


def _rows(module):
    for value in vars(module).values():
        if isinstance(value, (list, tuple)):
            yield from (row for row in value if isinstance(row, driver.Row))


@functools.cache
def _recipes():
    sys.path.append(str(_RECIPES))
    compare_ops = importlib.import_module("compare_ops")
    return compare_ops, compare_ops.recipes()


def drawn(op, seed, count=2):
    """Keyword arguments by the op's recipe in tests/compare, if it has one."""
    compare_ops, recipes = _recipes()
    if op not in recipes:
        return []
    calls = [kwargs for _, kwargs in compare_ops.cases(op, recipes[op], count, seed)]
    return [
        compare_ops.tensors_of(tf, kwargs, [], _variables)
        for kwargs in calls
        if isinstance(kwargs, dict)  # not a program of several ops
    ]


def by_op():
    """The rows: {op: [keyword arguments]}."""
    found = collections.defaultdict(list)
    for module in driver.table_modules():
        for row in _rows(module):
            found[row.op].append(driver.arguments(row, row.dtypes[0]))
    return found
