"""tf.keras.mixed_precision's policies: what layers compute in and keep weights in."""

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.framework.settings import logging
from headrace.keras import settings

_MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}
_INFER = "_infer"
_state = {"global": None, "warned": False}


class Policy:
    """The dtypes of a layer: of its computation and of its variables.

    The name is "mixed_float16" or "mixed_bfloat16", which compute in 16 bits and keep
    variables in float32, or that of a dtype for both.
    """

    _keras_module = "keras.mixed_precision"

    def __init__(self, name):
        if isinstance(name, tf.DType):
            raise TypeError(
                "'name' must be a string, not a DType. Instead, pass DType.name. "
                f"Received: name={name.name}"
            )
        if not isinstance(name, str):
            raise TypeError(f"'name' must be a string, but got: {name}")
        self._name = name
        if name == _INFER:
            self._compute_dtype = self._variable_dtype = None
        elif name in _MIXED:
            self._compute_dtype, self._variable_dtype = _MIXED[name], "float32"
            _warn_of_processors(name)
        else:
            self._compute_dtype = self._variable_dtype = _dtype_name(name)

    name = read_only("_name", "The name that the policy was made with: a str.")
    compute_dtype = read_only(
        "_compute_dtype", 'The dtype that layers compute in, a str such as "float16".'
    )
    variable_dtype = read_only(
        "_variable_dtype", "The dtype that layers keep their variables in: a str."
    )

    def __repr__(self):
        return f'<Policy "{self._name}">'

    def get_config(self):
        """{"name": name}, for from_config()."""
        return {"name": self._name}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """The policy of what get_config() gave."""
        config = dict(config)
        if config.get("name") is None:  # files of Keras 2.3 have None for "_infer"
            config["name"] = _INFER
        return cls(**config)


def _dtype_name(name):
    try:
        return tf.as_dtype(name).name
    except TypeError:
        raise ValueError(
            f"Cannot convert value {name} to a mixed precision Policy. Valid policies "
            "include 'mixed_float16', 'mixed_bfloat16', and the name of any dtype such "
            "as 'float32'."
        ) from None


def _warn_of_processors(name):
    """Says once that CPUs have no fast half precision."""
    if name != "mixed_float16" or _state["warned"]:
        return
    if not tf.config.list_physical_devices("GPU"):
        _state["warned"] = True
        logging.warn(
            f"The dtype policy {name} may run slowly because this machine does not have "
            "a GPU. This message will only be logged once"
        )


def global_policy():
    """The policy of layers that are given no dtype: floatx()'s unless it was set."""
    return _state["global"] or Policy(settings.floatx())


def set_global_policy(policy):
    """Sets the policy of layers that are given no dtype: a Policy, a name, a config, or
    None for floatx()'s.

    ValueError for policies that do not compute in floats.
    """
    policy = None if policy is None else of(policy)
    if policy is not None:
        computed = policy.compute_dtype
        if computed is None or not tf.as_dtype(computed).is_floating:
            raise ValueError(
                "set_global_policy can only be used to set the global policy to "
                'floating-point policies, such as "float32" and "mixed_float16", but got '
                f"policy: {policy.name}"
            )
    _state["global"] = policy


def of(dtype):
    """The policy that a layer's argument `dtype` names: None, a policy, the name or
    configuration of one, or a dtype."""
    if dtype is None:
        return global_policy()
    if isinstance(dtype, Policy):
        return dtype
    if isinstance(dtype, dict):
        return Policy.from_config(dtype.get("config", dtype))
    if isinstance(dtype, str) and dtype in _MIXED:
        return Policy(dtype)
    return Policy(tf.as_dtype(dtype).name)


def deserialize(config, custom_objects=None):
    """The policy of a configuration; ValueError for one of something else."""
    if config.get("class_name") != "Policy":
        raise ValueError(f"Unknown policy: {config}")
    return of(config)


def config_of(policy):
    """What a layer's configuration says of its policy: a dtype's name where it is
    enough."""
    if policy.compute_dtype == policy.variable_dtype:
        return policy.name
    return {
        "module": Policy._keras_module,
        "class_name": "Policy",
        "config": policy.get_config(),
        "registered_name": None,
    }
