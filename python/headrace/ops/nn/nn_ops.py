"""Neural networks: activations, convolutions, pooling, normalisation."""

import functools

import numpy as np

from headrace._load import _headrace, raw
from headrace.context import errors, strategies
from headrace.context.errors import InvalidArgumentError
from headrace.framework import conversion, dtypes, execution
from headrace.framework.name_scopes import composite
from headrace.framework.support import signatures
from headrace.ops import (
    array_ops,
    axis_moves,
    check_ops,
    elementwise_ops,
    math_ops,
    reduction_ops,
)
from headrace.ops.faces import add_faces
from headrace.ops.nn.convolution_ops import CHANNELS_LAST, padding_of, sizes_of
from headrace.ops.random import random_ops, stateless_random_ops

add_faces(
    globals(),
    """
approx_top_k ApproxTopK(input, k, reduction_dimension=-1, recall_target=0.95,
        is_max_k=True, reduction_input_size_override=-1, aggregate_to_topk=True, name=None)
(features, name=None) Relu Relu6 Elu Selu Softplus Softsign
_gelu_erf=gelu _GeluErf(x)
_gelu_tanh=gelu _GeluTanh(x)
_silu=silu _Silu(x)
l2_loss L2Loss(t, name=None)
_leaky_relu=leaky_relu LeakyRelu(features, alpha=0.2, name=None)
_softmax=softmax Softmax(logits, name=None)
_log_softmax=log_softmax LogSoftmax(logits, name=None)
local_response_normalization LRN(input, depth_radius=5, bias=1, alpha=1, beta=0.5,
        name=None)
    Divided by the squares of neighbouring channels.
""",
)
tanh = elementwise_ops.tanh
sigmoid = elementwise_ops.sigmoid


def _tensor(x):
    return x if isinstance(x, _headrace.Tensor) else conversion.convert_to_tensor(x)


def leaky_relu(features, alpha=0.2, name=None):
    """x where it is positive, alpha * x elsewhere."""
    features = _tensor(features)
    if features.dtype.is_integer:
        features = math_ops.cast(features, dtypes.float32)
    if isinstance(alpha, _headrace.Tensor):
        alpha = float(alpha)
    return _leaky_relu(features, alpha, name)


@composite("CRelu")
def crelu(features, axis=-1, name=None):
    """relu of the features and of their negatives, side by side."""
    features = _tensor(features)
    return relu(array_ops.concat([features, -features], axis), name)


@composite("Gelu")
def gelu(features, approximate=False, name=None):
    """x times the normal distribution's function at x."""
    x = _tensor(features)
    if not x.dtype.is_floating:
        raise ValueError(
            "`features.dtype` must be a floating point tensor.Received:"
            f"features.dtype={x.dtype!r}"
        )
    if _headrace.is_eager():
        return (_gelu_tanh if approximate else _gelu_erf)(x)
    half = conversion.to_tensor(0.5, x.dtype)
    one = conversion.to_tensor(1.0, x.dtype)
    if approximate:
        coefficient = conversion.to_tensor(0.044715, x.dtype)
        scale = conversion.to_tensor(0.7978845608028654, x.dtype)
        cube = x * x * x
        return half * x * (one + tanh(scale * (x + coefficient * cube)))
    root = conversion.to_tensor(1.4142135623730951, x.dtype)
    return half * x * (one + elementwise_ops.erf(x / root))


def _is_one(beta):
    return isinstance(beta, (int, float)) and beta == 1


def silu(features, beta=1.0):
    """x * sigmoid(beta * x)."""
    x = _tensor(features)
    if _headrace.is_eager() and x.dtype.is_floating and _is_one(beta):
        return _silu(x)
    beta = conversion.convert_to_tensor(beta, dtype=x.dtype)
    return x * sigmoid(beta * x)


swish = silu


def _along(logits, axis, function, name):
    """`function`, made for the last dimension, along another one."""
    logits = _tensor(logits)
    rank = logits._rank()
    if axis is None or axis == -1 or (rank and axis == rank - 1):
        return function(logits, name)
    if rank is not None and not -rank <= axis < rank:
        raise errors.InvalidArgumentError._of(
            f"`dim` must be in the range [{-rank}, {rank}) where {rank} is the number "
            f"of dimensions in the input. Received: dim={axis}"
        )
    moved, back = axis_moves.with_axis_last(logits, axis)
    return back(function(moved, None), name)


