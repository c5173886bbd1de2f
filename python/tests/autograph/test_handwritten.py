"""Each construct that AutoGraph converts, in a small function of its own."""

import pytest
from handwritten import (  # noqa: F401
    beyond,
    builtin_calls,
    conditionals,
    features,
    functions,
    loops,
    refused,
)
from handwritten.table import ROWS, same, values

GIVING = [row for row in ROWS if not row.error]
FAILING = [row for row in ROWS if row.error]


@pytest.mark.parametrize("row", GIVING, ids=str)
def test_gives(row):
    found = values(row.traced()(*row.given()))
    assert same(found, row.expected), f"{found} is not {row.expected}"


@pytest.mark.parametrize("row", [r for r in GIVING if r.plain], ids=str)
def test_gives_as_plain_python(row):
    found = values(row.function(*row.given()))
    assert same(found, row.expected), f"{found} is not {row.expected}"


@pytest.mark.parametrize("row", FAILING, ids=str)
def test_fails(row):
    with pytest.raises(Exception) as raised:
        row.traced()(*row.given())
    classes = [c.__name__ for c in raised.type.__mro__]
    assert row.error in classes, repr(raised.value)
    assert row.text in str(raised.value)


def test_there_are_a_hundred_and_more():
    assert len(ROWS) >= 100
    assert len({str(row) for row in ROWS}) == len(ROWS)
