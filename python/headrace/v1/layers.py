"""tf.compat.v1.layers: layers as functions, variables by their scopes' names."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import stack
from headrace.framework import execution
from headrace.framework.support import signatures
from headrace.v1 import collections
from headrace.v1.variable_scope import get_variable, variable_scope

_FORMATS = {"channels_last": "NHWC", "channels_first": "NCHW"}


def _scope(name, default, reuse=None):
    """The variable scope of a layer: by its name, or a new one by its kind."""
    execution.only_in_graphs(
        f"tf.compat.v1.layers.{default} is not supported when eager execution is "
        f"enabled: use tf.keras.layers"
    )
    return variable_scope(name, default_name=default, reuse=reuse)


def _pair(value, name):
    value = (value, value) if isinstance(value, int) else tuple(value)
    if len(value) != 2:
        raise ValueError(f"`{name}` must be an integer or two, got {value}")
    return value


def _variable(name, shape, like, initializer, **more):
    return get_variable(name, shape, dtype=like.dtype, initializer=initializer, **more)


def _known(size, what):
    if size is None:
        raise ValueError(f"{what} of the inputs must be known, found None")
    return size


def _finished(outputs, bias, given, data_format="NHWC"):
    if bias is not None:
        outputs = tf.nn.bias_add(outputs, bias, data_format=data_format)
    if given["activation"] is not None:
        outputs = given["activation"](outputs)
    if given["activity_regularizer"] is not None:
        loss = given["activity_regularizer"](outputs)
        key = collections.GraphKeys.REGULARIZATION_LOSSES
        stack.default_graph().add_to_collection(key, loss)
    return outputs


_trainable = signatures.taking(
    signatures.from_text(
        "activation=None, use_bias=True, kernel_initializer=None, "
        "bias_initializer='zeros', kernel_regularizer=None, bias_regularizer=None, "
        "activity_regularizer=None, kernel_constraint=None, bias_constraint=None, "
        "trainable=True, name=None, reuse=None"
    )
)


@_trainable
def dense(inputs, units, **given):
    """activation(inputs x kernel + bias)."""
    with _scope(given["name"], "dense", given["reuse"]):
        inputs = tf.convert_to_tensor(inputs)
        size = _known(inputs.shape[-1], "The last dimension")
        kernel, bias = _kernel_and_bias(given, inputs, [size, units])
        if inputs.shape.rank == 2:
            outputs = tf.matmul(inputs, kernel)
        else:
            outputs = tf.tensordot(inputs, kernel, [[inputs.shape.rank - 1], [0]])
            outputs.set_shape(inputs.shape[:-1].concatenate([units]))
        return _finished(outputs, bias, given)


def _trained(given, name, shape, like, initializer):
    """A variable by the arguments that a layer was given for it: `name`_regularizer,
    `name`_constraint and whether it is trained."""
    return _variable(
        name,
        shape,
        like,
        initializer,
        regularizer=given[f"{name}_regularizer"],
        constraint=given[f"{name}_constraint"],
        trainable=given["trainable"],
    )


def _kernel_and_bias(given, inputs, shape):
    kernel = _trained(given, "kernel", shape, inputs, given["kernel_initializer"])
    if not given["use_bias"]:
        return kernel, None
    initializer = _first_values(given["bias_initializer"])
    return kernel, _trained(given, "bias", shape[-1:], inputs, initializer)


def _first_values(initializer):
    """An initializer, which "zeros" and "ones" may stand for."""
    if initializer == "zeros":
        return tf.compat.v1.zeros_initializer()
    return tf.compat.v1.ones_initializer() if initializer == "ones" else initializer


@_trainable
def conv2d(
    inputs,
    filters,
    kernel_size,
    strides=(1, 1),
    padding="valid",
    data_format="channels_last",
    dilation_rate=(1, 1),
    **given,
):
    """activation(inputs convolved with kernel + bias)."""
    with _scope(given["name"], "conv2d", given["reuse"]):
        inputs = tf.convert_to_tensor(inputs)
        order = _FORMATS[data_format]
        channels = inputs.shape[order.index("C")]
        shape = [
            *_pair(kernel_size, "kernel_size"),
            _known(channels, "Channels"),
            filters,
        ]
        kernel, bias = _kernel_and_bias(given, inputs, shape)
        outputs = tf.nn.conv2d(
            inputs,
            kernel,
            strides=_pair(strides, "strides"),
            padding=padding.upper(),
            data_format=order,
            dilations=_pair(dilation_rate, "dilation_rate"),
        )
        return _finished(outputs, bias, given, order)


def _pooling(kind):
    def pool(
        inputs,
        pool_size,
        strides,
        padding="valid",
        data_format="channels_last",
        name=None,
    ):
        with tf.name_scope(name or f"{kind}_pooling2d"):
            function = tf.nn.max_pool2d if kind == "max" else tf.nn.avg_pool2d
            return function(
                tf.convert_to_tensor(inputs),
                _pair(pool_size, "pool_size"),
                _pair(strides, "strides"),
                padding.upper(),
                data_format=_FORMATS[data_format],
            )

    pool.__name__ = f"{kind}_pooling2d"
    what = "largest value" if kind == "max" else "mean"
    pool.__doc__ = f"""The {what} of windows of [batch, height, width, channels].

    `pool_size` and `strides` are one or two ints; `padding` is "valid" or "same". With
    "channels_first" images are [batch, channels, height, width].
    """
    return pool


max_pooling2d = _pooling("max")
average_pooling2d = _pooling("average")


def flatten(inputs, name=None, data_format="channels_last"):
    """All but the first axis in one."""
    with tf.name_scope(name or "flatten"):
        inputs = tf.convert_to_tensor(inputs)
        rank = inputs.shape.rank
        if data_format == "channels_first" and rank is not None and rank > 2:
            inputs = tf.transpose(inputs, [0, *range(2, rank), 1])
        size = inputs.shape[1:].num_elements()
        if size is not None:
            return tf.reshape(inputs, [-1, size])
        return tf.reshape(inputs, [tf.shape(inputs)[0], -1])


def dropout(inputs, rate=0.5, noise_shape=None, seed=None, training=False, name=None):
    """In training: some of the inputs zero, the others larger."""

    def dropped():
        return tf.nn.dropout(inputs, rate, noise_shape=noise_shape, seed=seed)

    with tf.name_scope(name or "dropout"):
        inputs = tf.convert_to_tensor(inputs)
        return _in_training(training, dropped, lambda: tf.identity(inputs))


def _in_training(training, then, otherwise):
    if isinstance(training, (_headrace.Tensor, _headrace.VariableBase)):
        return tf.cond(tf.cast(training, tf.bool), then, otherwise)
    return then() if training else otherwise()


@signatures.having(
    "inputs, axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True, "
    "beta_initializer='zeros', gamma_initializer='ones', "
    "moving_mean_initializer='zeros', moving_variance_initializer='ones', "
    "beta_regularizer=None, gamma_regularizer=None, beta_constraint=None, "
    "gamma_constraint=None, training=False, trainable=True, name=None, "
    "reuse=None, renorm=False, renorm_clipping=None, renorm_momentum=0.99, "
    "fused=None, virtual_batch_size=None, adjustment=None"
)
def batch_normalization(inputs, **given):
    """Inputs brought to mean 0 and variance 1 along an axis, then scaled and moved.
    In training by the batch, whose moments the UPDATE_OPS keep; else by those."""
    for what in ("renorm", "virtual_batch_size", "adjustment"):
        if given[what]:
            raise NotImplementedError(f"batch_normalization: {what} is not supported")
    with _scope(given["name"], "batch_normalization", given["reuse"]):
        inputs = tf.convert_to_tensor(inputs)
        rank = inputs.shape.rank
        axis = given["axis"] % rank
        size = [_known(inputs.shape[axis], "The normalized axis")]
        first = {
            name: _first_values(given[f"{name}_initializer"])
            for name in ("gamma", "beta", "moving_mean", "moving_variance")
        }
        gamma = beta = None
        if given["scale"]:
            gamma = _trained(given, "gamma", size, inputs, first["gamma"])
        if given["center"]:
            beta = _trained(given, "beta", size, inputs, first["beta"])
        moving = [
            _variable(name, size, inputs, first[name], trainable=False)
            for name in ("moving_mean", "moving_variance")
        ]
        unbiased = rank == 4 and given["fused"] is not False  # as the fused op keeps it
        how = (given["momentum"], given["training"], unbiased)
        mean, variance = _moments(inputs, axis, moving, *how)
        shape = [1] * rank
        shape[axis] = size[0]
        mean, variance, beta, gamma = (
            None if v is None else tf.reshape(v, shape)
            for v in (mean, variance, beta, gamma)
        )
        return tf.nn.batch_normalization(
            inputs, mean, variance, beta, gamma, given["epsilon"]
        )


def _moments(inputs, axis, moving, momentum, training, unbiased):
    """The mean and variance to use; the batch's are noted as updates."""
    kept = [tf.convert_to_tensor(v) for v in moving]
    if training is False or training is None:
        return kept
    others = [i for i in range(inputs.shape.rank) if i != axis]
    found = tf.nn.moments(inputs, others)
    used, noted = [], [found[0], found[1]]
    if unbiased:
        count = tf.cast(tf.size(inputs) / tf.shape(inputs)[axis], inputs.dtype)
        noted[1] *= count / tf.maximum(count - 1, 1)
    graph = stack.default_graph()
    for variable, batch, value, old in zip(moving, found, noted, kept):
        used.append(_in_training(training, lambda b=batch: b, lambda o=old: o))
        new = _in_training(training, lambda v=value: v, lambda o=old: o)
        change = (variable.read_value() - new) * (1.0 - momentum)
        update = variable.assign_sub(change, read_value=False)
        graph.add_to_collection(collections.GraphKeys.UPDATE_OPS, update)
    return used
