"""Rows of quantized convolutions in one with what follows them, and of the uniform
family's."""

import numpy as np
import quantized_conv_cases
from rows import formula

# The levels, and their range.
# The levels, and their range.
_FUSED = {
    "relu": (
        (
            "18797 16001 27918 0 28207 32773 0 8229 28080 471 11830 39527 0 2590 37196 0 "
            "0 28711 2177 11732 6463 0 10320 17250 0 304 18180"
        ),
        -132622.125,
        132622.125,
    ),
    "relu_bytes": (
        (
            "74 63 110 0 111 129 0 32 111 2 47 156 0 10 146 0 0 113 9 46 25 0 41 68 0 1 "
            "72"
        ),
        -3.0,
        4.0,
    ),
    "bytes": ("37 31 55", -3.0, 4.0),
    "channels": (
        (
            "12163 5647 27918 -2656 9955 32773 -27323 2904 28080 305 4175 39527 -12103 "
            "914 37196 -16110 -2120 28711 1409 4141 6463 -3805 3642 17250 -6810 107 18180"
        ),
        [-139253.234375, -56364.40234375, -179039.875],
        [139253.234375, 56364.40234375, 179039.875],
    ),
    "bias": (
        (
            "26893 11953 41358 3991 24159 46213 -34131 4181 41520 8567 7782 52967 -10609 "
            "-1458 50636 -16802 -10056 42151 10273 7684 19903 2216 6272 30690 -2428 -3744 "
            "31620"
        ),
        -132622.125,
        132622.125,
    ),
    "bias_channels": (
        (
            "16925 3266 35824 2106 7574 40679 -22561 523 35986 5067 1794 47433 -7341 "
            "-1467 45102 -11348 -4502 36617 6171 1759 14369 958 1261 25156 -2047 -2274 "
            "26086"
        ),
        [-139253.234375, -56364.40234375, -179039.875],
        [139253.234375, 56364.40234375, 179039.875],
    ),
    "bias_signed": (
        (
            "-2768 -1197 -9484 8731 -2011 4203 5151 -1777 2220 7044 4923 -13718 -6494 "
            "-3246 11832 3184 -3946 3448 6085 -3312 527 5045 3054 48 -3269 87 17707"
        ),
        [-139801.46875, -56586.30859375, -179744.734375],
        [139801.46875, 56586.30859375, 179744.734375],
    ),
    "bias_padded": (
        (
            "8096 -4048 13440 -2745 -19432 28032 20779 -24286 40479 13122 -4435 35223 "
            "-18842 4145 17862 8096 -4048 13440 11162 596 15622 26893 11953 41358 3991 "
            "24159 46213 -34131 4181 41520 8096 -4048 13440 26665 19264 1707 8567 7782 "
            "52967 -10609 -1458 50636 -16802 -10056 42151 8096 -4048 13440 11636 1868 "
            "11217 10273 7684 19903 2216 6272 30690 -2428 -3744 31620 8096 -4048 13440 "
            "8096 -4048 13440 8096 -4048 13440 8096 -4048 13440 8096 -4048 13440"
        ),
        -132622.125,
        132622.125,
    ),
    "bias_dilated": (
        (
            "31928 152 21711 30061 -12807 36597 -16442 7335 14034 36408 11828 17880 5289 "
            "12222 40018 -28848 2070 42753 12766 1216 15723 -9 9704 36854 -1831 -9524 "
            "32804"
        ),
        -132622.125,
        132622.125,
    ),
    "bias_uneven": (
        (
            "26893 11953 41358 3991 24159 46213 -34131 4181 41520 8567 7782 52967 -10609 "
            "-1458 50636 -16802 -10056 42151 10273 7684 19903 2216 6272 30690 -2428 -3744 "
            "31620"
        ),
        -124333.234375,
        124333.234375,
    ),
    "bias_relu": (
        (
            "26893 11953 41358 3991 24159 46213 0 4181 41520 8567 7782 52967 0 0 50636 0 "
            "0 42151 10273 7684 19903 2216 6272 30690 0 0 31620"
        ),
        -132622.125,
        132622.125,
    ),
    "bias_bytes": (
        (
            "56 11 119 7 25 127 -75 2 120 17 6 127 -24 -5 127 -38 -15 122 21 6 48 3 4 84 "
            "-7 -8 87"
        ),
        -3.0,
        4.0,
    ),
    "bias_steps_bytes": (
        (
            "41 19 94 -9 33 110 -91 10 94 1 14 127 -40 3 125 -54 -7 96 5 14 22 -13 12 58 "
            "-23 0 61"
        ),
        -3.0,
        4.0,
    ),
    "bias_relu_bytes": (
        (
            "106 47 163 16 95 182 0 16 163 34 31 209 0 0 199 0 0 166 40 30 78 9 25 121 0 "
            "0 124"
        ),
        -3.0,
        4.0,
    ),
    "deep": (
        (
            "1498 -11709 11828 -18180 3139 -3021 12046 -14149 -4562 -21305 -6588 -3006 "
            "6656 -22515 10248 -16668 6688 -1820"
        ),
        -132622.125,
        132622.125,
    ),
    "deep_bias": (
        (
            "9594 -15757 19924 -22228 11235 -7069 20142 -18197 3534 -25353 1508 -7054 "
            "14752 -26563 18344 -20716 14784 -5868"
        ),
        -132622.125,
        132622.125,
    ),
    "deep_bias_relu": (
        "9594 0 19924 0 11235 0 20142 0 3534 0 1508 0 14752 0 18344 0 14784 0",
        -132622.125,
        132622.125,
    ),
    "deep_bytes": ("38 0 78 0 44 0 79 0 14 0 6 0 58 0 72 0 58 0", -3.0, 4.0),
}


