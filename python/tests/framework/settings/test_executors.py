"""Where things run, strict mode, memory of devices: what TensorFlow 2.21 says."""

import pytest

import headrace as tf
from headrace.framework.settings import logging

device = tf.config.experimental


def test_memory_of_devices():
    assert device.get_memory_info("CPU:0") == {"current": 0, "peak": 0}
    assert device.get_memory_usage("/device:CPU:0") == 0
    assert device.reset_memory_stats("CPU:0") is None
    for read in (
        device.get_memory_info,
        device.get_memory_usage,
        device.reset_memory_stats,
    ):
        for name in ("GPU:0", "CPU:5"):
            with pytest.raises(ValueError, match="No matching devices found for"):
                read(name)
        for name in ("foo", "GPU"):
            with pytest.raises(ValueError, match="Failed parsing device name"):
                read(name)
        with pytest.raises(TypeError):
            read(3)
    device.disable_mlir_bridge()
    with pytest.raises(NotImplementedError, match="no MLIR bridge"):
        device.enable_mlir_bridge()


def test_executors():
    add = tf.function(lambda x: x + 1)
    for kind in ("SINGLE_THREADED_EXECUTOR", "", "DEFAULT"):
        with tf.experimental.function_executor_type(kind):
            assert add(1) == 2
    with pytest.raises(tf.errors.NotFoundError, match="given executor type: foo"):
        with tf.experimental.function_executor_type("foo"):
            add(1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expecting a string"):
        with tf.experimental.function_executor_type(3):
            add(1)
    with tf.experimental.async_scope():
        assert tf.constant(1) + 1 == 2
    assert tf.experimental.async_clear_error() is None


def test_strict_mode(monkeypatch):
    monkeypatch.setattr(logging._Strict, "on", False)
    logging.warn_deprecated("f", "use g", set())
    tf.experimental.enable_strict_mode()
    with pytest.raises(RuntimeError, match="raises an error in strict mode"):
        logging.warn_deprecated("f", "use g", set())
