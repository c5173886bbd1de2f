"""Element-wise ops."""

import math

import numpy as np
import headrace as tf
import pytest
from driver import COMPLEX, FLOATS, RECORDED, SIGNED, UNSIGNED, Row, cases, check

REALS = FLOATS + SIGNED + UNSIGNED
SMOOTH = [-2.5, -1.0, -0.3, 0.2, 0.4, 1.1, 3.7]
JUMPS = [-2.5, -0.3, 0.4, 3.7]
UNIT = [-0.9, -0.5, 0.1, 0.25, 0.8]
POSITIVE = [0.1, 0.5, 1.0, 2.5, 30.0]
_vector = np.vectorize


def unary(op, values, want, dtypes=FLOATS, **rest):
    return Row(op, {"x": values}, want, dtypes=dtypes, **rest)


UNARY = [
    unary("Abs", SMOOTH, np.abs),
    unary("Neg", SMOOTH, np.negative, FLOATS + COMPLEX),
    unary("Sign", SMOOTH, np.sign),
    unary("Ceil", JUMPS, np.ceil),
    unary("Floor", JUMPS, np.floor),
    unary("Rint", [0.5, 1.5, -0.5, 2.2], np.rint, gradient=()),
    unary("Round", [0.5, 1.5, -0.5, 2.2], np.rint, gradient=()),
    unary("Round", [0.4, 2.2], np.rint),
    unary("Square", SMOOTH, np.square, FLOATS + COMPLEX + SIGNED),
    unary("Sqrt", POSITIVE, np.sqrt, FLOATS + COMPLEX),
    unary("Rsqrt", POSITIVE, lambda x: 1 / np.sqrt(x), FLOATS + COMPLEX),
    unary("Reciprocal", SMOOTH, lambda x: 1 / x, FLOATS + COMPLEX),
    unary("Inv", SMOOTH, lambda x: 1 / x, FLOATS + COMPLEX),
    unary("Exp", SMOOTH, np.exp, FLOATS + COMPLEX),
    unary("Expm1", SMOOTH, np.expm1, FLOATS + COMPLEX),
    unary("Expm1", [100.0, 89.5, -100.0], np.expm1, ("float32",)),
    unary("Log", POSITIVE, np.log, FLOATS + COMPLEX),
    unary("Log1p", POSITIVE, np.log1p, FLOATS + COMPLEX),
    unary("Sin", SMOOTH, np.sin, FLOATS + COMPLEX),
    unary("Cos", SMOOTH, np.cos, FLOATS + COMPLEX),
    unary("Tan", UNIT, np.tan, FLOATS + COMPLEX),
    unary("Asin", UNIT, np.arcsin, FLOATS + COMPLEX),
    unary("Acos", UNIT, np.arccos, FLOATS + COMPLEX),
    unary("Atan", SMOOTH, np.arctan, FLOATS + COMPLEX),
    unary("Sinh", SMOOTH, np.sinh, FLOATS + COMPLEX),
    unary("Cosh", SMOOTH, np.cosh, FLOATS + COMPLEX),
    unary("Tanh", SMOOTH, np.tanh, FLOATS + COMPLEX),
    unary("Asinh", SMOOTH, np.arcsinh, FLOATS + COMPLEX),
    unary("Acosh", [1.5, 2.0, 30.0], np.arccosh, FLOATS + COMPLEX),
    unary("Atanh", UNIT, np.arctanh, FLOATS + COMPLEX),
    unary("Sigmoid", SMOOTH, lambda x: 1 / (1 + np.exp(-x)), FLOATS + COMPLEX),
    unary("Erf", SMOOTH, _vector(math.erf)),
    unary("Erfc", SMOOTH, _vector(math.erfc)),
    unary("Erfinv", UNIT, RECORDED),
    unary("Ndtri", [0.1, 0.4, 0.8], RECORDED),
    unary("Lgamma", POSITIVE, _vector(math.lgamma)),
    unary("Digamma", POSITIVE, RECORDED),
    unary("IsNan", [1.0, np.nan, np.inf], np.isnan),
    unary("IsInf", [1.0, np.nan, -np.inf], np.isinf),
    unary("IsFinite", [1.0, np.nan, np.inf], np.isfinite),
    unary("Invert", [0, 1, 5], np.invert, SIGNED + UNSIGNED),
]