def softmax(logits, axis=None, name=None):
    """exp(x) / sum(exp(x)) along `axis` (the last by default)."""
    return _along(logits, axis, _softmax, name)


def log_softmax(logits, axis=None, name=None):
    """log(softmax(x)), without overflow."""
    return _along(logits, axis, _log_softmax, name)


def bias_add(value, bias, data_format=None, name=None):
    """A vector added along the channels."""
    if data_format is not None:
        if data_format.startswith("NC"):
            data_format = "NCHW"
        elif data_format.startswith("N") and data_format.endswith("C"):
            data_format = "NHWC"
        else:
            raise ValueError(
                "`data_format` must be of the form `N...C` or `NC...`. "
                f"Received: data_format={data_format}"
            )
    return raw.BiasAdd(value, bias, data_format=data_format or "NHWC", name=name)


_POOLED = {"Max": "largest value", "Avg": "mean"}


def _pool(op, n, channels_first):
    default = "NHWC" if n < 3 else "NDHWC"

    def pool(input, ksize, strides, padding, data_format=default, name=None):
        first = channels_first == data_format
        channel = 1 if first else n + 1
        explicit = {}
        if not isinstance(padding, str):
            if data_format == "NCHW_VECT_C":
                raise ValueError(
                    f"`data_format={data_format!r}` is not supported with explicit "
                    f"padding. Received: padding={padding}"
                )
            if op == "MaxPool":
                padding, pads = padding_of(padding, n)
                explicit = {"explicit_paddings": pads}
            else:
                of = op if n < 3 else f"an input tensor of rank {n + 2}"
                raise ValueError(
                    f"Explicit padding is not supported with {of}. Received: "
                    f"padding={padding}"
                )
        if name is None and op == "MaxPool" and not _headrace.is_eager():
            name = "MaxPool2d"
        return _headrace.raw_op(op)(
            **{"value" if op.startswith("Avg") and n < 3 else "input": input},
            ksize=sizes_of(ksize, n, channel, "ksize"),
            strides=sizes_of(strides, n, channel, "strides"),
            padding=padding,
            data_format=data_format or default,
            name=name,
            **explicit,
        )

    layout = "height, width" if n == 2 else "depth, height, width"
    pads = ", or a pair (before, after) a dimension" if op == "MaxPool" else ""
    pool.__doc__ = f"""The {_POOLED[op[:3]]} of windows of [batch, {layout}, channels].

    `ksize` and `strides` are an int, {n} ints, or {n + 2} for all dimensions.
    `padding` is "SAME" or "VALID"{pads};
    what it adds does not count. `data_format` may be "{channels_first}".
    """
    return pool


max_pool2d = _pool("MaxPool", 2, "NCHW")
avg_pool2d = _pool("AvgPool", 2, "NCHW")
max_pool3d = _pool("MaxPool3D", 3, "NCDHW")
avg_pool3d = _pool("AvgPool3D", 3, "NCDHW")


def _pool1d(pool2d, what):
    def pool(input, ksize, strides, padding, data_format="NWC", name=None):
        first = data_format == "NCW"
        axis = 2 if first else 1

        def spread(value):
            items = [value] if isinstance(value, int) else list(value)
            if len(items) == 3:
                items = [items[2 if first else 1]]
            return [1, items[0]]

        if not isinstance(padding, str):
            padding_of(padding, 1)
            padding = [*padding[:axis], [0, 0], *padding[axis:]]
        out = pool2d(
            array_ops.expand_dims(input, axis),
            spread(ksize),
            spread(strides),
            padding,
            "NCHW" if first else "NHWC",
            name,
        )
        return array_ops.squeeze(out, [axis])

    pool.__doc__ = f"""The {what} of each window of [batch, width, channels].

    `ksize` and `strides` are an int, or 3 for all dimensions. `padding` is "SAME" or
    "VALID". `data_format` may be "NCW": [batch, channels, width].
    """
    return pool


max_pool1d = _pool1d(max_pool2d, _POOLED["Max"])
avg_pool1d = _pool1d(avg_pool2d, _POOLED["Avg"])


