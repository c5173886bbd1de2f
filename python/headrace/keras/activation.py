"""tf.keras.activations."""

from headrace import _api as tf
from headrace.keras import newer_activations as newer
from headrace.keras import serialization
from headrace.ops.faces import add_calls

add_calls(
    globals(),
    """
selu nn.selu(x->features)
    elu with a fixed alpha, times a fixed scale.
gelu nn.gelu(x->features, approximate=False)
    x times the normal distribution's share below x.
exponential exp(x)
    e to the power of each element.
softplus math.softplus(x->features)
    log(exp(x) + 1).
softsign math.softsign(x->features)
    x / (|x| + 1).
swish nn.silu(x->features)
    x times sigmoid(x); silu is the same.
tanh tanh(x)
    The hyperbolic tangent.
relu keras.backend.relu(x, alpha=0.0, max_value=None, threshold=0.0)
    max(x, 0), with a slope below and a ceiling.
""",
)


def linear(x):
    """x as it is: the activation of layers that have none."""
    return x


def softmax(x, axis=-1):
    """Probabilities along an axis; the logits are kept for losses."""
    x = tf.convert_to_tensor(x)
    if x.shape.rank == 1:
        raise ValueError(
            f"Cannot apply softmax to a tensor that is 1D. Received input: {x}"
        )
    out = tf.nn.softmax(x, axis=axis)
    out._keras_logits = x
    return out


def sigmoid(x):
    """1 / (1 + exp(-x)); the logits are kept for losses."""
    x = tf.convert_to_tensor(x)
    out = tf.nn.sigmoid(x)
    out._keras_logits = x
    return out


def hard_sigmoid(x):
    """0.2 x + 0.5 cut to [0, 1]."""
    x = tf.convert_to_tensor(x)
    return tf.clip_by_value(0.2 * x + 0.5, 0.0, 1.0)


def elu(x, alpha=1.0):
    """x above zero, alpha (exp(x) - 1) below."""
    out = tf.nn.elu(x)
    return out if alpha == 1 else tf.where(x > 0, out, alpha * out)


def mish(x):
    """x times tanh(softplus(x))."""
    return x * tf.tanh(tf.math.softplus(x))


_NAMES = serialization.functions_of(globals())  # so far
_NAMES.update(serialization.functions_of(vars(newer)))
_NAMES.update(silu=swish, hard_swish=newer.hard_silu)
_get, _deserialize = serialization.getter(_NAMES, "activation function")


def deserialize(name, custom_objects=None, use_legacy_format=False):
    """The activation of a name or a config, of either format; ValueError for an unknown
    one."""
    return _deserialize(name, custom_objects)


def get(identifier):
    """The function of a name or configuration; a function as it is; linear for None."""
    return linear if identifier is None else _get(identifier)


def serialize(activation, use_legacy_format=False):
    """The configuration of an activation; ValueError for names that nothing has."""
    name = activation if isinstance(activation, str) else None
    if name is not None and name not in _NAMES and name not in serialization._custom:
        raise ValueError(
            f"Unknown activation function '{name}' cannot be serialized due to invalid "
            "function name. Make sure to use an activation name that matches the "
            "references defined in activations.py or use "
            "`@keras.saving.register_keras_serializable()` to register any custom "
            "activations."
        )
    if serialization.is_function(activation) and activation.__name__ in _NAMES:
        return activation.__name__
    made = serialization.serialize(activation)
    if serialization.is_function(activation):
        made["config"] = serialization.get_registered_name(activation)
    return made
