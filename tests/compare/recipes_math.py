"""Recipes of element-wise ops, reductions, segments and products."""

import numpy as np
from draw import COMPLEX, FLOATS, INDEX, INTEGERS, NUMBERS, REALS, WIDE, Type

RECIPES = {}


def recipe(ops):
    def register(make):
        RECIPES.update(dict.fromkeys(ops.split(), make))
        return make

    return register


_COMPLEX_TOO = "Exp Log Sin Cos Tan Sinh Cosh Tanh Sigmoid Sqrt Rsqrt Square Inv "
_COMPLEX_TOO += "Reciprocal Neg Expm1 Log1p Asin Acos Atan Asinh Acosh Atanh Sign"


@recipe(
    _COMPLEX_TOO + " Abs Erf Erfc Erfinv Ndtri Lgamma Digamma Ceil Floor Rint Round "
    "Relu Relu6 Elu Selu Softplus Softsign BesselI0e BesselI1e IsNan IsInf IsFinite"
)
def unary(d, op):
    allowed = [*FLOATS]
    if op in _COMPLEX_TOO.split():
        allowed += COMPLEX
    if op in ("Abs", "Neg", "Sign", "Square", "Relu", "Relu6"):
        allowed += ["int32", "int64"]
    dtype = d.pick(*allowed)
    share = 0.1 if d.maybe(0.3) and dtype not in COMPLEX else 0
    x = d.array(dtype, d.shape(), special=share)
    name = "features" if op in ("Relu", "Relu6", "Elu", "Selu", "Softplus") else "x"
    return {"features" if op == "Softsign" else name: x}


@recipe(
    "BesselI0 BesselI1 BesselJ0 BesselJ1 BesselY0 BesselY1 BesselK0 BesselK1 BesselK0e "
    "BesselK1e Dawsn Expint FresnelCos FresnelSin Spence"
)
def special(d, op):
    low = 0.05 if op[6:7] in ("Y", "K") or op in ("Expint", "Spence") else -12
    return {"x": d.between(d.pick(*WIDE), d.shape(), low, 12)}


@recipe("TanhGrad SigmoidGrad SqrtGrad RsqrtGrad InvGrad ReciprocalGrad")
def slope(d, op):
    dtype, shape = d.pick(*FLOATS, *COMPLEX), d.shape()
    return {"y": d.array(dtype, shape), "dy": d.array(dtype, shape)}


@recipe("ReluGrad Relu6Grad SoftplusGrad SoftsignGrad EluGrad SeluGrad LeakyReluGrad")
def activation_slope(d, op):
    dtype, shape = d.pick(*FLOATS), d.shape()
    name = "outputs" if op in ("EluGrad", "SeluGrad") else "features"
    return {"gradients": d.array(dtype, shape), name: d.array(dtype, shape)}


@recipe("LeakyRelu")
def leaky(d, op):
    return {"features": d.array(d.pick(*FLOATS), d.shape()), "alpha": d.uniform(0, 0.5)}


@recipe(
    "AddV2 Add Sub Mul Maximum Minimum SquaredDifference Div RealDiv DivNoNan MulNoNan "
    "FloorDiv FloorMod TruncateDiv TruncateMod Mod Pow Xdivy Xlogy Xlog1py Atan2 "
    "NextAfter ApproximateEqual"
)
def binary(d, op):
    allowed = list(FLOATS)
    if op in ("AddV2", "Add", "Sub", "Mul", "SquaredDifference", "Div", "Pow"):
        allowed += [*INTEGERS, *COMPLEX]
    elif op in ("Maximum", "Minimum", "FloorDiv", "FloorMod", "TruncateDiv", "Mod"):
        allowed += INTEGERS
    elif op in ("TruncateMod",):
        allowed += ["int32", "int64"]
    elif op in ("DivNoNan", "MulNoNan", "Xdivy", "Xlogy", "Xlog1py", "RealDiv"):
        allowed += COMPLEX
    if op == "NextAfter":
        allowed = WIDE
    dtype, shape = d.pick(*allowed), d.shape()
    special_share = 0.15 if d.maybe(0.3) and dtype in FLOATS else 0
    x = d.array(dtype, shape, special=special_share)
    y = d.array(dtype, d.like(shape), special=special_share)
    if op == "ApproximateEqual":
        return {"x": x, "y": d.array(dtype, shape), "tolerance": d.uniform(0, 1)}
    if op == "NextAfter":
        return {"x1": x, "x2": y}
    if op == "Pow" and dtype in INTEGERS:
        x, y = d.between(dtype, shape, 0, 3), d.between(dtype, shape, 0, 4)
    return {"x": x, "y": y} if d.maybe() else {"x": y, "y": x}