def _by_rank(one, two, three, what):
    def pool(input, ksize, strides, padding, data_format=None, name=None):
        input = _tensor(input)
        n = (input.shape.rank or 4) - 2
        if n not in (1, 2, 3):
            raise ValueError(
                f"`input.shape.rank` must be 3, 4 or 5. Received: "
                f"input.shape={input.shape} of rank {input.shape.rank}."
            )
        data_format = data_format or CHANNELS_LAST[n - 1]
        return (one, two, three)[n - 1](
            input, ksize, strides, padding, data_format, name
        )

    pool.__doc__ = f"""The {what} of each window of 1, 2 or 3 dimensions of space.

    The input's rank, 3 to 5 (4 where it is unknown), says how many; ValueError for
    others. The arguments are those of the pools of that rank, as max_pool2d has them.
    """
    return pool


max_pool = _by_rank(max_pool1d, max_pool2d, max_pool3d, _POOLED["Max"])
avg_pool = _by_rank(avg_pool1d, avg_pool2d, avg_pool3d, _POOLED["Avg"])


def pool(
    input,
    window_shape,
    pooling_type,
    strides=None,
    padding="VALID",
    data_format=None,
    dilations=None,
    name=None,
):
    """The maxima ("MAX") or means ("AVG") of windows over all spatial dimensions."""
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(
            "Value for attr 'pooling_type' must be MAX or AVG. Received: "
            f"pooling_type={pooling_type}"
        )
    function = max_pool if pooling_type == "MAX" else avg_pool
    n = len(window_shape)
    steps = [1] * n if strides is None else strides
    rates = [1] * n if dilations is None else list(dilations)
    if len(rates) != n:
        raise ValueError(
            f"`len(dilation_rate)` should be {n}. Received: dilation_rate={rates} of "
            f"length {len(rates)}"
        )
    if any(rate < 1 for rate in rates):
        raise ValueError(
            "all values of `dilation_rate` must be positive. Received: "
            f"dilation_rate={rates}"
        )
    if all(rate == 1 for rate in rates):
        return function(input, window_shape, steps, padding, data_format, name)
    if any(step != 1 for step in steps):
        raise ValueError(
            "`strides > 1` not supported in conjunction with `dilation_rate > 1`. "
            f"Received: strides={steps} and dilation_rate={rates}"
        )
    if padding != "VALID":
        raise ValueError(
            f"pooling with {padding!r} padding is not implemented for `dilation_rate` > "
            f"1. Received: padding={padding} and dilation_rate={rates}"
        )
    return _dilated_pool(function, input, window_shape, data_format, rates)


def _dilated_pool(function, input, window_shape, data_format, rates):
    """A pool whose windows leave out places: each residue of the places is an image of
    the batch."""
    input = _tensor(input)
    n = len(rates)
    first = 2 if data_format is not None and data_format.startswith("NC") else 1
    known = input.shape.as_list() if input.shape.rank else [None] * (n + 2)
    sizes = array_ops.shape(input)
    rest = [0] * (first - 1)  # of channels that come before space
    for i, rate in enumerate(rates):
        size = known[first + i]
        size = sizes[first + i] if size is None else size
        rest.append(-size % rate)
    blocks = [1] * (first - 1) + rates
    pads = array_ops.stack([[0] * len(rest), rest], 1)
    parts = array_ops.space_to_batch(input, blocks, pads)
    pooled = function(parts, window_shape, [1] * n, "VALID", data_format)
    return array_ops.batch_to_space(pooled, blocks, pads)


@signatures.having(
    "input, ksize, strides, padding, data_format='NHWC', output_dtype=int64, "
    "include_batch_in_index=False, name=None",
    int64=dtypes.int64,
)
def max_pool_with_argmax(ksize, strides, data_format, output_dtype, **given):
    """The maxima of windows, and where they were."""
    ksize = sizes_of(ksize, 2, 3, "ksize")
    strides = sizes_of(strides, 2, 3, "strides")
    return raw.MaxPoolWithArgmax(
        ksize=ksize, strides=strides, Targmax=output_dtype, **given
    )


def not_half(x):
    """x, in float32 where its own floats have half the bits or fewer."""
    half = x.dtype in (dtypes.float16, dtypes.bfloat16)
    return math_ops.cast(x, dtypes.float32) if half else x


