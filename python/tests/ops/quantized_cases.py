"""Cases of test_quantized.py (recorded.py writes their values; without oneDNN,
whose kernels round otherwise)."""

import os

import numpy as np

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

PLAIN = {"quint8": np.uint8, "qint8": np.int8, "qint32": np.int32}
RANGES = [(0.5, 3.0), (-3.25, 2.5), (-7.0, 0.0), (-0.001, 0.002), (-900.0, 1234.5)]


def levels(tf, seed, shape, dtype="quint8"):
    plain = PLAIN[dtype]
    info = np.iinfo(plain)
    drawn = np.random.RandomState(seed).randint(info.min, info.max, shape)
    return tf.bitcast(tf.constant(drawn.astype(plain)), getattr(tf, dtype))


def numbers(tf, results):
    """Quantized results as the integers that they are stored as."""
    return [
        tf.bitcast(r, np.dtype(PLAIN[r.dtype.name]).name)
        if r.dtype.name in PLAIN
        else r
        for r in results
    ]


def _pairs():
    return [(a, b) for a in RANGES for b in RANGES[1:4]]


def case_matmul(tf):
    return [
        numbers(
            tf,
            tf.raw_ops.QuantizedMatMul(
                a=levels(tf, 1, (4, 3) if ta else (3, 4)),
                b=levels(tf, 2, (2, 4) if tb else (4, 2)),
                min_a=a[0],
                max_a=a[1],
                min_b=b[0],
                max_b=b[1],
                transpose_a=ta,
                transpose_b=tb,
            ),
        )
        for a, b in _pairs()
        for ta, tb in ((False, False), (True, True))
    ]


def case_conv(tf):
    return [
        numbers(
            tf,
            tf.raw_ops.QuantizedConv2D(
                input=levels(tf, 3, (2, 5, 4, 2)),
                filter=levels(tf, 4, (2, 3, 2, 3)),
                min_input=a[0],
                max_input=a[1],
                min_filter=b[0],
                max_filter=b[1],
                strides=[1, stride, stride, 1],
                padding=padding,
            ),
        )
        for a, b in _pairs()
        for stride, padding in ((1, "SAME"), (2, "VALID"))
    ]


def case_add_and_mul(tf):
    shapes = [
        ((2, 3), (2, 3)),
        ((2, 3), (3,)),
        ((3,), (2, 3)),
        ((), (2, 3)),
        ((3,), (1,)),
    ]
    return [
        numbers(
            tf,
            op(
                x=levels(tf, 5, x),
                y=levels(tf, 6, y),
                min_x=a[0],
                max_x=a[1],
                min_y=b[0],
                max_y=b[1],
            ),
        )
        for op in (tf.raw_ops.QuantizedAdd, tf.raw_ops.QuantizedMul)
        for x, y in shapes
        for a, b in _pairs()
    ]


def case_bias_add(tf):
    return [
        numbers(
            tf,
            tf.raw_ops.QuantizedBiasAdd(
                input=levels(tf, 7, (4, 3), dtype),
                bias=levels(tf, 8, (3,), dtype),
                min_input=a[0],
                max_input=a[1],
                min_bias=b[0],
                max_bias=b[1],
                out_type=tf.qint32,
            ),
        )
        for dtype in ("quint8", "qint8")
        for a, b in _pairs()
    ]


def case_relu(tf):
    return [
        numbers(
            tf,
            op(
                features=levels(tf, 9, (9,), dtype),
                min_features=a[0],
                max_features=a[1],
                out_type=getattr(tf, dtype),
            ),
        )
        for op in (tf.raw_ops.QuantizedRelu, tf.raw_ops.QuantizedRelu6)
        for dtype in ("quint8", "qint32")
        for a in [*RANGES, (-20.0, 30.0), (2.0, 2.0)]
    ]


def case_pools(tf):
    return [
        numbers(
            tf,
            op(
                input=levels(tf, 10, (2, 5, 4, 2), dtype),
                min_input=-1.0,
                max_input=2.0,
                ksize=[1, size, 2, 1],
                strides=[1, 2, 1, 1],
                padding=padding,
            ),
        )
        for op in (tf.raw_ops.QuantizedAvgPool, tf.raw_ops.QuantizedMaxPool)
        for dtype in ("quint8", "qint8")
        for size, padding in ((2, "VALID"), (3, "SAME"))
    ]


