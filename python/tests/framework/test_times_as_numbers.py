"""NumPy's times as tensors: counts of their unit where a dtype is asked for, as in
TensorFlow 2.21, which has no dtype for times."""

import numpy as np
import pytest

import headrace as tf

DAYS = np.array(["2020-01-02"], "datetime64[D]")


@pytest.mark.parametrize(
    "value, dtype, found",
    [
        (DAYS, tf.int32, [18263]),
        (DAYS, tf.float32, [18263.0]),
        (DAYS, tf.bool, [True]),
        (DAYS[0], tf.int32, 18263),
        (DAYS.astype("datetime64[s]"), tf.int64, [1577923200]),
        (DAYS.astype("datetime64[ns]"), tf.int32, [1255735296]),
        (np.array([3], "timedelta64[D]"), tf.int32, [3]),
        (np.array(["NaT"], "datetime64[D]"), tf.int32, [0]),
        (np.array(["NaT"], "datetime64[D]"), tf.int64, [-9223372036854775808]),
    ],
)
def test_counts(value, dtype, found):
    for make in tf.constant, tf.convert_to_tensor:
        made = make(value, dtype)
        assert made.dtype == dtype and made.numpy().tolist() == found
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            assert session.run(make(value, dtype)).tolist() == found


def test_times_without_a_numeric_dtype():
    for make in tf.constant, tf.convert_to_tensor:
        for dtype in None, tf.string:
            with pytest.raises(ValueError, match="Failed to convert a NumPy array"):
                make(DAYS, dtype)
    with pytest.raises(ValueError, match="Failed to convert a NumPy array"):
        tf.cast(DAYS, tf.int32)
