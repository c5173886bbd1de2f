"""BatchNormalization over all replicas: values are TensorFlow's."""

import subprocess
import sys

import headrace as tf
import numpy as np
import pytest

layers = tf.keras.layers
X = np.array([[1.0, 2.0], [3.0, -4.0], [0.5, 0.5]], np.float32)
OF_TWO_REPLICAS = """
import headrace as tf
import numpy as np

cpu = tf.config.list_physical_devices("CPU")[0]
both = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, both)
x = np.array([[1.0, 2.0], [3.0, -4.0], [0.5, 0.5]], np.float32)
y = np.array([[1.0], [0.0], [1.0]], np.float32)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.experimental.SyncBatchNormalization(input_shape=(2,)),
            tf.keras.layers.Dense(1, kernel_initializer="ones"),
        ]
    )
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
x = np.concatenate([x, x[::-1] * 2, x + 1, x * 3])
options = {"batch_size": 12, "epochs": 2, "shuffle": False, "verbose": 0}
history = model.fit(x, np.concatenate([y] * 4), **options).history
np.testing.assert_allclose(history["loss"], [0.909240, 0.361179], rtol=1e-5)
expected = [
    [0.85049, 1.04554],
    [0.18235, 0.1909],
    [0.05721, -0.01244],
    [1.09048, 1.47605],
    [[0.8578], [1.05285]],
    [0.18816],
]
for weight, wanted in zip(model.weights, expected):
    np.testing.assert_allclose(weight.numpy(), wanted, atol=1e-5)
"""


@pytest.mark.parametrize(
    "make",
    [
        layers.experimental.SyncBatchNormalization,
        lambda: layers.BatchNormalization(synchronized=True),
    ],
)
def test_of_one_replica(make):
    layer = make()
    found = layer(X, training=True)
    expected = [[-0.46271, 0.98051], [1.38814, -1.37271], [-0.92542, 0.3922]]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    moving = [w.numpy() for w in layer.weights[2:]]
    np.testing.assert_allclose(moving, [[0.015, -0.005], [1.00167, 1.055]], rtol=1e-5)
    assert "synchronized" not in layer.get_config()


def test_images_and_masks():
    x = np.random.default_rng(0).normal(size=(2, 3, 3, 4)).astype(np.float32)
    for axis in (-1, 1):
        both = layers.experimental.SyncBatchNormalization(axis=axis)
        plain = layers.BatchNormalization(axis=axis)
        np.testing.assert_allclose(
            both(x, training=True), plain(x, training=True), atol=1e-5
        )
    x, mask = x[0], np.array([[True, True, False]] * 3)
    both, plain = (
        layers.experimental.SyncBatchNormalization(),
        layers.BatchNormalization(),
    )
    np.testing.assert_allclose(
        both(x, training=True, mask=mask),
        plain(x, training=True, mask=mask),
        atol=1e-5,
    )


def test_of_two_replicas():
    command = [sys.executable, "-c", OF_TWO_REPLICAS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
