"""Every registered op has a row with expected values, and gives them."""

import headrace as tf
import pytest
import rows
from headrace._load import _headrace


@pytest.mark.parametrize("op", sorted(rows.golden().index["calls"]))
def test_calls(op):
    compare_ops = rows.compare_ops()
    single = any(r[0] == op and r[1] == "single" for r in compare_ops.known())
    for kwargs, wanted in rows.golden().calls(op):
        held = []
        arguments = compare_ops.tensors_of(tf, kwargs, [], held)
        given = tf.nest.flatten(getattr(tf.raw_ops, op)(**arguments))
        given = [x for x in given if x is not None]
        given += [variable.read_value() for variable in held]
        rows.compare(wanted, [rows.plain(tf, x) for x in given], single)


@pytest.mark.parametrize("name", sorted(rows.programs()))
def test_programs(name):
    given = rows.run_program(tf, rows.programs()[name])
    rows.compare(rows.golden().program(name), given)


@pytest.mark.parametrize("name", sorted(rows.programs(rows.FORMULAS)))
def test_formulas(name):
    given, wanted = rows.run_formula(tf, rows.FORMULAS[name])
    assert rows.says_something(wanted)
    rows.compare(wanted, given)


def test_every_op_has_a_row():
    registered = set(_headrace.op_names())
    assert rows.without_row(registered) == []
    # An op that is excused and has a row after all, or is gone, is no exception.
    assert sorted(set(rows.EXCUSED) & rows.ops_with_rows()) == []
    assert sorted(set(rows.EXCUSED) - registered) == []


def test_an_op_without_a_row_is_found():
    names = [*_headrace.op_names(), "OpThatNobodyWrote"]
    assert rows.without_row(names) == ["OpThatNobodyWrote"]
    # A mere handle, a refusal or something empty is no value.
    assert not rows.says_something([("variant", [0]), None, ("none", "x")])
    assert not rows.says_something([("float32", [])])
    assert rows.says_something([("variant", [0]), ("int32", [1])])
    # And a program is no row of an op that it does not call.
    with pytest.raises(AssertionError, match="calls no .*'Add'"):
        rows.run_program(tf, rows.claims("Abs Add")(lambda tf, raw: raw.Abs(x=-1.0)))
