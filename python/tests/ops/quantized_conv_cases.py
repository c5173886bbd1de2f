"""Fused convolutions of quantized images: arguments by case, for
rows_of_quantized.py, whose values TensorFlow 2.21 gave (with oneDNN, in functions whose
filters are constants: eager calls have no kernel there).
"""

import numpy as np

PLAIN = {"quint8": np.uint8, "qint8": np.int8, "qint32": np.int32}
_RANGES = {"min_input": 0.0, "max_input": 2.0}
_ONE = {"min_filter": -1.0, "max_filter": 1.0}
_EACH = {"min_filter": [-1.1, -0.6, -1.7], "max_filter": [1.0, 0.25, 1.0]}
_MADE = {"min_freezed_output": -3.0, "max_freezed_output": 4.0}
_SAME = {"strides": [1, 1, 1, 1], "padding": "SAME"}
_VALID = {"strides": [1, 2, 2, 1], "padding": "VALID"}
_BIAS = np.float32([0.5, -0.25, 0.83])


def levels(tf, values, dtype):
    return tf.bitcast(tf.constant(values.astype(PLAIN[dtype])), getattr(tf, dtype))


def plain(tf, t):
    """The integers that a quantized tensor is stored as."""
    kind = PLAIN.get(t.dtype.name)
    return t if kind is None else tf.bitcast(t, np.dtype(kind).name)


def _drawn():
    draw = np.random.RandomState(0)
    return {
        "quint8": draw.randint(0, 255, (1, 3, 3, 2)),
        "qint8": draw.randint(-127, 127, (1, 3, 3, 2)),
        "filter": draw.randint(-127, 127, (2, 2, 2, 3)),
        "depthwise": draw.randint(-127, 127, (2, 2, 2, 1)),
    }


def cases(tf):
    """{name: (op, arguments)}."""
    drawn = _drawn()
    image = {k: levels(tf, drawn[k], k) for k in ("quint8", "qint8")}
    steps = levels(tf, np.array([50, -100, 200]), "qint32")

    def full(op, *more, of="quint8"):
        filters = levels(tf, drawn["filter"], "qint8")
        given = {"input": image[of], "filter": filters, **_RANGES}
        for part in more:
            given.update(part)
        return f"QuantizedConv2D{op}", given

    def deep(op, *more):
        filters = levels(tf, drawn["depthwise"], "qint8")
        given = {"input": image["quint8"], "filter": filters, **_RANGES, **_ONE}
        for part in (*more, _SAME):
            given.update(part)
        return f"QuantizedDepthwiseConv2D{op}", given

    bias, few = {"bias": _BIAS}, {"bias": _BIAS[:2]}
    padded = {"padding_list": [0, 0, 1, 2, 2, 1, 0, 0], **_SAME, "padding": "VALID"}
    return {
        "relu": full("AndRelu", _ONE, _SAME),
        "relu_bytes": full("AndReluAndRequantize", _ONE, _MADE, _SAME),
        "bytes": full("AndRequantize", _ONE, _MADE, _VALID),
        "channels": full("PerChannel", _EACH, _SAME),
        "bias": full("WithBias", bias, _ONE, _SAME),
        "bias_channels": full("WithBias", bias, _EACH, _SAME),
        "bias_signed": full("WithBias", bias, _EACH, _SAME, of="qint8"),
        "bias_padded": full("WithBias", bias, _ONE, padded),
        "bias_dilated": full(
            "WithBias", bias, _ONE, _SAME, {"dilations": [1, 2, 2, 1]}
        ),
        "bias_uneven": full(
            "WithBias",
            bias,
            _SAME,
            {"min_input": -1.0},
            {"min_filter": -1.0},
            {"max_filter": 0.25},
        ),
        "bias_relu": full("WithBiasAndRelu", bias, _ONE, _SAME),
        "bias_bytes": full("WithBiasAndRequantize", bias, _EACH, _MADE, _SAME),
        "bias_steps_bytes": full(
            "WithBiasAndRequantize", {"bias": steps}, _EACH, _MADE, _SAME
        ),
        "bias_relu_bytes": full(
            "WithBiasAndReluAndRequantize", bias, _ONE, _MADE, _SAME
        ),
        "deep": deep(""),
        "deep_bias": deep("WithBias", few),
        "deep_bias_relu": deep("WithBiasAndRelu", few),
        "deep_bytes": deep("WithBiasAndReluAndRequantize", few, _MADE),
    }