SPECIAL = [
    unary(op, [0.3, 0.7, 1.5, 3.0, 12.0], RECORDED, ("float32", "float64"))
    for op in [
        "BesselI0e",
        "BesselI1",
        "BesselI1e",
        "BesselJ0",
        "BesselJ1",
        "BesselK0",
        "BesselK0e",
        "BesselK1",
        "BesselK1e",
        "BesselY0",
        "BesselY1",
        "Dawsn",
        "Expint",
        "FresnelCos",
        "FresnelSin",
        "Spence",
    ]
] + [
    unary("BesselI0", [0.1, 0.3, 2.0, 5.0], np.i0, ("float32", "float64"), orders=1),
    Row("Igamma", {"a": [0.5, 2.0, 9.0], "x": [0.3, 4.0, 7.0]}, RECORDED, orders=1),
    Row("Igammac", {"a": [0.5, 2.0, 9.0], "x": [0.3, 4.0, 7.0]}, RECORDED, orders=1),
    Row(
        "Betainc",
        {"a": [0.5, 2.0, 9.0], "b": [0.7, 1.0, 3.0], "x": [0.3, 0.4, 0.7]},
        RECORDED,
        dtypes=("float32", "float64"),
        gradient=("x",),
        orders=1,
    ),
    Row(
        "Zeta",
        {"x": [1.5, 3.0], "q": [0.5, 2.0]},
        RECORDED,
        dtypes=("float32", "float64"),
        gradient=("q",),
    ),
    Row(
        "Polygamma",
        {"a": [1.0, 2.0], "x": [0.5, 2.0]},
        RECORDED,
        dtypes=("float32", "float64"),
        gradient=("x",),
    ),
]

ACTIVATIONS = [
    Row(op, {"features": SMOOTH}, want)
    for op, want in [
        ("Relu", lambda x: np.maximum(x, 0)),
        ("Relu6", lambda x: np.clip(x, 0, 6)),
        ("Elu", lambda x: np.where(x < 0, np.expm1(x), x)),
        ("Selu", RECORDED),
        ("Softplus", lambda x: np.logaddexp(x, 0)),
    ]
] + [
    Row("Softsign", {"features": SMOOTH}, lambda x: x / (1 + np.abs(x)), orders=1),
    Row(
        "LeakyRelu",
        {"features": SMOOTH},
        lambda x: np.where(x > 0, x, x * np.float32(0.3)),
        {"alpha": 0.3},
    ),
]


def binary(op, want, x, y, dtypes=FLOATS, names=("x", "y"), **rest):
    return Row(op, {names[0]: x, names[1]: y}, want, dtypes=dtypes, **rest)