@composite("moments")
def moments(x, axes, shift=None, keepdims=False, name=None):
    """The mean and variance over `axes`."""
    x = _tensor(x)
    y = not_half(x)
    mean = reduction_ops.reduce_mean(y, axes, True, name="mean")
    squares = elementwise_ops.squared_difference(y, array_ops.stop_gradient(mean))
    variance = reduction_ops.reduce_mean(squares, axes, True, name="variance")
    return tuple(without_axes(m, axes, keepdims, x.dtype) for m in (mean, variance))


def without_axes(moment, axes, keepdims, dtype):
    """A moment that was computed with the axes kept, as it is wanted."""
    if not keepdims:
        drop = [axes] if isinstance(axes, int) else list(axes)
        moment = array_ops.squeeze(moment, drop)
    return math_ops.cast(moment, dtype)


@composite("batchnorm")
def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    """(x - mean) / sqrt(variance), scaled and shifted."""
    x = _tensor(x)
    inv = elementwise_ops.rsqrt(variance + variance_epsilon)
    if scale is not None:
        inv = inv * scale
    scaled = x * math_ops.cast(inv, x.dtype)
    shift = -mean * inv if offset is None else offset - mean * inv
    return scaled + math_ops.cast(shift, x.dtype)


@composite("l2_normalize", ends=True)
def l2_normalize(x, axis=None, epsilon=1e-12, name=None, dim=None):
    """Scaled to length 1 along `axis`."""
    x = _tensor(x)
    squares = elementwise_ops.square(x)
    if x.dtype.is_complex:
        real, imag = elementwise_ops.real(x), elementwise_ops.imag(x)
        squares = elementwise_ops.square(real) + elementwise_ops.square(imag)
    squares = reduction_ops.reduce_sum(squares, axis, True)
    inv = elementwise_ops.rsqrt(elementwise_ops.maximum(squares, epsilon))
    if x.dtype.is_complex:
        inv = math_ops.cast(inv, x.dtype)
    return math_ops.multiply(x, inv, name)


@composite("dropout")
def dropout(x, rate, noise_shape=None, seed=None, name=None):
    """Sets a random fraction `rate` to zero and scales up the rest."""
    sampler = functools.partial(random_ops.uniform, seed=seed)
    return general_dropout(x, rate, sampler, noise_shape, name)


def stateless_dropout(x, rate, seed, rng_alg=None, noise_shape=None, name=None):
    """Dropout whose choices follow from the seed alone."""
    rng_alg = rng_alg or "auto_select"
    sampler = functools.partial(stateless_random_ops.uniform, seed=seed, alg=rng_alg)
    return general_dropout(x, rate, sampler, noise_shape, name)


def general_dropout(x, rate, uniform_sampler, noise_shape=None, name=None):
    """Dropout whose choices come from the caller's sampler."""
    x = _tensor(x)
    if not x.dtype.is_floating:
        raise ValueError(
            "`x.dtype` must be a floating point tensor as `x` will be scaled. Received: "
            f"x_dtype={x.dtype}"
        )
    if not isinstance(rate, (_headrace.Tensor, _headrace.VariableBase)) and (
        isinstance(rate, (str, bytes)) or np.ndim(rate)
    ):
        raise ValueError(
            f"`rate` must be a scalar or scalar tensor. Received: rate={rate}"
        )
    known = isinstance(rate, (int, float))
    if known and not 0 <= rate < 1:
        raise ValueError(
            "`rate` must be a scalar tensor or a float in the range [0, 1). Received: "
            f"rate={rate}"
        )
    if known and rate == 0:
        return x
    given = getattr(rate, "dtype", x.dtype)
    if isinstance(rate, _headrace.Tensor) and given != x.dtype:
        raise ValueError(
            "`x.dtype` must be compatible with `rate.dtype`. Received: "
            f"x.dtype={x.dtype!r} and rate.dtype={given!r}"
        )
    # No other operations than upstream's: seeds of a graph's random operations count
    # those before them.
    if known:
        # In double: 1 / (1 - 0.8) is 5.
        scaled = raw.Mul(x, conversion.to_tensor(1.0 / (1.0 - rate), x.dtype))
    else:
        rate = conversion.convert_to_tensor(rate, dtype=x.dtype)
        scaled = raw.RealDiv(x, raw.Sub(conversion.to_tensor(1.0, x.dtype), rate))
    shape = array_ops.shape(x) if noise_shape is None else noise_shape
    if isinstance(shape, (list, tuple)) and None in shape:
        shape = [d if n is None else n for n, d in zip(shape, x.shape.as_list())]
    keep = uniform_sampler(shape=shape, dtype=x.dtype) >= rate
    zero = conversion.to_tensor(0.0, x.dtype)
    out = array_ops.where(keep, scaled, zero)
    if isinstance(out, _headrace.SymbolicTensor):
        out.set_shape(x.shape)  # also where the noise's shape is not known
    return array_ops.identity(out, name=name) if name else out