@recipe("Equal NotEqual Less LessEqual Greater GreaterEqual")
def compare(d, op):
    dtype = d.pick(*REALS)
    shape = d.shape()
    x = d.array(dtype, shape, special=0.2 if dtype in FLOATS else 0)
    y = d.array(dtype, d.like(shape))
    if op in ("Equal", "NotEqual") and d.maybe(0.3):
        dtype = d.pick("bool", "string", "complex64")
        x, y = d.array(dtype, shape), d.array(dtype, d.like(shape))
    return {"x": x, "y": y}


@recipe("LogicalAnd LogicalOr")
def logical(d, op):
    shape = d.shape()
    return {"x": d.array("bool", shape), "y": d.array("bool", d.like(shape))}


@recipe("BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift")
def bitwise(d, op):
    dtype, shape = d.pick(*INTEGERS), d.shape()
    low = 0 if op.endswith("Shift") else (0 if dtype[0] == "u" else -9)
    return {"x": d.array(dtype, shape), "y": d.between(dtype, d.like(shape), low, 7)}


@recipe("Invert PopulationCount")
def bits(d, op):
    return {"x": d.array(d.pick(*INTEGERS), d.shape())}


@recipe("Igamma Igammac Zeta Polygamma")
def two_positive(d, op):
    dtype, shape = d.pick(*WIDE), d.shape()
    first = d.between(dtype, shape, 0.3, 8)
    second = d.between(dtype, d.like(shape), 0.3, 8)
    if op == "Zeta":
        return {"x": first + np.asarray(1, dtype), "q": second}
    if op == "Polygamma":
        return {"a": np.floor(first), "x": second}
    return {"a": first, "x": second}


@recipe("Betainc")
def betainc(d, op):
    dtype, shape = d.pick(*WIDE), d.shape()
    a, b = d.between(dtype, shape, 0.3, 6), d.between(dtype, shape, 0.3, 6)
    return {"a": a, "b": b, "x": d.between(dtype, shape, 0.01, 0.99)}


@recipe("Real Imag Angle ComplexAbs Conj")
def parts(d, op):
    x = d.array(d.pick(*COMPLEX), d.shape())
    if op == "Conj":
        return {"input": x}
    wide = Type("float64" if x.dtype == np.complex128 else "float32")
    return {"x" if op == "ComplexAbs" else "input": x, "Tout": wide}


@recipe("Complex")
def complex_of(d, op):
    dtype, shape = d.pick(*WIDE), d.shape()
    wide = Type("complex128" if dtype == "float64" else "complex64")
    real, imag = d.array(dtype, shape), d.array(dtype, d.like(shape))
    return {"real": real, "imag": imag, "Tout": wide}


@recipe("Cast")
def cast(d, op):
    source = d.pick(*NUMBERS, "bool")
    x = d.array(source, d.shape())
    to = d.pick(*NUMBERS, "bool")
    if source not in COMPLEX and to.startswith("u"):
        x = np.abs(x) if source != "bool" else x
    return {"x": x, "DstT": Type(to), "Truncate": d.maybe(0.2)}


@recipe("Select SelectV2")
def select(d, op):
    dtype, shape = d.pick(*NUMBERS, "string", "bool"), d.shape()
    if op == "Select":
        when = shape[:1] if d.maybe(0.3) and shape else shape
        parts = {"condition": d.array("bool", when)}
        return {**parts, "x": d.array(dtype, shape), "y": d.array(dtype, shape)}
    condition = d.array("bool", d.like(shape))
    x, y = d.array(dtype, d.like(shape)), d.array(dtype, shape)
    return {"condition": condition, "t": x, "e": y}


@recipe("ClipByValue")
def clip(d, op):
    dtype, shape = d.pick(*REALS), d.shape()
    one = d.maybe(0.5)
    low = d.between(dtype, () if one else shape, 0, 1)
    high = d.between(dtype, () if one else shape, 2, 4)
    return {"t": d.array(dtype, shape), "clip_value_min": low, "clip_value_max": high}


@recipe("AddN")
def add_n(d, op):
    dtype, shape = d.pick(*NUMBERS), d.shape()
    return {"inputs": [d.array(dtype, shape) for _ in range(d.integer(1, 5))]}


@recipe("Sum Mean Prod Max Min EuclideanNorm")
def reduce(d, op):
    allowed = NUMBERS if op in ("Sum", "Prod", "Mean") else REALS
    dtype = d.pick(*(WIDE if op == "EuclideanNorm" else allowed))
    shape = d.shape(largest=3 if op == "Prod" else 5)
    make = d.distinct if op in ("Max", "Min") and dtype in FLOATS else d.array
    index = d.pick(*INDEX)
    axes = np.asarray(d.axes(len(shape)), index)
    return {"input": make(dtype, shape), "axis": axes, "keep_dims": d.maybe()}


