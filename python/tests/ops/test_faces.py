"""Functions that are rows of a table: signatures, docstrings, calls."""

import inspect

import pytest

import headrace as tf
from headrace._load import _headrace, raw
from headrace.context.properties import read_only
from headrace.ops.faces import add_faces


@pytest.fixture
def scope():
    found = {"__name__": "tests.faces"}
    add_faces(
        found,
        """
negative Neg
moved Roll(values->input, shift=1, axis=0, name=None)
    Elements one place further.

    Those that leave come back.
_kept=kept StridedSlice(input, begin, end, strides, begin_mask=0, end_mask=0,
        ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0, name=None)
as_bytes DecodeRaw(input_bytes->bytes, out_type=uint8, little_endian=True, name=None)
""",
    )
    return found


def test_rows_say_all_of_a_function(scope):
    moved = scope["moved"]
    assert str(inspect.signature(moved)) == "(values, shift=1, axis=0, name=None)"
    assert (moved.__name__, moved.__module__) == ("moved", "tests.faces")
    assert moved.__doc__ == (
        "Elements one place further.\n\n    Those that leave come back.\n    "
    )
    assert moved([1, 2, 3]).numpy().tolist() == [3, 1, 2]
    assert moved(shift=2, values=[1, 2, 3]).numpy().tolist() == [2, 3, 1]


def test_rows_in_short_forms(scope):
    assert scope["negative"](2.0).numpy() == -2.0
    assert scope["_kept"].__name__ == "kept" and "kept" not in scope
    assert len(inspect.signature(scope["_kept"]).parameters) == 10
    default = inspect.signature(scope["as_bytes"]).parameters["out_type"].default
    assert default is tf.uint8


def test_wrong_arguments(scope):
    with pytest.raises(TypeError, match=r"moved\(\) missing 1 .*'values'"):
        scope["moved"]()
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'input'"):
        scope["moved"]([1], input=[1])


def test_ops_by_place_and_by_name():
    assert raw.Maximum(1, y=2).numpy() == 2
    assert raw.Cast(1.5, DstT=tf.int32).numpy() == 1
    with pytest.raises(TypeError, match="only takes keyword args"):
        tf.raw_ops.Maximum(1, 2)
    with pytest.raises(AttributeError):
        raw.__path__  # noqa: B018


def test_read_only_properties():
    class Kept:
        inner = read_only("_inner.real", "The real part.")
        bare = read_only("_inner")

        def __init__(self):
            self._inner = 2 + 3j

    assert Kept().inner == 2.0 and Kept.inner.__doc__ == "The real part."
    assert Kept.bare.__doc__ is None
    with pytest.raises(AttributeError, match="has no setter"):
        Kept().inner = 1


def test_result_tuples_are_of_the_raw_ops_whoever_calls_first():
    kind = type(tf.raw_ops.TopKV2(input=[1.0, 2.0], k=1))
    assert (kind.__name__, kind.__module__) == ("TopKV2", "headrace.raw_ops")


def test_operations_by_name_refuse_attributes_they_do_not_have():
    with pytest.raises(TypeError, match="Identity: .*'foo'"):
        _headrace.call_op("Identity", [1], {"foo": 2})