def case_concat(tf):
    return [
        numbers(
            tf,
            tf.raw_ops.QuantizedConcat(
                concat_dim=axis,
                values=[levels(tf, 11, (2, 2), dtype), levels(tf, 12, (2, 2), dtype)],
                input_mins=[a[0], b[0]],
                input_maxes=[a[1], b[1]],
            ),
        )
        for dtype in ("quint8", "qint32")
        for axis in (0, 1)
        for a, b in [*_pairs(), (RANGES[0], RANGES[0])]
    ]


def case_reshape(tf):
    return [
        numbers(
            tf,
            tf.raw_ops.QuantizedReshape(
                tensor=levels(tf, 13, (2, 3), dtype),
                shape=[3, -1],
                input_min=minimum,
                input_max=4.0,
            ),
        )
        for dtype in ("quint8", "qint32")
        for minimum in (-1.0, [-2.0])
    ]


def case_batch_norm(tf):
    def call(a, b, scaled):
        inputs = {}
        for i, (name, shape) in enumerate(
            {"t": (2, 2, 1, 3), "m": 3, "v": 3, "beta": 3, "gamma": 3}.items()
        ):
            inputs[name] = levels(tf, 14 + i, shape)
            low, high = (0.0, 4.0) if name == "v" else a if name in "tm" else b
            inputs[name + "_min"], inputs[name + "_max"] = low, high
        return tf.raw_ops.QuantizedBatchNormWithGlobalNormalization(
            **inputs,
            out_type=tf.qint32,
            variance_epsilon=0.01,
            scale_after_normalization=scaled,
        )

    return [
        numbers(tf, call(a, b, scaled)) for a, b in _pairs() for scaled in (True, False)
    ]


def case_instance_norm(tf):
    return [
        numbers(
            tf,
            tf.raw_ops.QuantizedInstanceNorm(
                x=levels(tf, 20, (2, 3, 2, 2)), x_min=a[0], x_max=a[1], **more
            ),
        )
        for a in RANGES
        for more in (
            {},
            {"output_range_given": True, "given_y_min": -1.5, "given_y_max": 2.0},
            {"min_separation": 50.0},
            {"variance_epsilon": 2.0},
        )
    ]


def case_resize(tf):
    def images(dtype):
        if dtype != "float32":
            return levels(tf, 21, (2, 3, 4, 2), dtype)
        drawn = np.random.RandomState(22).randn(2, 3, 4, 2)
        return tf.constant(drawn.astype(np.float32))

    return [
        numbers(
            tf,
            tf.raw_ops.QuantizedResizeBilinear(
                images=images(dtype),
                size=size,
                min=-1.0,
                max=2.0,
                align_corners=align,
                half_pixel_centers=half,
            ),
        )
        for dtype in ("quint8", "qint32", "float32")
        for size in ([5, 3], [2, 7], [1, 1])
        for align, half in ((False, False), (True, False), (False, True))
    ]


def case_requantize(tf):
    def call(dtype, a, b):
        return tf.raw_ops.Requantize(
            input=levels(tf, 23, (20,), "qint32"),
            input_min=a[0],
            input_max=a[1],
            requested_output_min=min(b[0], 0.0),
            requested_output_max=b[1],
            out_type=getattr(tf, dtype),
        )

    return [
        numbers(tf, call(dtype, a, b))
        for dtype in ("quint8", "qint8")
        for a, b in _pairs()
    ]


def case_shrink(tf):
    def call(a, places):
        x = tf.bitcast(levels(tf, 24, (20,), "qint32"), tf.int32)
        return tf.raw_ops.QuantizeDownAndShrinkRange(
            input=tf.bitcast(x // (1 << places), tf.qint32),
            input_min=a[0],
            input_max=a[1],
            out_type=tf.quint8,
        )

    return [numbers(tf, call(a, n)) for a in RANGES for n in (0, 5, 14)]


def case_dequantize_min_first(tf):
    return [
        tf.raw_ops.Dequantize(
            input=levels(tf, 25, (20,), dtype),
            min_range=a[0],
            max_range=a[1],
            mode="MIN_FIRST",
        )
        for dtype in PLAIN
        for a in RANGES
    ]


def case_quantize_min_first(tf):
    def call(dtype, a):
        x = np.random.RandomState(26).uniform(1.2 * a[0], 1.2 * a[1], 20)
        return tf.raw_ops.QuantizeV2(
            input=tf.constant(x.astype(np.float32)),
            min_range=a[0],
            max_range=a[1],
            mode="MIN_FIRST",
            T=getattr(tf, dtype),
        )

    return [numbers(tf, call(dtype, a)) for dtype in PLAIN for a in RANGES]