@formula(
    "QuantizedConv2DAndRelu QuantizedConv2DAndReluAndRequantize"
    " QuantizedConv2DAndRequantize QuantizedConv2DPerChannel QuantizedConv2DWithBias"
    " QuantizedConv2DWithBiasAndRelu QuantizedConv2DWithBiasAndRequantize"
    " QuantizedConv2DWithBiasAndReluAndRequantize QuantizedDepthwiseConv2D"
    " QuantizedDepthwiseConv2DWithBias QuantizedDepthwiseConv2DWithBiasAndRelu"
    " QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize"
)
def quantized_convolutions_in_one(tf, raw):
    pairs = []
    for name, (op, given) in quantized_conv_cases.cases(tf).items():
        made, least, most = getattr(raw, op)(**given)
        wanted = _FUSED[name]
        made = quantized_conv_cases.plain(tf, made)
        pairs += [
            tf.reshape(made, [-1]),
            np.array(wanted[0].split(), made.dtype.as_numpy_dtype),
            least,
            np.float32(wanted[1]),
            most,
            np.float32(wanted[2]),
        ]
    return pairs


@formula(
    "QuantizedConv2DWithBiasSumAndRelu QuantizedConv2DWithBiasSumAndReluAndRequantize"
    " QuantizedConv2DWithBiasSignedSumAndReluAndRequantize"
)
def quantized_sums_in_one(tf, raw):
    """TensorFlow's own kernels of these end the process; by the rule of the others."""
    conv = quantized_conv_cases
    cases = conv.cases(tf)
    _, given = cases["bias_relu_bytes"]
    draw = np.random.RandomState(1)
    unsigned = draw.randint(0, 255, (1, 3, 3, 3))
    signed = draw.randint(-127, 127, (1, 3, 3, 3))
    image = conv.plain(tf, given["input"]).numpy().astype(np.float64)
    filters = conv.plain(tf, given["filter"]).numpy().astype(np.float64)
    sums = tf.nn.conv2d(image, filters, 1, "SAME").numpy()
    scale = 2.0 / 255 / 127
    real = sums * scale + given["bias"].astype(np.float64)

    def levels(values, step, most):
        return np.clip(np.rint(np.maximum(values, 0) / step), 0, most)

    pairs = []
    for dtype, op, drawn, ends in (
        ("quint8", "Sum", unsigned, (0.0, 3.0)),
        ("qint8", "SignedSum", signed, (-1.0, 3.0)),
    ):
        made, least, most = getattr(
            raw, f"QuantizedConv2DWithBias{op}AndReluAndRequantize"
        )(
            **given,
            summand=conv.levels(tf, drawn, dtype),
            min_summand=ends[0],
            max_summand=ends[1],
        )
        step = 3.0 / (255 if dtype == "quint8" else 127)
        wanted = levels(real + drawn * step, 4.0 / 255, 255)
        pairs += [conv.plain(tf, made), wanted.astype(np.uint8)]
        pairs += [least, np.float32(-3), most, np.float32(4)]
    given = {k: v for k, v in given.items() if "freezed" not in k}
    summand = draw.randn(1, 3, 3, 3).astype(np.float32)
    made, least, most = raw.QuantizedConv2DWithBiasSumAndRelu(**given, summand=summand)
    wanted = levels(real + summand, scale, 2**31 - 1)
    pairs += [conv.plain(tf, made), wanted.astype(np.int32)]
    return [*pairs, most, np.float32(132622.125)]


def _whole(*prefixes):
    bounds = {"lhs": (-128, 127), "rhs": (-127, 127), "output": (-(2**31), 2**31 - 1)}
    names = {}
    for p in prefixes:
        names[f"{p}_quantization_min_val"] = bounds[p][0]
        names[f"{p}_quantization_max_val"] = bounds[p][1]
    return names


