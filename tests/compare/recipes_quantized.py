"""Recipes of ops on quantized tensors."""

import numpy as np
from draw import Quantized, Type

RECIPES = {}
_BYTES = ("quint8", "qint8")
_PLAIN = {"quint8": "uint8", "qint8": "int8", "qint32": "int32"}
_WHOLE = {"quint8": (0, 255), "qint8": (-128, 127), "qint32": (-(2**30), 2**30)}


def recipe(ops):
    def register(make):
        RECIPES.update(dict.fromkeys(ops.split(), make))
        return make

    return register


def _levels(d, dtype, shape):
    return Quantized(d.between(_PLAIN[dtype], shape, *_WHOLE[dtype]), dtype)


def _range(d, *names):
    """A range that holds 0, under the names of its ends."""
    low, high = d.uniform(-3, 0), d.uniform(0.2, 3)
    return {
        n: np.asarray(v, "float32") for n, v in zip(names, (low, high), strict=True)
    }


@recipe("QuantizedAdd QuantizedMul")
def pairwise(d, op):
    shape = d.shape(least=1, most=3, empty=0)
    other = d.pick(shape, shape[-1:], ())
    made = {"x": _levels(d, "quint8", shape), "y": _levels(d, "quint8", other)}
    return {**made, **_range(d, "min_x", "max_x"), **_range(d, "min_y", "max_y")}


@recipe("QuantizedMatMul")
def product(d, op):
    m, k, n = d.integer(1, 5), d.integer(1, 5), d.integer(1, 5)
    ta, tb = d.maybe(), d.maybe()
    made = {"a": _levels(d, "quint8", (k, m) if ta else (m, k))}
    made["b"] = _levels(d, "quint8", (n, k) if tb else (k, n))
    made.update(_range(d, "min_a", "max_a"), **_range(d, "min_b", "max_b"))
    return {**made, "transpose_a": ta, "transpose_b": tb}


@recipe("QuantizedConv2D")
def convolution(d, op):
    depth, size = d.integer(1, 3), d.integer(1, 3)
    image = (d.integer(1, 2), d.integer(size, 6), d.integer(size, 6), depth)
    made = {"input": _levels(d, "quint8", image)}
    made["filter"] = _levels(d, "quint8", (size, size, depth, d.integer(1, 3)))
    made.update(_range(d, "min_input", "max_input"))
    made.update(_range(d, "min_filter", "max_filter"))
    step = d.integer(1, 2)
    return {**made, "strides": [1, step, step, 1], "padding": d.pick("SAME", "VALID")}


@recipe("QuantizedBiasAdd")
def bias(d, op):
    shape = d.shape(least=2, most=4, empty=0)
    made = {"input": _levels(d, "quint8", shape)}
    made["bias"] = _levels(d, "quint8", shape[-1:])
    made.update(_range(d, "min_input", "max_input"))
    return {**made, **_range(d, "min_bias", "max_bias"), "out_type": Type("qint32")}


@recipe("QuantizedRelu QuantizedRelu6")
def rectified(d, op):
    made = {"features": _levels(d, "quint8", d.shape())}
    made.update(_range(d, "min_features", "max_features"))
    return {**made, "out_type": Type("quint8")}


@recipe("QuantizedConcat")
def concat(d, op):
    shape = d.shape(least=1, most=3, empty=0)
    axis, n = d.integer(0, len(shape) - 1), d.integer(2, 3)
    made = {"concat_dim": np.asarray(axis, "int32"), "values": []}
    made.update(input_mins=[], input_maxes=[])
    for _ in range(n):
        part = shape[:axis] + (d.integer(1, 3),) + shape[axis + 1 :]
        made["values"].append(_levels(d, "quint8", part))
        ends = _range(d, "low", "high")
        made["input_mins"].append(ends["low"])
        made["input_maxes"].append(ends["high"])
    return made


@recipe("QuantizedReshape")
def reshape(d, op):
    shape = d.shape(least=1)
    made = {"tensor": _levels(d, d.pick("quint8", "qint32"), shape)}
    made["shape"] = np.asarray([shape[i] for i in d.permutation(len(shape))], "int32")
    return {**made, **_range(d, "input_min", "input_max")}