@composite("softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None):
    """The cross-entropy of softmax(logits) against distributions `labels`."""
    logits = _tensor(logits)
    labels = math_ops.cast(_tensor(labels), logits.dtype)
    precise = not_half(logits)
    labels = math_ops.cast(labels, precise.dtype)
    rank = precise.shape.rank
    if rank is not None and not -rank <= axis < rank:
        raise InvalidArgumentError._of(
            f"axis={axis} of logits of shape {logits.shape} is out of range"
        )
    precise, _ = axis_moves.with_axis_last(precise, axis)
    labels, _ = axis_moves.with_axis_last(labels, axis)
    shape = array_ops.shape(precise)
    if rank != 2:
        flat = array_ops.stack([-1, shape[-1]])
        precise, labels = (array_ops.reshape(x, flat) for x in (precise, labels))
    loss = raw.SoftmaxCrossEntropyWithLogits(precise, labels, name=name).loss
    if rank != 2:
        loss = array_ops.reshape(loss, shape[:-1])
    return math_ops.cast(loss, logits.dtype)


@composite("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy_with_logits(labels, logits, name=None):
    """The cross-entropy of softmax(logits) against classes `labels`."""
    labels, logits = _tensor(labels), _tensor(logits)
    precise = not_half(logits)
    if logits.shape.rank == 0:
        raise ValueError(f"`logits` cannot be a scalar. Received logits={logits}`")
    static = labels.shape
    if (
        logits.shape.rank is not None
        and static.rank is not None
        and static.rank != logits.shape.rank - 1
    ):
        raise ValueError(
            "`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: "
            f"labels.shape={static} of rank {static.rank} and "
            f"logits.shape={logits.shape} of rank {logits.shape.rank}"
        )
    if not static.is_compatible_with(logits.shape[:-1]):
        raise ValueError(
            "`labels.shape` must equal `logits.shape` except for the last dimension. "
            f"Received: labels.shape={static} and logits.shape={logits.shape}"
        )
    op = _headrace.raw_op("SparseSoftmaxCrossEntropyWithLogits")
    if logits.shape.rank == 2:
        loss = op(features=precise, labels=labels, name=name).loss
        return math_ops.cast(loss, logits.dtype)
    shape = array_ops.shape(labels)
    width = array_ops.shape(logits)[-1]
    loss = op(
        features=array_ops.reshape(precise, array_ops.stack([-1, width])),
        labels=array_ops.reshape(labels, [-1]),
        name=name,
    ).loss
    return math_ops.cast(array_ops.reshape(loss, shape), logits.dtype)


@composite("logistic_loss", ends=True)
def sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None):
    """The cross-entropy of sigmoid(logits) against probabilities `labels`."""
    logits = _tensor(logits)
    labels = conversion.convert_to_tensor(labels, dtype_hint=logits.dtype)
    if not labels.shape.is_compatible_with(logits.shape):
        raise ValueError(
            f"`logits` and `labels` must have the same shape, received ({logits.shape} "
            f"vs {labels.shape})."
        )
    zeros = array_ops.zeros_like(logits)
    positive = logits >= zeros
    relu_logits = array_ops.where(positive, logits, zeros)
    negative_abs = array_ops.where(positive, -logits, logits)
    return math_ops.add(
        relu_logits - logits * labels,
        elementwise_ops.log1p(elementwise_ops.exp(negative_abs)),
        name,
    )


@composite("logistic_loss", ends=True)
def weighted_cross_entropy_with_logits(labels, logits, pos_weight, name=None):
    """Sigmoid cross-entropy with positives weighted."""
    logits = _tensor(logits)
    labels = conversion.convert_to_tensor(labels, dtype=logits.dtype)
    if not logits.shape.is_compatible_with(labels.shape):
        raise ValueError(
            "`logits` and `labels` must have the same shape, received "
            f"({logits.shape} vs {labels.shape})."
        )
    weight = 1 + (pos_weight - 1) * labels
    log = elementwise_ops.log1p(elementwise_ops.exp(-abs(logits))) + relu(-logits)
    return math_ops.add((1 - labels) * logits, weight * log, name)


def _weighted(loss, weight):
    """Losses times weights, which lack a last dimension or have one of 1 too many;
    multiplied in floating point where one of them is."""
    rank, own = loss.shape.rank, weight.shape.rank
    if rank is not None and own:
        if own == rank + 1 and weight.shape[-1] in (1, None):
            weight = array_ops.squeeze(weight, [-1])
        elif own == rank - 1:
            weight = array_ops.expand_dims(weight, -1)
    dtype = loss.dtype
    both = dtype if dtype.is_floating else dtypes.float32
    product = math_ops.cast(loss, both) * math_ops.cast(weight, both)
    return math_ops.cast(product, dtype)


def _replicas(function):
    """How many replicas of the strategy in force sum the loss, each of its part."""
    mode = strategies.mode()
    if mode is None or mode.is_default:
        return 1
    if mode.replica is None:
        raise RuntimeError(
            f"You are calling `{function}` in cross replica context, while it was "
            "expected to be called in replica context."
        )
    return mode.strategy.num_replicas_in_sync


def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None):
    """The sum of losses over the batch size.

    Args:
      per_example_loss: losses, of at least one dimension, the batch.
      sample_weight: weights, of a shape that broadcasts to the losses'.
      global_batch_size: an integer scalar that is not negative; by default the size
        of the losses' first dimension times the replicas of the strategy in force,
        which sum what this gives. Where it is 0, the result is 0.

    Raises:
      RuntimeError: without a batch size, in a strategy's scope and not in a replica.
      ValueError: losses without a batch; a batch size that is no scalar.
      TypeError: a batch size that is no integer.
      InvalidArgumentError: a negative batch size.
    """
    loss = _tensor(per_example_loss)
    if loss.shape.rank == 0:
        raise ValueError(
            "Invalid value passed for `per_example_loss`. Expected a tensor with at "
            f"least rank 1. Received per_example_loss={per_example_loss} with rank 0"
        )
    if sample_weight is not None:
        loss = _weighted(loss, _tensor(sample_weight))
    checks = []
    if global_batch_size is None:
        size = array_ops.shape(loss)[0] * _replicas("compute_average_loss")
    else:
        size = _tensor(global_batch_size)
        check_ops.assert_scalar(size, "global_batch_size must be scalar.")
        check_ops.assert_integer(size, "global_batch_size must be an integer.")
        checks = [
            check_ops.assert_non_negative(
                size, "global_batch_size must be non-negative."
            )
        ]
    with execution.control_dependencies(checks):
        total = reduction_ops.reduce_sum(loss)
        return elementwise_ops.divide_no_nan(total, math_ops.cast(size, loss.dtype))


