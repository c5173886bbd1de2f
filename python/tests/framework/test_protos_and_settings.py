"""Protos of tensors, what is known of tensors without a run, device specs, the days of
forward compatibility, settings that are asked for again."""

import os
import subprocess
import sys

import headrace as tf
import numpy as np
import pytest

v1 = tf.compat.v1
experimental = tf.dtypes.experimental


@pytest.mark.parametrize(
    "values, dtype, field, written",
    [
        ([1 + 2j, 3], tf.complex64, "scomplex_val", [1, 2, 3, 0]),
        ([1 + 2j], tf.complex128, "dcomplex_val", [1, 2]),
        ([True, False], None, "bool_val", [True, False]),
        ([-8, 7], experimental.int4, "int_val", [-8, 7]),
        ([1, -1], experimental.int2, "int_val", [1, -1]),
        ((21,), tf.qint32, "int_val", [21]),
        (5, None, "int_val", [5]),
    ],
)
def test_fields_of_protos(values, dtype, field, written):
    proto = tf.make_tensor_proto(values, dtype)
    assert list(getattr(proto, field)) == written and not proto.tensor_content
    kind = dtype.as_numpy_dtype if dtype == tf.qint32 else None
    array = tf.make_ndarray(proto)
    assert array.tolist() == np.array(values, kind).tolist()
    assert kind is None or array.dtype == kind


def test_bytes_of_protos():
    size = v1.Dimension
    for values, dtype, kind in [
        ([10, size(20)], tf.int32, np.int32),
        ([(21,), (-22,)], tf.qint8, np.int8),
        ([1.5, 2], tf.float32, np.float32),
    ]:
        numbers = [getattr(v, "value", v) for v in values]
        numbers = [v[0] if isinstance(v, tuple) else v for v in numbers]
        proto = tf.make_tensor_proto(values, dtype)
        assert proto.tensor_content == np.array(numbers, kind).tobytes()
        array = tf.make_ndarray(proto)
        assert array.dtype == dtype.as_numpy_dtype
        assert array.view(kind).tolist() == np.array(numbers, kind).tolist()


@pytest.mark.parametrize(
    "values, dtype, kind, text",
    [
        (21, tf.qint32, TypeError, "Expected qint32, but got 21 of type 'int'"),
        (None, None, ValueError, "None values not supported"),
        ([1, "a"], None, TypeError, "Failed to convert elements"),
        (1.5, tf.int32, TypeError, "Expected int32, but got 1.5 of type 'float'"),
        ([[1], [2, 3]], None, ValueError, "inhomogeneous"),
    ],
)
def test_what_protos_refuse(values, dtype, kind, text):
    with pytest.raises(kind, match=text):
        tf.make_tensor_proto(values, dtype)


def test_values_known_in_part():
    with tf.Graph().as_default():
        unknown = v1.placeholder(tf.int32, [2])
        stacked = tf.stack([tf.constant([1, 2]), unknown])
        assert tf.get_static_value(stacked) is None
        first, second = tf.get_static_value(stacked, partial=True)
        assert first.tolist() == [1, 2] and second is None
        parts = [tf.get_static_value(p, partial=True) for p in tf.unstack(stacked)]
        assert parts[0].tolist() == [1, 2] and parts[1] is None
        assert tf.get_static_value(tf.unstack(stacked)[0]) is None
        halves = tf.split(tf.constant([1, 2, 3, 4]), [1, 3])
        assert tf.get_static_value(halves[1]).tolist() == [2, 3, 4]


def test_device_specs_of_tensorflow_1_change():
    spec = v1.DeviceSpec(job="a")
    spec.device_type, spec.device_index = "gpu", 3
    assert spec.to_string() == "/job:a/device:GPU:3"
    spec.merge_from(v1.DeviceSpec(job="b", task=2))
    assert spec.to_string() == "/job:b/task:2/device:GPU:3"
    assert spec.parse_from_string("/job:c") is spec and spec.to_string() == "/job:c"
    assert spec == v1.DeviceSpec(job="c") != tf.DeviceSpec(job="c")
    with pytest.raises(AttributeError):
        spec.color = "red"
    with pytest.raises(AttributeError):
        tf.DeviceSpec(job="a").job = "b"


@pytest.mark.parametrize("kind", [tf.DeviceSpec, v1.DeviceSpec])
def test_names_of_devices_that_do_not_parse(kind):
    for name in ("/cpu:0/gpu:1", "/device:CPU:0/device:GPU:1", "/CPU:0/task:1/CPU:2"):
        with pytest.raises(ValueError, match="Multiple device types are not allowed"):
            kind.from_string(name)
    with pytest.raises(ValueError, match="Unknown attribute 'device'"):
        kind.from_string("/device:CPU")


def test_the_horizon_of_a_process():
    code = "import headrace as tf; print(tf.compat.forward_compatible(2026, 2, 1))"
    for days, says in (("", "False"), ("30", "True")):
        env = {**os.environ, "TF_FORWARD_COMPATIBILITY_DELTA_DAYS": days}
        run = subprocess.run(
            [sys.executable, "-c", code],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.split() == [says]


def test_forward_compatibility():
    compat = tf.compat
    assert compat.forward_compatible(2020, 1, 1)
    assert not compat.forward_compatible(2100, 1, 1)
    with compat.forward_compatibility_horizon(2030, 1, 2):
        assert compat.forward_compatible(2030, 1, 1)
        assert not compat.forward_compatible(2030, 1, 2)
        with compat.forward_compatibility_horizon(2010, 1, 1):  # the past: ignored
            assert compat.forward_compatible(2029, 1, 1)
            assert not compat.forward_compatible(2031, 1, 1)
    assert not compat.forward_compatible(2030, 1, 1)


def test_settings_that_stay_may_be_asked_for_again():
    tf.constant(1)
    config = tf.config
    cpu = config.list_physical_devices("CPU")[0]
    now = config.get_logical_device_configuration(cpu)
    if now is not None:
        config.set_logical_device_configuration(cpu, now)
    with pytest.raises(RuntimeError, match="Virtual devices cannot be modified"):
        config.set_logical_device_configuration(
            cpu, [config.LogicalDeviceConfiguration()] * 9
        )
    threads = config.threading
    threads.set_inter_op_parallelism_threads(threads.get_inter_op_parallelism_threads())
    config.set_visible_devices(config.get_visible_devices())
    with pytest.raises(RuntimeError, match="Visible devices cannot be modified"):
        config.set_visible_devices([], "CPU")


def test_small_settings():
    config = tf.config
    config.experimental.set_device_policy("warn")
    assert config.experimental.get_device_policy() == "warn"
    config.experimental.set_device_policy(None)
    assert config.experimental.get_device_policy() == "silent"
    with pytest.raises(ValueError, match="Invalid argument `device_policy`"):
        config.experimental.set_device_policy("loud")
    config.optimizer.set_experimental_options({"shape_optimization": "on"})
    assert config.optimizer.get_experimental_options()["shape_optimization"] is True
    assert tf.qint8 in tf.dtypes.QUANTIZED_DTYPES
    assert tf.dtypes.experimental.float8_e5m2.is_floating