@recipe("Any All")
def reduce_bool(d, op):
    shape = d.shape()
    axes = np.asarray(d.axes(len(shape)), "int32")
    return {"input": d.array("bool", shape), "axis": axes, "keep_dims": d.maybe()}


@recipe("ArgMax ArgMin")
def extreme_place(d, op):
    dtype, shape = d.pick(*REALS, "bool"), d.shape(least=1, empty=0.02)
    axis = np.asarray(d.integer(-len(shape), len(shape) - 1), d.pick(*INDEX))
    out = Type(d.pick(*INDEX))
    return {"input": d.array(dtype, shape), "dimension": axis, "output_type": out}


@recipe("Cumsum Cumprod CumulativeLogsumexp")
def cumulative(d, op):
    dtype = d.pick(*(FLOATS if op[3] == "u" and op.endswith("exp") else NUMBERS))
    shape = d.shape(least=1, largest=4)
    axis = np.asarray(d.integer(-len(shape), len(shape) - 1), d.pick(*INDEX))
    flags = {"exclusive": d.maybe(), "reverse": d.maybe()}
    return {"x": d.array(dtype, shape), "axis": axis, **flags}


@recipe("SegmentSum SegmentMean SegmentProd SegmentMax SegmentMin")
def segment(d, op):
    allowed = FLOATS if op == "SegmentMean" else REALS
    dtype, shape = d.pick(*allowed), d.shape(least=1, most=3)
    make = d.distinct if op[7:] in ("Max", "Min") and dtype in FLOATS else d.array
    ids = np.sort(d.between(d.pick(*INDEX), shape[:1], 0, 4))
    return {"data": make(dtype, shape), "segment_ids": ids}


@recipe("UnsortedSegmentSum UnsortedSegmentProd UnsortedSegmentMax UnsortedSegmentMin")
def unsorted_segment(d, op):
    dtype, shape = d.pick(*REALS), d.shape(least=1, most=3)
    make = d.distinct if op[-3:] in ("Max", "Min") else d.array
    index, count = d.pick(*INDEX), d.integer(1, 6)
    ids = d.between(index, shape[: d.integer(1, len(shape))], -1, count - 1)
    data = make(dtype if dtype in FLOATS else "int32", shape)
    number = np.asarray(count, d.pick(*INDEX))
    return {"data": data, "segment_ids": ids, "num_segments": number}


@recipe(
    "SparseSegmentSum SparseSegmentMean SparseSegmentSqrtN "
    "SparseSegmentSumWithNumSegments SparseSegmentMeanWithNumSegments"
)
def sparse_segment(d, op):
    shape = (d.integer(1, 5), *d.shape(least=0, most=2, empty=0))
    count = d.integer(1, 6)
    ids = np.sort(d.between("int32", (count,), 0, 3))
    indices = d.between(d.pick(*INDEX), (count,), 0, shape[0] - 1)
    made = {"data": d.array(d.pick(*WIDE), shape), "indices": indices}
    made["segment_ids"] = ids
    if op.endswith("Segments"):
        made["num_segments"] = np.asarray(5, "int32")
    return made


@recipe("MatMul BatchMatMulV2 BatchMatMul")
def product(d, op):
    dtype = d.pick(*FLOATS, "int32", "int64", *COMPLEX)
    m, k, n = (d.integer(0 if d.maybe(0.05) else 1, 6) for _ in range(3))
    ta, tb = d.maybe(), d.maybe()
    a, b = (k, m) if ta else (m, k), (n, k) if tb else (k, n)
    if op == "MatMul":
        flags = {"transpose_a": ta, "transpose_b": tb}
        return {"a": d.array(dtype, a), "b": d.array(dtype, b), **flags}
    batch = d.shape(most=2, empty=0)
    other = d.like(batch) if op == "BatchMatMulV2" else batch
    x, y = d.array(dtype, (*batch, *a)), d.array(dtype, (*other, *b))
    return {"x": x, "y": y, "adj_x": ta, "adj_y": tb}


@recipe("Einsum")
def einsum(d, op):
    dtype = d.pick(*WIDE, "complex64")
    size = {c: d.integer(1, 4) for c in "abcdij"}
    equation = d.pick(
        "ij,jc->ic", "aij,ajc->aic", "ij->ji", "ij->", "ii->i", "ij,ij->ij", "i,j->ij",
        "...ij,...jc->...ic", "ab,cd->abcd", "aij,aij->a", "ij,jk->k".replace("k", "c"),
        "iij->ij", "abi,bij->aj",
    )  # fmt: skip
    inputs = []
    for part in equation.split("->")[0].split(","):
        shape = [] if "..." not in part else [2]
        shape += [size[c] for c in part.replace("...", "")]
        inputs.append(d.array(dtype, tuple(shape)))
    return {"inputs": inputs, "equation": equation}


