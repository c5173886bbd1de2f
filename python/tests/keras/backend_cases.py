"""Calls of tf.keras.backend, whose results tests/golden/keras/backend.json keeps.

Written anew by a Python that has TensorFlow 2.21 and tf-keras, from this folder:
`TF_USE_LEGACY_KERAS=1 python backend_cases.py ../../../tests/golden/keras/backend.json`.
"""

import json
import sys

import numpy as np


def ramp(*shape):
    return np.sin(np.arange(np.prod(shape))).reshape(shape).astype("float32")


def plain(found):
    """Nested lists of numbers."""
    if isinstance(found, (list, tuple)):
        return [plain(x) for x in found]
    return np.round(np.asarray(found, "float64"), 5).tolist()


def windows(tf):
    """Convolutions, losses and normalization: {name: call}."""
    K, c = tf.keras.backend, tf.constant
    images = c(ramp(1, 3, 3, 2))
    first = tf.transpose(images, [0, 3, 1, 2])
    cf = {"data_format": "channels_first"}
    x, y, p = c(ramp(2, 3)), c([[1.0, 0, 1]]), c([[0.9, 0.2, 0.4]])
    three = [c(v) for v in ([0.1, 0.2, 0.3], [1.0, 2, 3], [0.0, 1, 0], [1.0, 1, 2])]
    kernel, up = ramp(2, 2, 2, 1), ramp(2, 2, 1, 2)
    ct, dw, sep = K.conv2d_transpose, K.depthwise_conv2d, K.separable_conv2d
    local, nb = K.local_conv2d, K.normalize_batch_in_training
    point, of_each = ramp(1, 1, 2, 3), ramp(4, 8, 3)
    return {
        "transposed": lambda: ct(images, ramp(2, 2, 3, 2), (1, 6, 6, 3), (2, 2)),
        "transposed_same": lambda: ct(images, up, (1, 3, 3, 1), padding="same"),
        "transposed_first": lambda: ct(first, up, (1, 1, 4, 4), **cf),
        "transposed_rate": lambda: ct(images, up, (1, 5, 5, 1), dilation_rate=(2, 2)),
        "transposed_batch": lambda: ct(images, up, (None, 4, 4, 1)),
        "depthwise": lambda: dw(images, kernel),
        "depthwise_same": lambda: dw(images, ramp(2, 2, 2, 2), (2, 2), "same"),
        "depthwise_first": lambda: dw(first, kernel, **cf),
        "separable": lambda: sep(images, kernel, point),
        "separable_first": lambda: sep(first, kernel, point, **cf),
        "local1": lambda: K.local_conv1d(c(ramp(2, 4, 2)), ramp(3, 4, 5), (2,), (1,)),
        "local2": lambda: local(images, of_each, (2, 2), (1, 1), (2, 2)),
        "local2_first": lambda: local(first, of_each, (2, 2), (1, 1), (2, 2), **cf),
        "volumes": lambda: K.resize_volumes(
            c(ramp(1, 1, 2, 1, 1)), 2, 1, 2, "channels_last"
        ),
        "volumes_first": lambda: K.resize_volumes(
            c(ramp(1, 1, 1, 2, 1)), 1, 2, 1, "channels_first"
        ),
        "norm": lambda: K.batch_normalization(x, *three),
        "norm_plain": lambda: K.batch_normalization(x, *three[:2], None, None),
        "norm_images": lambda: K.batch_normalization(
            c(ramp(1, 2, 2, 3)), *three, axis=-1, epsilon=0.1
        ),
        "norm_first": lambda: K.batch_normalization(
            c(ramp(1, 3, 2, 2)), *three, axis=1, epsilon=0.1
        ),
        "own_norm": lambda: nb(x, [1.0, 1, 2], [0.0, 1, 0], [0]),
        "own_norm_images": lambda: nb(images, [1.0, 2], [0.0, 1], [0, 1, 2]),
        "own_norm_rows": lambda: nb(images, [1.0, 2, 1], [0.0, 1, 0], [0, 2, 3]),
        "focal": lambda: K.binary_focal_crossentropy(y, p),
        "focal_logits": lambda: K.binary_focal_crossentropy(y, p, True, 0.3, 1.5, True),
        "focals": lambda: K.categorical_focal_crossentropy(y, p),
        "focals_logits": lambda: K.categorical_focal_crossentropy(
            y, p, 0.3, 1.5, True, -1
        ),
        "focals_axis": lambda: K.categorical_focal_crossentropy(
            tf.transpose(y), tf.transpose(p), axis=0
        ),
    }


def loops(tf):
    """Calls of rnn: {name: call}, of a sequence."""
    K, c = tf.keras.backend, tf.constant
    start = [tf.zeros((2, 2))]
    mask = c([[True, False, True], [True, True, False]])

    def step(x, states):
        out = x + states[0]
        return out, [out * 0.5]

    def pair(x, states):
        return (x[0] + states[0], x[1]), [x[0]]

    def of(step=step, **how):
        return lambda x: K.rnn(step, x, start, **how)

    lengths = c([2, 3])
    return {
        "plain": of(),
        "back": of(go_backwards=True),
        "mask": of(mask=mask),
        "mask_deep": of(mask=mask[..., tf.newaxis]),
        "mask_zeros": of(mask=mask, zero_output_for_mask=True),
        "mask_back": of(mask=mask, go_backwards=True),
        "unroll": of(mask=mask, unroll=True),
        "last": of(return_all_outputs=False),
        "lengths": of(input_length=lengths),
        "lengths_back": of(input_length=lengths, go_backwards=True),
        "length": of(input_length=2),
        "constants": of(
            lambda x, s: (x * s[1] + s[0], [s[0] + 1.0]), constants=[c(2.0)]
        ),
        "time_first": lambda x: K.rnn(
            step, tf.transpose(x, [1, 0, 2]), start, time_major=True
        ),
        "pairs": lambda x: K.rnn(pair, (x, x * 2.0), start),
        "stateless": lambda x: K.rnn(lambda x, s: (x, []), x, []),
    }


SEQUENCE = ramp(2, 3, 2)


def main(path):
    import tensorflow as tf

    found = {name: plain(call()) for name, call in windows(tf).items()}
    for name, call in loops(tf).items():
        found[f"rnn_{name}"] = plain(call(tf.constant(SEQUENCE)))
    with open(path, "w") as file:
        json.dump(found, file, indent=0, sort_keys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