def scale_regularization_loss(regularization_loss):
    """The loss over the number of replicas of the strategy in force, which sum it.

    Raises:
      RuntimeError: in a strategy's scope and not in a replica.
    """
    replicas = _replicas("scale_regularization_loss")
    loss = _tensor(regularization_loss)
    if not loss.dtype.is_floating:
        loss = math_ops.cast(
            loss, dtypes.float64 if loss.dtype.size > 2 else dtypes.float32
        )
    total = reduction_ops.reduce_sum(loss)
    return total / replicas if replicas > 1 else total


@composite("log_poisson_loss")
def log_poisson_loss(targets, log_input, compute_full_loss=False, name=None):
    """The loss of a Poisson distribution of mean exp(log_input)."""
    log_input = _tensor(log_input)
    targets = conversion.convert_to_tensor(targets, dtype=log_input.dtype)
    loss = elementwise_ops.exp(log_input) - log_input * targets
    if compute_full_loss:
        pi2 = conversion.to_tensor(6.283185307179586, log_input.dtype)
        stirling = (
            targets * elementwise_ops.log(targets)
            - targets
            + 0.5 * elementwise_ops.log(pi2 * targets)
        )
        small = elementwise_ops.logical_and(targets >= 0.0, targets <= 1.0)
        loss += array_ops.where(small, array_ops.zeros_like(targets), stirling)
    return loss
