"""tf.nest of lists, tuples and dicts, and objects that are asked for nodes late."""

import collections

import numpy as np
import pytest

import headrace as tf


def test_leaves_come_in_the_order_of_keys_and_places():
    x = tf.constant([1.0])
    structure = {"b": [x, (None, 2)], "a": {"z": True, "y": "text"}, "c": ()}
    found = tf.nest.flatten(structure)
    assert found[:2] == ["text", True] and found[2] is x and found[3:] == [None, 2]


@pytest.mark.parametrize("leaf", [3, 2.5, "a", b"b", None, True, 1j, np.float32(2)])
def test_a_leaf_alone_is_a_list_of_one(leaf):
    assert tf.nest.flatten(leaf) == [leaf]


def test_structures_that_hold_other_kinds_are_flattened_as_before():
    Pair = collections.namedtuple("Pair", "first second")
    ordered = collections.OrderedDict([("b", 1), ("a", 2)])
    array, variable = np.arange(2), tf.Variable(1.0)
    found = tf.nest.flatten([Pair(1, [2]), ordered, array, variable])
    assert found[:4] == [1, 2, 2, 1]
    assert found[4] is array and found[5] is variable
    ragged = tf.ragged.constant([[1], [2, 3]])
    assert tf.nest.flatten([ragged, 1])[0] is ragged
    assert len(tf.nest.flatten([ragged, 1], expand_composites=True)) == 3


def test_keys_without_an_order_are_refused():
    with pytest.raises(TypeError, match="only supports dicts with sortable keys"):
        tf.nest.flatten([1, {"a": 1, 2: 3}])


def test_an_error_in_a_comparison_of_keys_is_told():
    class Key:
        def __lt__(self, other):
            raise RuntimeError("no order today")

    with pytest.raises(RuntimeError, match="no order today"):
        tf.nest.flatten({Key(): 1, Key(): 2})


def test_a_structure_that_holds_itself_is_no_crash():
    endless = [1]
    endless.append(endless)
    with pytest.raises(RecursionError):
        tf.nest.flatten(endless)


def test_a_comparison_of_keys_that_changes_the_structure_is_no_crash():
    inner = [1, 2, 3]

    class Key:
        def __init__(self, number):
            self.number = number

        def __hash__(self):
            return self.number

        def __lt__(self, other):
            inner.clear()
            return self.number < other.number

    inner.append({Key(1): 4, Key(2): 5})
    assert tf.nest.flatten(inner) == [1, 2, 3, 4, 5]


def _restored(parent, path):
    tf.train.Checkpoint(parent=parent).restore(path).assert_consumed()


def test_children_given_before_there_is_a_node_are_saved_and_restored(tmp_path):
    parent = tf.Module()
    parent.first = tf.Module()
    parent.first.weights = [tf.Variable(1.0), tf.Variable(2.0)]
    parent.second = tf.Module()
    parent.second = tf.Module()  # in the place of the one before
    parent.second.value = tf.Variable(3.0)
    path = tf.train.Checkpoint(parent=parent).save(str(tmp_path / "c"))
    names = [name for name, _ in tf.train.list_variables(path)]
    wanted = ("first/weights/0", "first/weights/1", "second/value")
    assert [n for n in names if n.startswith("parent")] == [
        f"parent/{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in wanted
    ]
    for variable in parent.variables:
        variable.assign(0.0)
    _restored(parent, path)
    assert [float(v) for v in parent.variables] == [1.0, 2.0, 3.0]


def test_children_given_after_a_restore_get_their_values(tmp_path):
    saved = tf.Module()
    saved.child = tf.Module()
    saved.child.value = tf.Variable(5.0)
    path = tf.train.Checkpoint(parent=saved).save(str(tmp_path / "c"))
    parent = tf.Module()
    status = tf.train.Checkpoint(parent=parent).restore(path)
    child = tf.Module()
    child.value = tf.Variable(0.0)
    parent.child = child
    status.assert_consumed()
    assert float(child.value) == 5.0


def test_what_is_deleted_before_there_is_a_node_is_no_child(tmp_path):
    parent = tf.Module()
    parent.gone, parent.kept = tf.Module(), tf.Variable(1.0)
    parent.gone.value = tf.Variable(2.0)
    del parent.gone
    path = tf.train.Checkpoint(parent=parent).save(str(tmp_path / "c"))
    assert not any("gone" in name for name, _ in tf.train.list_variables(path))


@pytest.mark.parametrize("shape", [(), [], (0,), [2, 0, 3], (2, 3), 3, [np.int64(2)]])
@pytest.mark.parametrize("dtype", ["float16", "int8", "uint64", "complex64", "bool"])
def test_zeros_and_ones_of_any_shape(shape, dtype):
    for make, like in ((tf.zeros, np.zeros), (tf.ones, np.ones)):
        found = make(shape, dtype)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, like(shape, dtype))


def test_zeros_of_a_size_below_zero_are_refused():
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        tf.zeros([2, -1])