@recipe("QuantizedMaxPool QuantizedAvgPool")
def pool(d, op):
    image = (d.integer(1, 2), d.integer(2, 6), d.integer(2, 6), d.integer(1, 4))
    made = {"input": _levels(d, "quint8", image)}
    made.update(_range(d, "min_input", "max_input"))
    k, step = d.integer(1, 2), d.integer(1, 2)
    made.update(ksize=[1, k, k, 1], strides=[1, step, step, 1])
    return {**made, "padding": d.pick("SAME", "VALID")}


@recipe("QuantizedInstanceNorm")
def instance_norm(d, op):
    image = (d.integer(1, 2), d.integer(2, 5), d.integer(2, 5), d.integer(1, 4))
    made = {"x": _levels(d, "quint8", image), **_range(d, "x_min", "x_max")}
    if d.maybe():
        made.update(output_range_given=True, given_y_min=-2.0, given_y_max=2.0)
    return made


@recipe("QuantizedBatchNormWithGlobalNormalization")
def batch_norm(d, op):
    image = (d.integer(1, 2), d.integer(1, 4), d.integer(1, 4), d.integer(2, 3))
    made = {"t": _levels(d, "quint8", image), **_range(d, "t_min", "t_max")}
    for name in ("m", "v", "beta", "gamma"):
        made[name] = _levels(d, "quint8", image[-1:])
        low, high = (0.5, 2.0) if name == "v" else (-1.0, 2.0)
        made[name + "_min"] = np.asarray(low, "float32")
        made[name + "_max"] = np.asarray(high, "float32")
    made.update(out_type=Type("qint32"), variance_epsilon=0.001)
    return {**made, "scale_after_normalization": d.maybe()}


@recipe("QuantizeDownAndShrinkRange RequantizationRange Requantize")
def narrower(d, op):
    made = {"input": _levels(d, "qint32", d.shape(least=1, empty=0))}
    made.update(_range(d, "input_min", "input_max"))
    if op == "Requantize":
        made.update(_range(d, "requested_output_min", "requested_output_max"))
    return made if op == "RequantizationRange" else {**made, "out_type": Type("quint8")}


@recipe("Dequantize")
def dequantize(d, op):
    dtype = d.pick(*_BYTES, "qint32")
    shape = d.shape(least=1, empty=0)
    made = {"input": _levels(d, dtype, shape), **_range(d, "min_range", "max_range")}
    made["mode"] = d.pick("MIN_COMBINED", "MIN_FIRST", "SCALED")
    if made["mode"] == "SCALED":
        made["narrow_range"] = d.maybe()
    narrow = made["mode"] == "MIN_COMBINED" and d.maybe()
    return {**made, "dtype": Type("bfloat16" if narrow else "float32")}


@recipe("QuantizeV2")
def quantize(d, op):
    made = {
        "input": d.array("float32", d.shape()),
        **_range(d, "min_range", "max_range"),
    }
    made["mode"] = d.pick("MIN_COMBINED", "MIN_FIRST", "SCALED")
    if made["mode"] == "SCALED":
        made["narrow_range"] = d.maybe()
        made["round_mode"] = d.pick("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN")
    if d.maybe():
        made["ensure_minimum_range"] = d.uniform(0.001, 9)
    return {**made, "T": Type(d.pick(*_BYTES, "qint32"))}


@recipe("QuantizeAndDequantizeV3 QuantizeAndDequantizeV4")
def round_trip(d, op):
    dtype, shape = d.pick("float32", "float64"), d.shape(least=1, empty=0)
    axis = d.pick(-1, d.integer(0, len(shape) - 1))
    if shape[axis] == 1:  # of which upstream refuses bounds
        axis = -1
    bounds = () if axis < 0 else (shape[axis],)
    made = {"input": d.array(dtype, shape), "axis": axis}
    made["input_min"] = d.between(dtype, bounds, -3, -0.2)
    made["input_max"] = d.between(dtype, bounds, 0.2, 3)
    bits = d.integer(2, 10)
    made["num_bits"] = np.asarray(bits, "int32") if op.endswith("3") else bits
    # Upstream's fourth version has no bounds of channels.
    given = d.maybe() and (axis < 0 or op.endswith("3"))
    made.update(signed_input=d.maybe(), range_given=given, narrow_range=d.maybe())
    return made


