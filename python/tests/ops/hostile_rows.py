"""The rows of the op tables as calls: {op: [keyword arguments]}."""

import collections
import importlib
import pathlib

import driver


def _rows(module):
    for value in vars(module).values():
        if isinstance(value, (list, tuple)):
            yield from (row for row in value if isinstance(row, driver.Row))


def by_op():
    found = collections.defaultdict(list)
    for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py")):
        for row in _rows(importlib.import_module(path.stem)):
            found[row.op].append(driver.arguments(row, row.dtypes[0]))
    return found