def _uniform_drawn():
    draw = np.random.RandomState(1)
    draws = {"lhs": (2, 2, 5, 4), "rhs": (3, 2, 3, 2), "deep": (4, 1, 3, 2)}
    return {k: draw.randint(-127, 127, shape) for k, shape in draws.items()}


def uniform_convolutions_cases(tf):
    """(op, arguments) of what _UNIFORM has the first results of."""
    drawn, qint8 = _uniform_drawn(), "qint8"
    levels = quantized_conv_cases.levels

    def whole(**more):
        return "UniformQuantizedConvolution", {
            "lhs": levels(tf, drawn["lhs"], qint8),
            "rhs": levels(tf, drawn["rhs"], qint8),
            "lhs_scales": 0.5,
            "lhs_zero_points": 3,
            "rhs_scales": 0.25,
            "rhs_zero_points": 0,
            "output_scales": 0.7,
            "output_zero_points": -5,
            "Tout": tf.qint32,
            "padding": "VALID",
            **_whole("lhs", "rhs", "output"),
            **more,
        }

    def hybrid(**more):
        return "UniformQuantizedConvolutionHybrid", {
            "lhs": (drawn["lhs"] / 7).astype(np.float32),
            "rhs": levels(tf, drawn["rhs"], qint8),
            "rhs_scales": 0.25,
            "rhs_zero_points": 0,
            "Tout": tf.float32,
            "padding": "VALID",
            **_whole("rhs"),
            **more,
        }

    each = {
        "rhs_quantization_axis": 0,
        "rhs_scales": [0.25, 0.5, 1.0],
        "rhs_zero_points": [0, 1, 2],
    }
    both = {
        "output_quantization_axis": 1,
        "output_scales": [0.3, 0.5, 1.0],
        "output_zero_points": [0, 1, 2],
    }
    deep = {"rhs": levels(tf, drawn["deep"], qint8), "feature_group_count": 2}
    # Channels last, of the filter too.
    last = {
        "lhs": levels(tf, drawn["lhs"].transpose(0, 2, 3, 1), qint8),
        "rhs": levels(tf, drawn["rhs"].transpose(2, 3, 1, 0), qint8),
        "dimension_numbers": b"\x10\x03\x1a\x02\x01\x02 \x02(\x032\x02\x00\x01@\x03J"
        b"\x02\x01\x02",
    }
    explicit = {"padding": "EXPLICIT", "explicit_padding": [0, 1, 2, 3]}
    batches = {"rhs": levels(tf, np.tile(drawn["deep"], (1, 2, 1, 1)), qint8)}
    matrix = drawn["rhs"].reshape(4, 9)[:, :3]
    rows = {k: v for k, v in hybrid()[1].items() if k != "padding"}
    rows |= {"lhs": rows["lhs"][0, 0], "rhs": levels(tf, matrix, qint8)}
    return [
        whole(),
        whole(padding="SAME", window_strides=[2, 1]),
        whole(**explicit),
        whole(lhs_dilation=[1, 2], rhs_dilation=[2, 1]),
        whole(**batches, batch_group_count=2),
        whole(**deep),
        whole(**each),
        whole(**each, **both),
        whole(**last),
        hybrid(),
        hybrid(**each, padding="SAME", window_strides=[2, 1]),
        hybrid(**deep),
        hybrid(lhs=np.zeros((1, 2, 5, 4), np.float32)),
        ("UniformQuantizedDotHybrid", rows),
        (
            "UniformQuantizedDotHybrid",
            {**rows, **each, "rhs_quantization_axis": 1},
        ),
    ]


def uniform_convolutions_results(tf, raw):
    results = []
    for op, given in uniform_convolutions_cases(tf):
        made = quantized_conv_cases.plain(tf, getattr(raw, op)(**given))
        results.append((list(made.shape), tf.reshape(made, [-1])[:24].numpy()))
    return results


