"""Dtypes together, in every mode as TensorFlow has it."""

import subprocess
import sys

import promotion_table
import pytest

import headrace as tf


@pytest.mark.parametrize("mode, prefer_float32", promotion_table.RUNS)
def test_sums_are_of_the_dtypes_of_tensorflow(mode, prefer_float32):
    command = [sys.executable, promotion_table.__file__, "headrace"]
    command += [mode, str(prefer_float32)]
    found = subprocess.check_output(command, text=True).splitlines()[1:]
    wanted = promotion_table.recorded(mode, prefer_float32)
    assert len(wanted) > 250
    assert found == wanted


def test_modes_that_there_are_not():
    for mode in ("ALL", None, 1):
        with pytest.raises(ValueError, match=f"promotion mode {mode} does not exist"):
            tf.experimental.numpy.experimental_enable_numpy_behavior(
                dtype_conversion_mode=mode
            )