@recipe("Bincount")
def bincount(d, op):
    shape = (d.integer(0, 8),)
    dtype = d.pick("int32", "int64", *WIDE)
    weights = d.array(dtype, shape if d.maybe() else (0,))
    values = d.between("int32", shape, 0, 6)
    return {"arr": values, "size": np.asarray(5, "int32"), "weights": weights}


@recipe("DenseBincount")
def dense_bincount(d, op):
    shape = d.shape(least=1, most=2)
    index = d.pick(*INDEX)
    weights = d.array(d.pick(*WIDE, *INDEX), shape if d.maybe() else (0,))
    made = {"input": d.between(index, shape, 0, 6), "size": np.asarray(5, index)}
    return {**made, "weights": weights, "binary_output": d.maybe(0.3)}


@recipe("Cross")
def cross(d, op):
    shape = (*d.shape(most=2), 3)
    dtype = d.pick(*REALS)
    return {"a": d.array(dtype, shape), "b": d.array(dtype, shape)}


@recipe("Bucketize")
def bucketize(d, op):
    edges = sorted(d.uniform(-3, 3) for _ in range(d.integer(0, 4)))
    return {"input": d.array(d.pick(*WIDE, *INDEX), d.shape()), "boundaries": edges}


@recipe("HistogramFixedWidth")
def histogram(d, op):
    dtype = d.pick(*WIDE, "int32")
    edges = np.asarray([-2, 3], dtype)
    bins = np.asarray(d.integer(1, 6), "int32")
    return {"values": d.array(dtype, d.shape()), "value_range": edges, "nbins": bins}


@recipe("Range")
def range_of(d, op):
    dtype = d.pick("float32", "float64", "int32", "int64", "bfloat16", "float16")
    step = d.between(dtype, (), 1, 3)
    start, limit = d.between(dtype, (), -5, 5), d.between(dtype, (), -5, 20)
    return {"start": start, "limit": limit, "delta": -step if d.maybe(0.2) else step}


@recipe("LinSpace")
def linspace(d, op):
    dtype = d.pick(*WIDE)
    number = np.asarray(d.integer(1, 7), "int32")
    start, stop = d.array(dtype, ()), d.array(dtype, ())
    return {"start": start, "stop": stop, "num": number}


@recipe("FFT IFFT FFT2D IFFT2D FFT3D IFFT3D")
def fourier(d, op):
    least = int(op[-2]) if op.endswith("D") else 1
    return {"input": d.array(d.pick(*COMPLEX), d.shape(least, least + 1, empty=0))}


@recipe("RFFT IRFFT RFFT2D IRFFT2D")
def real_fourier(d, op):
    least = 2 if op.endswith("2D") else 1
    shape = d.shape(least, least + 1, largest=6, empty=0)
    length = np.asarray([d.integer(1, 7) for _ in range(least)], "int32")
    wide = d.maybe(0.3)
    if op[0] == "I":
        x = d.array("complex128" if wide else "complex64", shape)
        real = Type("float64" if wide else "float32")
        return {"input": x, "fft_length": length, "Treal": real}
    out = Type("complex128" if wide else "complex64")
    x = d.array("float64" if wide else "float32", shape)
    return {"input": x, "fft_length": length, "Tcomplex": out}


@recipe("FakeQuantWithMinMaxArgs")
def fake_quant(d, op):
    made = {"inputs": d.array("float32", d.shape()), "min": d.uniform(-3, 0)}
    made["max"] = d.uniform(0.5, 3)
    return {**made, "num_bits": d.integer(2, 16), "narrow_range": d.maybe()}


@recipe("FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(d, op):
    shape = d.shape(least=1)
    inner = (shape[-1],) if op.endswith("Channel") else ()
    low = np.asarray(d.between("float32", inner, -3, 0))
    made = {"inputs": d.array("float32", shape), "min": low}
    made["max"] = np.asarray(d.between("float32", inner, 0.5, 3))
    return {**made, "num_bits": d.integer(2, 16), "narrow_range": d.maybe()}


@recipe("QuantizeAndDequantizeV2")
def quantize_back(d, op):
    dtype = d.pick(*WIDE)
    made = {"input": d.array(dtype, d.shape())}
    made["input_min"] = np.asarray(d.uniform(-3, -0.5), dtype)
    made["input_max"] = np.asarray(d.uniform(0.5, 3), dtype)
    made["round_mode"] = d.pick("HALF_TO_EVEN", "HALF_UP")
    flags = {"signed_input": d.maybe(), "range_given": d.maybe()}
    return {**made, **flags, "num_bits": d.integer(2, 10), "narrow_range": d.maybe()}