ROW, COLUMN = [[1.0, 2.0, 3.0]], [[1.5], [4.0]]
BINARY = [
    binary("AddV2", np.add, ROW, COLUMN, FLOATS + COMPLEX),
    binary("AddV2", np.add, [1, 2, 100], [3, 4, 100], SIGNED + UNSIGNED),
    binary("Add", np.add, ROW, COLUMN),
    binary("Sub", np.subtract, ROW, COLUMN, FLOATS + COMPLEX),
    binary("Mul", np.multiply, ROW, COLUMN, FLOATS + COMPLEX),
    binary("RealDiv", np.divide, ROW, COLUMN, FLOATS + COMPLEX),
    binary("Div", np.divide, ROW, COLUMN),
    binary("FloorDiv", np.floor_divide, [7, 9], [2, 4], REALS),
    binary("FloorDiv", np.floor_divide, [-7, 7], [2, -2], SIGNED),
    binary("FloorMod", np.mod, [-7, 7], [2, -2], SIGNED),
    binary("TruncateMod", np.fmod, [-7, 7], [2, -2], ("int32", "int64")),
    binary("FloorMod", np.mod, [[7.5, -8.5]], [[2.0], [-3.0]], ("float64",)),
    binary("DivNoNan", lambda x, y: x / y, ROW, COLUMN, FLOATS + COMPLEX),
    binary("DivNoNan", [0.0, 0.5], [1.0, 1.0], [0.0, 2.0], gradient=()),
    binary("MulNoNan", np.multiply, ROW, COLUMN),
    binary("Pow", np.power, ROW, COLUMN, FLOATS + COMPLEX),
    binary("Pow", np.power, [2, 3], [3, 2], SIGNED),
    binary("Maximum", np.maximum, ROW, COLUMN),
    binary("Minimum", np.minimum, ROW, COLUMN),
    binary("SquaredDifference", lambda x, y: (x - y) ** 2, ROW, COLUMN),
    binary("Atan2", np.arctan2, ROW, COLUMN, names=("y", "x")),
    binary("Xlogy", lambda x, y: x * np.log(y), ROW, COLUMN),
    binary("Xlog1py", lambda x, y: x * np.log1p(y), ROW, COLUMN),
    binary("Xdivy", lambda x, y: x / y, ROW, COLUMN),
    binary("Less", np.less, ROW, COLUMN, REALS),
    binary("GreaterEqual", np.greater_equal, ROW, COLUMN, REALS),
    binary("Equal", np.equal, [1, 2], [1, 3], REALS),
    binary("NotEqual", np.not_equal, [1, 2], [1, 3], REALS),
    binary("BitwiseAnd", np.bitwise_and, [5, 6], [3, 3], SIGNED + UNSIGNED),
    binary("LeftShift", np.left_shift, [1, 3], [2, 4], SIGNED + UNSIGNED),
    binary("RightShift", np.right_shift, [16, 3], [2, 1], SIGNED + UNSIGNED),
    binary("AddV2", None, ROW, [1.0, 2.0], error="Incompatible shapes: [1,3] vs. [2]"),
    binary("FloorDiv", None, [1], [0], SIGNED, error="Integer division by zero"),
    binary("Pow", None, [2], [-1], SIGNED, error="negative integer powers"),
]

OTHERS = [
    Row(
        "SelectV2",
        {"condition": [[True], [False]], "t": [1.0, 2.0], "e": [[3.0, 4.0]]},
        np.where,
        fixed=("condition",),
    ),
    Row(
        "ClipByValue",
        {"t": SMOOTH, "clip_value_min": -1.5, "clip_value_max": 1.5},
        np.clip,
        dtypes=("float32", "float64"),
    ),
    Row(
        "ClipByValue",
        {"t": [1.0], "clip_value_min": [0.0, 0.0], "clip_value_max": 2.0},
        dtypes=("float32",),
        error="must be either of the same shape as input, or a scalar",
    ),
    Row("Cast", {"x": [-1.5, 0.0, 2.7]}, lambda x: x.astype("i4"), {"DstT": "int32"}),
    Row("Cast", {"x": [-1.5, 0.0, 2.7]}, lambda x: x != 0, {"DstT": "bool"}),
    Row("Cast", {"x": SMOOTH}, lambda x: x, {"DstT": "float64"}),
    Row(
        "CheckNumerics",
        {"tensor": [1.0, np.nan]},
        attrs={"message": "m"},
        error="m : Tensor had NaN values",
    ),
]


