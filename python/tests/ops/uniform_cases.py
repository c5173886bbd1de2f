"""Cases of test_uniform.py (recorded.py writes their values)."""

import itertools

import numpy as np

BYTES = (-128, 127)
WORDS = (-(2**31), 2**31 - 1)
BOUNDS = {"qint8": BYTES, "quint8": (0, 255), "qint32": WORDS}
PLAIN = {"qint8": np.int8, "quint8": np.uint8, "qint32": np.int32}


def stored(tf, value, dtype):
    return tf.bitcast(tf.constant(np.asarray(value, PLAIN[dtype])), getattr(tf, dtype))


def plain(tf, value):
    return tf.bitcast(value, np.dtype(PLAIN[value.dtype.name]).name)


def drawn(seed, low, high, shape):
    return np.random.RandomState(seed).randint(low, high, shape)


def params(seed, axis, shape):
    """Scales and zero points for a tensor of that shape."""
    random = np.random.RandomState(seed)
    size = () if axis < 0 else shape[axis]
    scales = np.asarray(random.uniform(0.01, 2, size), np.float32)
    return scales, np.asarray(random.randint(-20, 20, size), np.int32)


def bounds(prefix, axis, low, high):
    return {
        f"{prefix}quantization_axis": axis,
        f"{prefix}quantization_min_val": low,
        f"{prefix}quantization_max_val": high,
    }


def case_quantize(tf):
    def call(axis, dtype, low, high):
        scales, zeros = params(1, axis, (4, 5))
        x = np.random.RandomState(2).randn(4, 5).astype(np.float32) * 30
        x[0, :2] = scales.flat[0] * np.float32([2.5, -2.5])
        return tf.raw_ops.UniformQuantize(
            input=x,
            scales=scales,
            zero_points=zeros,
            Tout=getattr(tf, dtype),
            **bounds("", axis, low, high),
        )

    return [
        plain(tf, call(axis, dtype, *limits))
        for axis in (-1, 0, 1)
        for dtype in PLAIN
        for limits in (BOUNDS[dtype], (10, 60))
    ]


def case_dequantize(tf):
    def call(axis, dtype):
        scales, zeros = params(3, axis, (4, 5))
        return tf.raw_ops.UniformDequantize(
            input=stored(tf, drawn(4, *BOUNDS[dtype], (4, 5)), dtype),
            scales=scales,
            zero_points=zeros,
            Tout=tf.float32,
            **bounds("", axis, *BOUNDS[dtype]),
        )

    return [call(axis, dtype) for axis in (-1, 0, 1) for dtype in PLAIN]


def case_requantize(tf):
    def call(dtype, axis, to):
        scales, zeros = params(5, axis, (4, 5))
        to_scales, to_zeros = params(6, to, (4, 5))
        limits = BYTES if dtype == "qint8" else (-9000, 9000)
        return tf.raw_ops.UniformRequantize(
            input=stored(tf, drawn(7, *limits, (4, 5)), dtype),
            input_scales=scales,
            input_zero_points=zeros,
            output_scales=to_scales,
            output_zero_points=to_zeros,
            Tout=tf.qint8,
            **bounds("input_", axis, *BOUNDS[dtype]),
            **bounds("output_", to, -100, 90),
        )

    axes = [(-1, -1), (0, -1), (1, -1), (-1, 0), (0, 0), (1, 1)]
    return [
        plain(tf, call(dtype, axis, to))
        for dtype in ("qint8", "qint32")
        for axis, to in axes
    ]


def case_dot(tf):
    def call(rhs_axis, axis):
        pairs = {
            "lhs": params(8, -1, ()),
            "rhs": params(9, rhs_axis, (4, 5)),
            "output": params(10, axis, (3, 5)),
        }
        inputs = {}
        for name, (scales, zeros) in pairs.items():
            inputs[name + "_scales"], inputs[name + "_zero_points"] = scales, zeros
        return tf.raw_ops.UniformQuantizedDot(
            lhs=stored(tf, drawn(11, *BYTES, (3, 4)), "qint8"),
            rhs=stored(tf, drawn(12, *BYTES, (4, 5)), "qint8"),
            Tout=tf.qint32,
            **inputs,
            **bounds("lhs_", -1, *BYTES),
            **bounds("rhs_", rhs_axis, *BYTES),
            **bounds("output_", axis, -90000, 80000),
        )

    return [plain(tf, call(*axes)) for axes in ((-1, -1), (1, -1), (1, 1))]


def case_add(tf):
    def call(axis, shape):
        rhs_axis = axis if axis < 0 else axis + len(shape) - 2
        pairs = {
            "lhs": params(13, axis, (4, 5)),
            "rhs": params(14, rhs_axis, shape),
            "output": params(15, axis, (4, 5)),
        }
        inputs = {}
        for name, (scales, zeros) in pairs.items():
            inputs[name + "_scales"], inputs[name + "_zero_points"] = scales, zeros
        return tf.raw_ops.UniformQuantizedAdd(
            lhs=stored(tf, drawn(16, -5000, 5000, (4, 5)), "qint32"),
            rhs=stored(tf, drawn(17, -5000, 5000, shape), "qint32"),
            **inputs,
            **bounds("lhs_", axis, *WORDS),
            **bounds("rhs_", rhs_axis, *WORDS),
            **bounds("output_", axis, -9000, 8000),
        )

    some = [(-1, (4, 5)), (0, (4, 5)), (1, (4, 5)), (1, (5,)), (-1, (5,)), (-1, (4, 1))]
    return [plain(tf, call(axis, shape)) for axis, shape in some]


def case_clip(tf):
    def call(axis):
        scales, zeros = params(18, axis, (4, 5))
        return tf.raw_ops.UniformQuantizedClipByValue(
            operand=stored(tf, drawn(19, -5000, 5000, (4, 5)), "qint32"),
            min=stored(tf, drawn(20, -4000, 0, scales.shape), "qint32"),
            max=stored(tf, drawn(21, 0, 4000, scales.shape), "qint32"),
            scales=scales,
            zero_points=zeros,
            **bounds("", axis, *WORDS),
        )

    return [plain(tf, call(axis)) for axis in (-1, 0, 1)]


def case_refused(tf):
    """How each goes wrong, or does not."""

    def outcome(axis, scales, zeros):
        try:
            made = tf.raw_ops.UniformQuantize(
                input=np.ones((2, 3), np.float32),
                scales=np.ones(scales, np.float32),
                zero_points=np.zeros(zeros, np.int32),
                Tout=tf.qint8,
                **bounds("", axis, *BYTES),
            )
        except tf.errors.OpError as error:
            return type(error).__name__
        return str(plain(tf, made).numpy().tolist())

    shapes = [(), (1,), (2,), (3,), (2, 3)]
    return [
        tf.constant(outcome(axis, scales, zeros))
        for axis in (-2, -1, 0, 1, 2)
        for scales, zeros in itertools.product(shapes, shapes)
    ]
