"""Names that are yet to come: errors that say what to do, and hasattr is False."""

import importlib

import headrace as tf
import pytest
from headrace import _names


def test_attributes_and_imports_say_what_to_do():
    assert not hasattr(tf.keras, "ops")
    with pytest.raises(AttributeError, match="keras.quantizers is not sup"):
        _ = tf.keras.quantizers.AbsMaxQuantizer
    with pytest.raises(AttributeError, match="keras.ops is not supported"):
        _ = tf.keras.ops
    with pytest.raises(AttributeError, match="keras.layers.GroupQueryAttention is"):
        _ = tf.keras.layers.GroupQueryAttention
    with pytest.raises(AttributeError, match="LSTM and GRU compute the same"):
        _ = tf.compat.v1.keras.layers.CuDNNLSTM
    with pytest.raises(AttributeError, match="tf.lite is not supported"):
        _ = tf.compat.v1.lite
    with pytest.raises(ImportError, match="utils.Sequence is"):
        from headrace.keras.utils import PyDataset  # noqa: F401
    with pytest.raises(ImportError, match="tf.keras.ops is not supported"):
        importlib.import_module("headrace.keras.ops.numpy")


def test_other_names_are_plainly_missing():
    with pytest.raises(AttributeError, match="has no attribute 'nosuch'$"):
        _ = tf.nosuch
    with pytest.raises(ImportError, match="cannot import name 'nosuch'"):
        from headrace.keras import nosuch  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        importlib.import_module("headrace.nosuch")


def test_no_row_is_of_a_name_that_is_there():
    for name in _names._later_names():
        *spaces, last = name.split(".")
        holder = tf
        for space in spaces:
            holder = getattr(holder, space, None)
        # some rows speak of what is missing below a namespace that is there
        if holder is not None and hasattr(holder, last):
            assert isinstance(getattr(holder, last), _names.Namespace), name