@pytest.mark.parametrize(
    ("row", "dtype"), cases(UNARY + SPECIAL + ACTIVATIONS + BINARY + OTHERS)
)
def test_row(row, dtype):
    check(row, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_ends_of_saturating_functions(dtype):
    inf, nan = float("inf"), float("nan")
    for length in (6, 96):  # short, and in whole vectors
        x = tf.constant([-inf, -100.0, 100.0, inf, nan, 0.0] * (length // 6), dtype)

        def ends(y):
            return tf.cast(y, tf.float64)[:6].numpy().tolist()

        assert ends(tf.tanh(x))[:4] == [-1, -1, 1, 1]
        assert ends(tf.sigmoid(x))[2:4] == [1, 1]
        assert ends(tf.sigmoid(x))[0] == 0 == ends(tf.exp(x))[0]
        assert ends(tf.exp(x))[3] == inf and ends(tf.nn.softplus(x))[3] == inf
        for f in (tf.tanh, tf.sigmoid, tf.exp, tf.nn.softplus, tf.nn.gelu):
            assert np.isnan(ends(f(x))[4])


def test_bessel_y_at_zero():
    # As upstream: in single precision Y1 is not a number there.
    def at_zero(f, dtype):
        return float(f(x=tf.zeros([1], dtype))[0])

    assert at_zero(tf.raw_ops.BesselY0, "float32") == -math.inf
    assert at_zero(tf.raw_ops.BesselY1, "float64") == -math.inf
    assert math.isnan(at_zero(tf.raw_ops.BesselY1, "float32"))


def test_products_of_small_integers_in_wider_ones():
    random = np.random.RandomState(0)
    a, b = random.randint(-100, 100, (3, 4)), random.randint(-100, 100, (4, 2))
    x, y = tf.constant(a, tf.int8), tf.constant(b, tf.int8)
    wide = tf.int32
    np.testing.assert_array_equal(tf.matmul(x, y, output_type=wide), a @ b)
    np.testing.assert_array_equal(
        tf.matmul(x[None], x[None], transpose_b=True, output_type=wide)[0], a @ a.T
    )
    traced = tf.function(lambda: tf.matmul(x, y, output_type=wide))
    np.testing.assert_array_equal(traced(), a @ b)
    np.testing.assert_array_equal(
        tf.matmul(tf.cast(x, tf.uint8), y, output_type=wide), a.astype("u1") @ b
    )


def test_ranges_of_floats_count_in_their_type():
    for k in range(1, 100):
        assert tf.range(0.0, k * 0.1, 0.1).shape == [k]
    assert tf.range(0.1, 1.1, 0.1).shape == tf.range(1.1, 0.1, -0.1).shape == [10]
    half = tf.constant([0, 1, 0.1], tf.float16)
    assert tf.range(half[0], half[1], half[2]).shape == [10]
    assert tf.range(0.0, 0.3, 0.1, tf.float64).shape == [3]


def _slopes_agree(function, x):
    told, measured = tf.test.compute_gradient(function, [tf.constant(x)], delta=1e-6)
    assert np.abs(measured[0]).max() > 0.1
    np.testing.assert_allclose(told[0], measured[0], atol=1e-6)


def test_slopes_of_complex_numbers():
    random = np.random.RandomState(3)
    x = random.randn(3, 2) + 1j * random.randn(3, 2)
    _slopes_agree(tf.sign, x)
    _slopes_agree(lambda x: tf.math.segment_mean(x, [0, 0, 2]), x)
    _slopes_agree(lambda x: tf.norm(x, axis=1), x)
    with tf.GradientTape() as tape:
        zero = tf.Variable([0j])
        y = tf.sign(zero)
    assert tape.gradient(y, zero).numpy().tolist() == [0]


def test_euclidean_norms_of_complex_numbers_are_complex():
    x = tf.constant([[3 + 4j, 0], [0, 12j]], tf.complex64)
    made = tf.norm(x, axis=1)
    assert made.dtype == tf.complex64
    assert made.numpy().tolist() == [5, 12]
    assert tf.norm(x, ord="fro", axis=[0, 1]).numpy() == 13
    for ord in (1, 3, np.inf):
        assert tf.norm(x, ord=ord).dtype == tf.float32
    unit, size = tf.linalg.normalize(x, axis=1)
    assert unit.dtype == size.dtype == tf.complex64
    np.testing.assert_allclose(unit[0], [0.6 + 0.8j, 0], rtol=1e-6)