# Shapes, and the first elements.
# Shapes, and the first elements.
_UNIFORM = [
    (
        [2, 3, 3, 3],
        (
            "-688 1458 -336 -3039 37 473 -184 2558 -5738 -2765 -600 -2369 -1365 296 -1932 "
            "3835 -4355 -4413 1253 -83 2560 -7098 -282 4540"
        ),
    ),
    (
        [2, 3, 3, 4],
        (
            "-1148 298 -3832 -1395 -3039 37 473 -3286 -1910 -4475 -2433 -1955 2187 -3293 "
            "179 379 -1365 296 -1932 -2784 85 821 4588 423"
        ),
    ),
    (
        [2, 3, 4, 8],
        (
            "-5 -946 -688 1458 -336 -3452 -5 -5 -5 4113 -3039 37 473 -3286 -5 -5 -5 -5043 "
            "-184 2558 -5738 -3642 -5 -5"
        ),
    ),
    (
        [2, 3, 1, 6],
        (
            "-2222 -593 1706 -1780 -2351 2542 -1695 -499 2426 -264 141 -2846 -5464 -1555 "
            "-1010 277 -631 3821 1541 6650 -3201 -1380 249 3460"
        ),
    ),
    (
        [1, 4, 3, 3],
        (
            "4751 -2306 -513 -3493 -2129 2675 172 6809 2118 -5391 -1976 4097 5079 10645 "
            "5761 -3380 -7561 -7384 1346 5804 -77 1725 -5385 1849"
        ),
    ),
    (
        [2, 4, 3, 3],
        (
            "2848 -141 -1492 -405 -1106 1128 -2880 3708 1623 803 -1693 2056 -912 4533 "
            "3204 -148 -3816 -6393 -2178 -1674 -3513 -171 705 -291"
        ),
    ),
    (
        [2, 3, 3, 3],
        (
            "-688 1458 -336 -3039 37 473 -184 2558 -5738 -5616 -1328 -4847 -2870 375 "
            "-4061 7654 -8847 -9018 4664 -846 9802 -28956 -2001 17364"
        ),
    ),
    (
        [2, 3, 3, 3],
        (
            "-1594 3414 -773 -7079 98 1114 -419 5980 -13377 -7854 -1850 -6778 -4010 534 "
            "-5678 10724 -12377 -12616 3270 -586 6867 -20264 -1395 12160"
        ),
    ),
    (
        [2, 3, 3, 3],
        (
            "-688 -2765 1253 1458 -600 -83 -336 -2369 2560 -3039 -1365 -7098 37 296 -282 "
            "473 -1932 4540 -184 3835 975 2558 -4355 4541"
        ),
    ),
    (
        [2, 3, 3, 3],
        (
            "-149.33783 286.91318 -79.835297 -622.69586 -3.8341739 83.019615 -46.952385 "
            "500.39218 -1156.5233 -564.01349 -134.586 -488.88965 -281.81177 47.179836 "
            "-393.65268 753.15521 -881.92499 -896.90424 244.86723 -15.791597 504.74625 "
            "-1428.0673 -61.184319 903.98773"
        ),
    ),
    (
        [2, 3, 3, 4],
        (
            "-227.15855 61.54174 -762.35077 -284.0863 -622.69586 -3.8341739 83.019615 "
            "-663.89697 -401.09357 -907.72443 -507.02075 -395.73224 809.66052 -1384.3967 "
            "28.073952 113.53054 -595.20673 47.309807 -830.52106 -1140.4393 15.466667 "
            "293.15182 1809.4052 159.34567"
        ),
    ),
    (
        [2, 4, 3, 3],
        (
            "576.39331 -19.268349 -289.87006 -75.318771 -212.89413 229.98544 -568.0426 "
            "748.50873 332.01346 167.04651 -332.20844 417.04764 -175.29973 910.55133 "
            "649.01514 -20.503082 -757.89923 -1273.4006 -442.65213 -345.10815 -711.59668 "
            "-39.024094 133.05884 -62.484035"
        ),
    ),
    (
        [1, 3, 3, 3],
        (
            "0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 "
            "0.0 0.0 0.0 0.0 0.0"
        ),
    ),
    (
        [5, 3],
        (
            "-640.2832 -380.24875 371.59665 -278.89578 -564.04364 237.99663 143.44215 "
            "-5.0470591 -109.35294 -377.15939 -543.3042 92.781517 -602.81207 322.19608 "
            "387.43195"
        ),
    ),
    (
        [5, 3],
        (
            "-640.2832 -758.77814 1493.2639 -278.89578 -1131.2134 939.4823 143.44215 "
            "-21.590197 -483.39609 -377.15939 -1099.8918 317.99216 -602.81207 657.58099 "
            "1602.4829"
        ),
    ),
]


@formula(
    "UniformQuantizedConvolution UniformQuantizedConvolutionHybrid"
    " UniformQuantizedDotHybrid"
)
def uniform_convolutions(tf, raw):
    """The shapes and the first elements that TensorFlow 2.21 gave."""
    pairs = []
    results = uniform_convolutions_results(tf, raw)
    for (shape, made), (wanted_shape, wanted) in zip(results, _UNIFORM, strict=True):
        pairs += [np.array(shape), np.array(wanted_shape)]
        pairs += [tf.constant(made), np.array(wanted.split(), made.dtype)]
    return pairs