@recipe(
    "FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVarsGradient "
    "FakeQuantWithMinMaxVarsPerChannelGradient"
)
def fake_slopes(d, op):
    shape = d.shape(least=1, empty=0)
    made = {"gradients": d.array("float32", shape), "inputs": d.array("float32", shape)}
    low, high = d.uniform(-3, -0.2), d.uniform(0.2, 3)
    inner = shape[-1:] if "PerChannel" in op else ()
    if "Args" not in op:
        low, high = (np.full(inner, v, "float32") for v in (low, high))
    made.update(min=low, max=high, num_bits=d.integer(2, 16), narrow_range=d.maybe())
    return made


def _uniform(d, prefix, channels, dtype="qint8"):
    """Scales and zero points, one or one a channel, and the attributes beside them."""
    own = channels > 0
    shape = (channels,) if own else ()
    most = 2**31 - 1 if dtype == "qint32" else 127
    return {
        prefix + "scales": d.between("float32", shape, 0.05, 0.5),
        prefix + "zero_points": np.zeros(shape, "int32")
        if dtype == "qint32"
        else d.between("int32", shape, -5, 5),
        prefix + "quantization_min_val": -most - 1,
        prefix + "quantization_max_val": most,
    }


@recipe("UniformQuantize UniformDequantize UniformQuantizedClipByValue")
def uniform(d, op):
    shape = d.shape(least=1, empty=0)
    axis = d.pick(-1, d.integer(0, len(shape) - 1))
    kind = "qint8" if op == "UniformQuantize" else "qint32"
    made = _uniform(d, "", shape[axis] if axis >= 0 else 0, kind)
    made["quantization_axis"] = axis
    if op == "UniformQuantize":
        return {**made, "input": d.array("float32", shape), "Tout": Type("qint8")}
    if op == "UniformDequantize":
        made["input"] = Quantized(d.between("int32", shape, -99, 99), "qint32")
        return {**made, "Tout": Type("float32")}
    made["operand"] = Quantized(d.between("int32", shape, -99, 99), "qint32")
    ends = made["scales"].shape
    made["min"] = Quantized(d.between("int32", ends, -50, 0), "qint32")
    made["max"] = Quantized(d.between("int32", ends, 1, 50), "qint32")
    return made


@recipe("UniformRequantize")
def uniform_again(d, op):
    shape = d.shape(least=1, empty=0)
    axis = d.pick(-1, d.integer(0, len(shape) - 1))
    channels = shape[axis] if axis >= 0 else 0
    made = {"input": Quantized(d.between("int32", shape, -99, 99), "qint32")}
    made.update(_uniform(d, "input_", channels, "qint32"))
    made.update(_uniform(d, "output_", d.pick(0, channels), "qint8"))
    made["input_quantization_axis"] = axis
    made["output_quantization_axis"] = axis if made["output_scales"].ndim else -1
    return {**made, "Tout": Type("qint8")}


@recipe("UniformQuantizedAdd")
def uniform_sum(d, op):
    shape = d.shape(least=1, empty=0)
    made = {}
    for name, size in (("lhs", shape), ("rhs", d.pick(shape, shape[-1:]))):
        made[name] = Quantized(d.between("int32", size, -99, 99), "qint32")
        made.update(_uniform(d, name + "_", 0, "qint32"))
    return {**made, **_uniform(d, "output_", 0, "qint32")}


@recipe("UniformQuantizedDot")
def uniform_product(d, op):
    m, k, n = d.integer(1, 4), d.integer(1, 4), d.integer(1, 4)
    own = d.maybe()
    made = {"lhs": _levels(d, "qint8", (m, k)), "rhs": _levels(d, "qint8", (k, n))}
    made.update(_uniform(d, "lhs_", 0))
    made.update(_uniform(d, "rhs_", n if own else 0))
    made.update(_uniform(d, "output_", n if own else 0, "qint32"))
    axis = 1 if own else -1
    made.update(rhs_quantization_axis=axis, output_quantization_axis=axis)
    return {**made, "Tout": Type("qint32")}
