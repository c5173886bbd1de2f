"""MultiHeadAttention over several axes; the values are what tf_keras 2.21 gave."""

import numpy as np
import pytest

import headrace as tf

_MASK = np.random.RandomState(1).rand(2, 4, 6) > 0.4
# Shapes of query and value, arguments, the outputs' shape, scores' shape, sum of sizes,
# first output.
_CASES = [
    ([2, 4, 5], [2, 6, 5], {}, [2, 4, 5], [2, 2, 4, 6], 8.4904, 0.41218),
    (
        *([2, 4, 3, 5], [2, 6, 3, 5], {"attention_axes": (1,)}),
        *([2, 4, 3, 5], [2, 3, 2, 4, 6], 30.9956, -0.09457),
    ),
    (
        *([2, 4, 3, 5], [2, 4, 7, 5], {"attention_axes": 2}),
        *([2, 4, 3, 5], [2, 4, 2, 3, 7], 46.9942, -0.18356),
    ),
    (
        *([2, 4, 3, 5], [2, 6, 2, 5], {}),
        *([2, 4, 3, 5], [2, 2, 4, 3, 6, 2], 44.1741, -0.01811),
    ),
    (
        *([2, 4, 3, 5], [2, 6, 2, 5], {"value_dim": 4, "output_shape": (3, 2)}),
        *([2, 4, 3, 3, 2], [2, 2, 4, 3, 6, 2], 32.7256, 0.03703),
    ),
    (
        *(
            [2, 4, 3, 5],
            [2, 6, 3, 5],
            {"attention_axes": (1,), "attention_mask": _MASK},
        ),
        *([2, 4, 3, 5], [2, 3, 2, 4, 6], 34.6869, -0.32178),
    ),
    (
        *([2, 4, 5], [2, 6, 5], {"dtype": "mixed_float16", "attention_mask": _MASK}),
        *([2, 4, 5], [2, 2, 4, 6], 10.2264, 0.51562),
    ),
]


@pytest.mark.parametrize("query, value, arguments, shape, scores, total, first", _CASES)
def test_values(query, value, arguments, shape, scores, total, first):
    arguments = dict(arguments)
    mask = arguments.pop("attention_mask", None)
    layer = tf.keras.layers.MultiHeadAttention(2, 3, **arguments)
    random = np.random.RandomState(0)
    q, v = (random.randn(*s).astype("float32") for s in (query, value))
    layer(q, v)
    layer.set_weights([random.randn(*w.shape) * 0.3 for w in layer.get_weights()])
    call = tf.function(layer)
    for function in (layer, call):
        out, seen = function(q, v, attention_mask=mask, return_attention_scores=True)
        assert (out.shape, seen.shape) == (shape, scores)
        close = 3e-3 if out.dtype == tf.float16 else 2e-5
        out = out.numpy().astype("float32")
        np.testing.assert_allclose(np.abs(out).sum(), total, rtol=close)
        np.testing.assert_allclose(out.ravel()[0], first, rtol=close, atol=1e-5)
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()


def test_bad_axes():
    make = tf.keras.layers.MultiHeadAttention
    with pytest.raises(ValueError, match="attention_axes"):
        make(2, 3, attention_axes=(3,))(tf.ones([1, 2, 3, 4]), tf.ones([1, 2, 3, 4]))
    with pytest.raises(ValueError, match="the same rank"):
        make(2, 3)(tf.ones([1, 2, 4]), tf.ones([1, 2, 3, 4]))
