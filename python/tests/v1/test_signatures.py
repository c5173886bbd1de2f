"""Names of tf.compat.v1: each row's target exists, and its parameters are those of
TensorFlow 2.21 (signatures_2_21.txt)."""

import inspect
import os

import headrace as tf
import pytest
from headrace.v1 import table

with open(os.path.join(os.path.dirname(__file__), "signatures_2_21.txt")) as f:
    _EXPECTED = dict(line.rstrip("\n").split(" ", 1) for line in f)
# Scatters take no `bad_indices_policy` yet; native types tell no parameters.
_OTHERWISE = {"manip.scatter_nd", "tensor_scatter_add", "tensor_scatter_sub"}
_OTHERWISE |= {"DeviceSpec", "VariableAggregation", "OpError", "executing_eagerly"}


@pytest.mark.parametrize("key", list(table._by_key()))
def test_rows_have_targets(key):
    name, rest = table._by_key()[key]
    target = rest.partition(" ! ")[0].partition("(")[0]
    assert table._find(target) is not None
    found = tf.compat.v1
    for part in name.split("."):
        found = getattr(found, part)
    made = getattr(table, key)
    assert found is made or found.__wrapped__ is made


@pytest.mark.parametrize("name", sorted(set(_EXPECTED) - _OTHERWISE))
def test_parameters(name):
    function = tf.compat.v1
    for part in name.split("."):
        function = getattr(function, part)
    if isinstance(function, type):
        pytest.skip("a class")
    made = inspect.signature(function).parameters.values()
    empty = inspect.Parameter.empty
    made = [p.name if p.default is empty else p.name + "=" for p in made]
    assert made == _EXPECTED[name].split()
