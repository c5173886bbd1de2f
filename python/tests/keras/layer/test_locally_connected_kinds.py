"""Layers whose kernel is another one at every place, kept in three ways.

The values are tf_keras 2.21's, printed for weights and inputs that count up.
"""

import headrace as tf
import numpy as np
import pytest

layers = tf.keras.layers
LAST, FIRST = "channels_last", "channels_first"

# (implementation, rank, padding, format), shapes of the weights, of the output of a
# batch of two, a sum of outputs and sums of gradients.
CASES = [
    ((1, 1, "valid", FIRST), [(2, 4, 3), (2, 3)], (3, 2), 1057.8, [1714.8, 3445.8, 288.6]),
    ((1, 2, "valid", FIRST), [(2, 8, 3), (1, 2, 3)], (3, 1, 2), 9849.0, [63687.8, 151033.2, 2694.0]),
    ((2, 1, "valid", LAST), [(5, 2, 2, 3), (2, 3)], (2, 3), 2287.0, [7462.9, 7023.3, 568.2]),
    ((2, 1, "valid", FIRST), [(2, 5, 3, 2), (2, 3)], (3, 2), 2451.2, [7847.7, 7983.6, 687.6]),
    ((2, 1, "same", LAST), [(5, 2, 3, 3), (3, 3)], (3, 3), 9758.0, [39386.5, 20874.1, 1540.5]),
    ((2, 1, "same", FIRST), [(2, 5, 3, 3), (3, 3)], (3, 3), 8391.3, [29135.9, 17699.6, 1514.1]),
    ((2, 2, "valid", LAST), [(3, 4, 2, 1, 2, 3), (1, 2, 3)], (1, 2, 3), 19394.0, [211640.9, 270614.4, 5078.4]),
    ((2, 2, "same", FIRST), [(2, 3, 4, 3, 2, 2), (2, 2, 3)], (3, 2, 2), 152306.5, [1972216.0, 930546.9, 20249.4]),
    ((3, 1, "valid", LAST), [(24,), (2, 3)], (2, 3), 1120.0, [1777.5, 3367.8, 272.4]),
    ((3, 1, "same", FIRST), [(30,), (3, 3)], (3, 3), 2774.2, [3345.5, 5230.6, 445.8]),
    ((3, 2, "valid", FIRST), [(48,), (1, 2, 3)], (3, 1, 2), 10192.8, [63170.4, 141848.4, 2518.8]),
    ((3, 2, "same", LAST), [(54,), (2, 2, 3)], (2, 2, 3), 33333.8, [102184.2, 208163.3, 3717.9]),
]  # fmt: skip


def counting(shape, by):
    return (np.arange(np.prod(shape), dtype=np.float32) / by).reshape(shape)


@pytest.mark.parametrize(("kind", "weights", "out", "total", "slopes"), CASES)
def test_values(kind, weights, out, total, slopes):
    implementation, rank, padding, data_format = kind
    spatial = (5,) if rank == 1 else (3, 4)
    shape = (2, *spatial) if data_format == FIRST else (*spatial, 2)
    layer = (layers.LocallyConnected1D, layers.LocallyConnected2D)[rank - 1](
        3,
        2,
        strides=2,
        implementation=implementation,
        padding=padding,
        data_format=data_format,
    )
    layer.build((None, *shape))
    assert [tuple(w.shape) for w in layer.weights] == weights
    layer.set_weights([counting(w.shape, 10) for w in layer.weights])
    x = tf.constant(counting((2, *shape), 4))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
        loss = tf.reduce_sum(y * y)
    assert tuple(y.shape) == (2, *out)
    assert tuple(layer.compute_output_shape((2, *shape))) == (2, *out)
    numbers = tf.reshape(tf.range(tf.size(y), dtype=tf.float32), y.shape)
    assert float(tf.reduce_sum(y * numbers)) == pytest.approx(total, rel=1e-4)
    found = tape.gradient(loss, [x, *layer.trainable_variables])
    sums = [float(tf.reduce_sum(tf.abs(g))) for g in found]
    assert sums == pytest.approx(slopes, rel=1e-4)
    again = type(layer).from_config(layer.get_config())
    assert again.implementation == implementation


def test_refused():
    layer = layers.LocallyConnected1D(2, 3, implementation=4)
    with pytest.raises(ValueError, match="Unrecognized implementation mode: 4."):
        layer.build((None, 6, 2))
    with pytest.raises(ValueError, match='only "valid" is supported if implementation'):
        layers.LocallyConnected1D(2, 3, padding="same")
    with pytest.raises(ValueError, match="The `padding` argument must be"):
        layers.LocallyConnected1D(2, 3, padding="foo", implementation=2)
