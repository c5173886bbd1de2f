"""Recipes of neural network ops."""

import numpy as np
from draw import FLOATS, INDEX, REALS, WIDE

RECIPES = {}


def recipe(ops):
    def register(make):
        RECIPES.update(dict.fromkeys(ops.split(), make))
        return make

    return register


@recipe("Softmax LogSoftmax")
def softmax(d, op):
    return {"logits": d.array(d.pick(*FLOATS), d.shape(least=1))}


@recipe("SoftmaxCrossEntropyWithLogits")
def cross_entropy(d, op):
    dtype, shape = d.pick(*FLOATS), d.shape(least=2, most=2)
    labels = d.between(dtype, shape, 0, 1)
    return {"features": d.array(dtype, shape), "labels": labels}


@recipe("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(d, op):
    shape = d.shape(least=2, most=2, empty=0)
    labels = d.between(d.pick(*INDEX), shape[:1], 0, shape[1] - 1)
    return {"features": d.array(d.pick(*FLOATS), shape), "labels": labels}


@recipe("BiasAdd")
def bias_add(d, op):
    shape, dtype = d.shape(least=2, most=5), d.pick(*REALS[:6])
    first = d.maybe() and len(shape) > 2
    made = {"value": d.array(dtype, shape)}
    made["bias"] = d.array(dtype, (shape[1] if first else shape[-1],))
    return {**made, "data_format": "NCHW" if first else "NHWC"}


@recipe("BiasAddGrad")
def bias_add_grad(d, op):
    shape = d.shape(least=2, most=4)
    return {"out_backprop": d.array(d.pick(*WIDE), shape), "data_format": "NHWC"}


def _windows(d, size, kernel):
    """Strides, dilations and padding that fit."""
    stride, dilation = d.integer(1, 3), d.integer(1, 2)
    stride = 1 if dilation > 1 else stride
    same = d.maybe() or (kernel - 1) * dilation + 1 > size
    return stride, dilation, "SAME" if same else "VALID"


@recipe("Conv2D")
def conv2d(d, op):
    size, kernel, inner = d.integer(3, 7), d.integer(1, 3), d.integer(1, 3)
    stride, dilation, padding = _windows(d, size, kernel)
    dtype = d.pick(*WIDE, "bfloat16", "float16")
    made = {"input": d.array(dtype, (2, size, size + 1, inner))}
    made["filter"] = d.array(dtype, (kernel, d.integer(1, 3), inner, d.integer(1, 3)))
    made["strides"], made["dilations"] = (
        [1, stride, stride, 1],
        [1, dilation, dilation, 1],
    )
    if d.maybe(0.2):
        made["explicit_paddings"] = [0, 0, 1, 0, 2, 1, 0, 0]
        padding = "EXPLICIT"
    if d.maybe(0.1):
        made["data_format"] = "NCHW"
    return {**made, "padding": padding}


@recipe("DepthwiseConv2dNative")
def depthwise(d, op):
    size, kernel, inner = d.integer(3, 7), d.integer(1, 3), d.integer(1, 3)
    stride, _, padding = _windows(d, size, kernel)
    dtype = d.pick(*WIDE)
    made = {"input": d.array(dtype, (2, size, size, inner))}
    made["filter"] = d.array(dtype, (kernel, kernel, inner, d.integer(1, 3)))
    return {**made, "strides": [1, stride, stride, 1], "padding": padding}


@recipe("Conv3D")
def conv3d(d, op):
    size, inner, dtype = d.integer(3, 5), d.integer(1, 2), d.pick(*WIDE)
    stride = d.integer(1, 2)
    made = {"input": d.array(dtype, (1, size, size, size, inner))}
    made["filter"] = d.array(dtype, (2, d.integer(1, 3), 2, inner, d.integer(1, 3)))
    return {
        **made,
        "strides": [1, stride, stride, stride, 1],
        "padding": d.pick("SAME", "VALID"),
    }


@recipe("Conv2DBackpropInput")
def conv_back(d, op):
    size, kernel, inner, out = (
        d.integer(3, 6),
        d.integer(1, 3),
        d.integer(1, 3),
        d.integer(1, 3),
    )
    stride, dtype = d.integer(1, 2), d.pick(*WIDE)
    small = -(-size // stride)
    made = {"input_sizes": np.asarray([2, size, size, inner], "int32")}
    made["filter"] = d.array(dtype, (kernel, kernel, inner, out))
    made["out_backprop"] = d.array(dtype, (2, small, small, out))
    return {**made, "strides": [1, stride, stride, 1], "padding": "SAME"}


@recipe("Dilation2D")
def dilation(d, op):
    size, kernel, inner, dtype = (
        d.integer(4, 7),
        d.integer(1, 3),
        d.integer(1, 3),
        d.pick(*WIDE),
    )
    stride, rate = d.integer(1, 2), d.integer(1, 2)
    made = {"input": d.distinct(dtype, (2, size, size, inner))}
    made["filter"] = d.array(dtype, (kernel, kernel, inner))
    made.update(strides=[1, stride, stride, 1], rates=[1, rate, rate, 1])
    return {**made, "padding": d.pick("SAME", "VALID")}


@recipe("MaxPool AvgPool MaxPoolWithArgmax")
def pool(d, op):
    size, window, dtype = d.integer(3, 7), d.integer(1, 3), d.pick(*FLOATS)
    stride = d.integer(1, 3)
    x = d.distinct(dtype, (2, size, size, d.integer(1, 3)))
    made = {"value" if op == "AvgPool" else "input": x, "ksize": [1, window, window, 1]}
    return {
        **made,
        "strides": [1, stride, stride, 1],
        "padding": d.pick("SAME", "VALID"),
    }


@recipe("MaxPool3D AvgPool3D")
def pool3d(d, op):
    size, window = d.integer(3, 5), d.integer(1, 3)
    stride, dtype = d.integer(1, 2), "float32"
    made = {"input": d.distinct(dtype, (2, size, size, size, 2))}
    made["ksize"] = [1, window, window, window, 1]
    return {
        **made,
        "strides": [1, stride, stride, stride, 1],
        "padding": d.pick("SAME", "VALID"),
    }


@recipe("LRN")
def lrn(d, op):
    made = {
        "input": d.array(
            d.pick("float32", "bfloat16", "float16"), (2, 3, 3, d.integer(1, 7))
        )
    }
    made.update(depth_radius=d.integer(1, 4), bias=d.uniform(0.5, 2))
    return {**made, "alpha": d.uniform(0.1, 1), "beta": d.uniform(0.3, 1)}


@recipe("FusedBatchNormV3")
def batch_norm(d, op):
    channels, training = d.integer(1, 4), d.maybe()
    made = {"x": d.array(d.pick("float32", "bfloat16", "float16"), (2, 3, 3, channels))}
    made["scale"], made["offset"] = (d.array("float32", (channels,)) for _ in range(2))
    inner = () if training else (channels,)
    made["mean"] = d.array("float32", inner or (0,))
    made["variance"] = np.abs(d.array("float32", inner or (0,)))
    made.update(epsilon=d.uniform(1e-3, 0.1), is_training=training)
    return made


@recipe("LSTMBlockCell")
def lstm_cell(d, op):
    batch, inputs, cells = d.integer(1, 3), d.integer(1, 3), d.integer(1, 3)
    made = {"x": d.array("float32", (batch, inputs))}
    made["cs_prev"], made["h_prev"] = (
        d.array("float32", (batch, cells)) for _ in range(2)
    )
    made["w"] = d.array("float32", (inputs + cells, 4 * cells))
    for name in ("wci", "wcf", "wco"):
        made[name] = d.array("float32", (cells,))
    made["b"] = d.array("float32", (4 * cells,))
    made.update(forget_bias=d.uniform(0, 1), use_peephole=d.maybe())
    return {**made, "cell_clip": d.pick(-1.0, 3.0, 0.5)}


@recipe("BlockLSTM BlockLSTMV2")
def block_lstm(d, op):
    steps, batch, inputs, cells = (d.integer(1, 3) for _ in range(4))
    # Upstream leaves results behind the end unset.
    made = {"seq_len_max": np.asarray(steps, "int64")}
    made["x"] = d.array("float32", (steps, batch, inputs))
    made["cs_prev"], made["h_prev"] = (
        d.array("float32", (batch, cells)) for _ in range(2)
    )
    made["w"] = d.array("float32", (inputs + cells, 4 * cells))
    for name in ("wci", "wcf", "wco"):
        made[name] = d.array("float32", (cells,))
    made["b"] = d.array("float32", (4 * cells,))
    made.update(use_peephole=d.maybe(), cell_clip=d.pick(0.0, 3.0, 0.5))
    return made if op[-1] == "2" else {**made, "forget_bias": d.uniform(0, 1)}


@recipe("GRUBlockCell")
def gru_cell(d, op):
    batch, inputs, cells = d.integer(1, 3), d.integer(1, 3), d.integer(1, 3)
    made = {
        "x": d.array("float32", (batch, inputs)),
        "h_prev": d.array("float32", (batch, cells)),
    }
    made["w_ru"] = d.array("float32", (inputs + cells, 2 * cells))
    made["w_c"] = d.array("float32", (inputs + cells, cells))
    return {
        **made,
        "b_ru": d.array("float32", (2 * cells,)),
        "b_c": d.array("float32", (cells,)),
    }


@recipe("CTCLoss")
def ctc(d, op):
    times, batch, classes = d.integer(3, 6), d.integer(1, 3), d.integer(3, 5)
    sizes = [d.integer(0 if d.maybe(0.1) else 1, 2) for _ in range(batch)]
    places = [[b, i] for b, n in enumerate(sizes) for i in range(n)]
    made = {"inputs": d.array(d.pick(*WIDE), (times, batch, classes))}
    made["labels_indices"] = np.asarray(places, "int64").reshape(-1, 2)
    made["labels_values"] = d.between("int32", (len(places),), 0, classes - 2)
    made["sequence_length"] = d.between("int32", (batch,), 2, times)
    made["ctc_merge_repeated"] = d.maybe(0.7)
    return {**made, "ignore_longer_outputs_than_inputs": d.maybe(0.7)}


@recipe("CTCGreedyDecoder CTCBeamSearchDecoder")
def ctc_decode(d, op):
    times, batch, classes = d.integer(2, 5), d.integer(1, 3), d.integer(2, 5)
    made = {"inputs": d.array("float32", (times, batch, classes))}
    made["sequence_length"] = d.between("int32", (batch,), 1, times)
    if op == "CTCBeamSearchDecoder":
        made.update(beam_width=d.integer(2, 6), top_paths=d.integer(1, 2))
    return {**made, "merge_repeated": d.maybe()}


@recipe("NthElement")
def nth(d, op):
    shape = d.shape(least=1, most=3, empty=0)
    n = np.asarray(d.integer(0, shape[-1] - 1), "int32")
    return {"input": d.distinct(d.pick(*WIDE), shape), "n": n, "reverse": d.maybe()}


@recipe("Softplus")
def softplus(d, op):
    return {"features": d.array(d.pick(*FLOATS), d.shape(), scale=10)}
