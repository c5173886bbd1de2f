"""get_config by the constructors' parameters: layers, metrics and what they are made of."""

import inspect

import headrace as tf
import pytest

keras = tf.keras
ROOMS = ("layers", "metrics", "initializers", "regularizers", "constraints")
# Values of parameters that have no default.
GIVEN = {
    "units": 3,
    "filters": 4,
    "kernel_size": 2,
    "num_heads": 2,
    "key_dim": 3,
    "rate": 0.5,
    "stddev": 0.5,
    "num_bins": 3,
    "num_tokens": 3,
    "num_classes": 2,
    "target_class_ids": [1],
    "height": 2,
    "width": 2,
    "factor": 0.1,
    "height_factor": 0.1,
    "width_factor": 0.1,
    "scale": 2.0,
    "target_shape": (2, 2),
    "dims": (2, 1),
    "n": 2,
    "axes": 1,
    "input_dim": 3,
    "output_dim": 2,
    "activation": "relu",
    "equation": "ab,bc->ac",
    "output_shape": 3,
    "specificity": 0.5,
    "sensitivity": 0.5,
    "recall": 0.5,
    "precision": 0.5,
}


# Classes whose constructors do not say what they need.
NEEDED = {
    "CategoryEncoding": ["num_tokens"],
    "Conv3DTranspose": ["filters", "kernel_size"],
    "GRU": ["units"],
    "LSTM": ["units"],
    "SimpleRNN": ["units"],
}


def _arguments(cls):
    """What the class cannot be made without; None where there is no value for it."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is plain]
    needed = NEEDED.get(cls.__name__, needed)
    return {name: GIVEN[name] for name in needed} if GIVEN.keys() >= {*needed} else None


def _classes():
    for room in ROOMS:
        names = getattr(keras, room)
        for name in dir(names):
            cls = getattr(names, name)
            if inspect.isclass(cls) and hasattr(cls, "from_config"):
                yield pytest.param(cls, id=f"{room}.{name}")


@pytest.mark.parametrize("cls", list(_classes()))
def test_a_configuration_makes_the_same_again(cls):
    arguments = _arguments(cls)
    if arguments is None or cls.__name__ in ("InputLayer", "Regularizer", "Lambda"):
        pytest.skip("made by other tests")
    config = cls(**arguments).get_config()
    assert config.keys() >= arguments.keys()
    assert cls.from_config(config).get_config() == config


def test_arguments_stand_in_the_order_of_upstream():
    names = list(keras.layers.SeparableConv1D(2, 3).get_config())
    assert names[:5] == ["name", "trainable", "dtype", "filters", "kernel_size"]
    assert names[-2:] == ["bias_constraint", "depth_multiplier"]
    assert "kernel_initializer" in names  # of a kernel that it does not have
    pooling = keras.layers.MaxPooling2D().get_config()
    assert list(pooling)[3:] == ["pool_size", "padding", "strides", "data_format"]
    names = list(keras.layers.LSTM(2).get_config())
    assert names.index("time_major") < names.index("units") < names.index("dropout")
    assert (
        names[-3:]
        == ["unit_forget_bias", "activity_regularizer", "implementation"][-3:]
    )
    assert "recurrent_activation" not in keras.layers.SimpleRNN(2).get_config()
    assert list(keras.metrics.IoU(2, [1]).get_config())[2] == "target_class_ids"


def test_functions_and_objects_are_told_as_configurations():
    config = keras.layers.Dense(2, tf.nn.tanh, kernel_regularizer="l1").get_config()
    assert config["activation"] == "tanh"
    assert config["kernel_regularizer"]["class_name"] == "L1"
    assert config["kernel_initializer"]["config"] == {"seed": None}
    wrapped = keras.layers.TimeDistributed(keras.layers.Dense(2)).get_config()
    assert wrapped["layer"]["class_name"] == "Dense"


class Wide(keras.layers.Dense):
    """A subclass that says nothing: what it adds is not in the configuration."""

    def __init__(self, units, more=1, **kwargs):
        super().__init__(units, **kwargs)
        self.more = more


class Sum(keras.layers.Add):
    """A subclass of what has no arguments: those of the call are told."""

    def __init__(self, times):
        super().__init__()
        self.times = times


class Limit(keras.constraints.Constraint):
    def __init__(self, limit):
        self.limit = limit


def test_subclasses_of_the_user():
    assert "more" not in Wide(3, more=2).get_config()
    assert Wide(3).get_config()["units"] == 3
    assert Sum(4).get_config() == {"times": 4}
    assert Limit(3).get_config() == {}

    class Own(keras.regularizers.Regularizer):
        def __init__(self, strength):
            self.strength = strength

    with pytest.raises(NotImplementedError, match="does not implement get_config"):
        Own(1.0).get_config()
    with pytest.raises(NotImplementedError, match="must override `get_config"):
        keras.optimizers.schedules.LearningRateSchedule().get_config()


def test_schedules_tell_their_arguments():
    made = keras.optimizers.schedules.CosineDecay(0.1, 10, alpha=0.5)
    assert made.get_config() == {
        "initial_learning_rate": 0.1,
        "decay_steps": 10,
        "alpha": 0.5,
        "name": None,
        "warmup_target": None,
        "warmup_steps": 0,
    }


def test_names_of_what_is_serialized():
    k = tf.keras
    for space, made, name in (
        (k.losses, k.losses.Huber(2.0), "loss"),
        (k.initializers, k.initializers.GlorotUniform(), "initializer"),
        (k.regularizers, k.regularizers.L1(0.5), "regularizer"),
        (k.constraints, k.constraints.MaxNorm(2.0), "constraint"),
        (k.metrics, k.metrics.Mean(name="m"), "metric"),
    ):
        found = space.serialize(**{name: made})
        assert set(found) >= {"class_name", "config", "module"}
        older = space.serialize(made, use_legacy_format=True)
        assert older == {key: found[key] for key in ("class_name", "config")}
        again = space.deserialize(found).get_config()
        assert again == space.deserialize(older).get_config() == made.get_config()
    assert k.losses.serialize(k.losses.mean_squared_error) == {
        "module": "builtins",
        "class_name": "function",
        "config": "mean_squared_error",
        "registered_name": "function",
    }
    assert k.losses.deserialize(name="mse") is k.losses.mean_squared_error
