"""tf.keras.optimizers.legacy: the interface before Keras 2.11."""

from headrace import _api as tf
from headrace.context import strategies
from headrace.eager import graph_gradients
from headrace.framework.trackable import node_of
from headrace.keras import initializer as initializers
from headrace.keras import settings
from headrace.keras.base.tracking import attach_new
from headrace.keras.classes import add_classes
from headrace.keras.optimizer import nadam, rules
from headrace.keras.optimizer.for_subclasses import ForSubclasses
from headrace.keras.optimizer.base import (
    BaseOptimizer,
    recorded,
    sum_of_replicas,
    with_gradients,
)
from headrace.keras.optimizer.schedule import LearningRateSchedule

_LIMITS = ("clipnorm", "clipvalue", "global_clipnorm")


def _sum_of_replicas(pairs):
    gradients = sum_of_replicas([g for g, _ in pairs])
    return [(g, v) for g, (_, v) in zip(gradients, pairs)]


class Optimizer(ForSubclasses, BaseOptimizer):
    """Base: `decay` and `lr` are accepted, slots are made slot by slot."""

    _keras_module = "keras.optimizers.legacy"
    _is_legacy = True

    def _set_up(self, name, learning_rate, hypers, kwargs):
        kwargs, hypers = dict(kwargs), dict(hypers)
        aggregator = kwargs.pop("gradient_aggregator", None)
        transformers = kwargs.pop("gradient_transformers", None)
        object.__setattr__(self, "_more_weights", [])  # of add_weight, kept alive
        object.__setattr__(self, "gradient_aggregator", aggregator or _sum_of_replicas)
        object.__setattr__(self, "gradient_transformers", transformers or [])
        learning_rate = kwargs.pop("lr", learning_rate)
        hypers["decay"] = decay = kwargs.pop("decay", 0.0)
        object.__setattr__(self, "_initial_decay", decay)
        limits = {k: kwargs.pop(k, None) for k in _LIMITS}
        if kwargs:
            raise TypeError(
                f"{list(kwargs)[0]} is not a valid argument, kwargs should be empty  "
                "for `optimizer`. Allowed arguments: ['clipnorm', 'clipvalue', 'lr', "
                "'decay', 'global_clipnorm']"
            )
        for key, value in limits.items():
            if value is not None and value < 0:
                raise ValueError(f"Expected {key} >= 0, received: {value}")
        if hypers["decay"] < 0:
            raise ValueError(
                f"decay cannot be less than 0. Received: decay={hypers['decay']}."
            )
        BaseOptimizer.__init__(self, name, learning_rate, hypers, limits)

    def __init__(
        self, name, gradient_aggregator=None, gradient_transformers=None, **kwargs
    ):
        kwargs["gradient_aggregator"] = gradient_aggregator
        kwargs["gradient_transformers"] = gradient_transformers
        self._set_up(name, kwargs.pop("learning_rate", None), {}, kwargs)

    def __setattr__(self, name, value):
        transformers = self.__dict__.get("gradient_transformers")
        if name in _LIMITS and value is not None and transformers:
            raise ValueError(
                f"`{name}` cannot be set when `gradient_transformers` is set. Instead, "
                "use the `gradient_transformers` to specify clipping and other "
                f"transformations. Received: val={value}, "
                f"gradient_transformers={transformers}."
            )
        super().__setattr__(name, value)

    def apply_gradients(
        self, grads_and_vars, name=None, experimental_aggregate_gradients=True
    ):
        """Updates variables by their gradients and counts the step.

        Those of replicas are summed, or what `gradient_aggregator` makes of them, then
        each of the `gradient_transformers` makes new ones: functions of (gradient,
        variable) pairs that give such pairs. With experimental_aggregate_gradients=False
        nothing is summed.
        """
        pairs = with_gradients(tuple(grads_and_vars))
        if self._in_ring and pairs and (replica := strategies.replica()) is not None:
            # Eagerly, too, variables are made before sums.
            variables = [v for _, v in pairs]
            replica.merge_call(lambda _: self._make_ready(variables))
        pairs = self._combined(pairs, experimental_aggregate_gradients)
        return super().apply_gradients(pairs, name, skip_gradients_aggregation=True)

    def _combined(self, pairs, sums):
        if sums:
            pairs = self._aggregate_gradients(pairs)
        return self._transform_gradients(pairs)

    def add_weight(
        self,
        name,
        shape,
        dtype=None,
        initializer="zeros",
        trainable=None,
        synchronization=tf.VariableSynchronization.AUTO,
        aggregation=tf.VariableAggregation.NONE,
    ):
        """A new variable of the optimizer, float32 unless `dtype` says another, known to
        checkpoints by its name; it is none of `weights`."""
        if synchronization == tf.VariableSynchronization.ON_READ:
            if trainable:
                raise ValueError(
                    "Synchronization value can be set to VariableSynchronization.ON_READ "
                    "only for non-trainable variables. You have specified trainable=True "
                    "and synchronization=VariableSynchronization.ON_READ."
                )
            trainable = False
        dtype = tf.as_dtype(dtype or tf.float32)
        make = initializers.get(initializer) if isinstance(initializer, str) else None
        make = make or initializer
        with tf.init_scope():
            first = make(shape, dtype=dtype) if callable(make) else make
            made = tf.Variable(
                first,
                trainable=True if trainable is None else trainable,
                name=name,
                dtype=dtype,
                synchronization=synchronization,
                aggregation=aggregation,
            )
            settings.keep(made)
        attach_new(node_of(self), name, made)
        self._more_weights.append(made)
        return made

    # --- what subclasses of programs define ---

    def minimize(self, loss, var_list, grad_loss=None, name=None, tape=None):
        """Computes gradients of the loss, a function without arguments or a scalar that
        `tape` recorded, and applies them: gives what apply_gradients() does."""
        pairs = self._compute_gradients(loss, var_list, grad_loss=grad_loss, tape=tape)
        return self.apply_gradients(pairs, name=name)

    def _compute_gradients(self, loss, var_list, grad_loss=None, tape=None):
        """A list of (gradient, variable)."""
        loss, var_list, tape = recorded(loss, var_list, tape)
        if callable(var_list):
            var_list = var_list()
        with tape._ensure_recording():
            loss = self._transform_loss(loss)
        pairs = self._get_gradients(tape, loss, tf.nest.flatten(var_list), grad_loss)
        return self._transform_unaggregated_gradients(pairs)

    def _transform_loss(self, loss):
        """What gradients are taken of: here the loss."""
        return loss

    def _get_gradients(self, tape, loss, var_list, grad_loss=None):
        """A list of (gradient, variable) of what the tape recorded."""
        return list(zip(tape.gradient(loss, var_list, grad_loss), var_list))

    def _transform_unaggregated_gradients(self, grads_and_vars):
        """The pairs of one replica, before those of all are summed."""
        return grads_and_vars

    def _aggregate_gradients(self, grads_and_vars):
        """The pairs with the sums over replicas, or what gradient_aggregator makes."""
        return self.gradient_aggregator(grads_and_vars)

    def _transform_gradients(self, grads_and_vars):
        """The pairs as gradient_transformers make them."""
        for transformer in self.gradient_transformers:
            grads_and_vars = transformer(grads_and_vars)
        return grads_and_vars

    def get_gradients(self, loss, params):
        """The gradients of a graph's tensor, within what clipnorm and the like
        allow."""
        found = graph_gradients.gradients(loss, params)
        for gradient, param in zip(found, params):
            if gradient is None:
                raise ValueError(
                    f"Variable {param} has `None` for gradient. Please make sure that "
                    "all of your ops have a gradient defined (i.e. are "
                    "differentiable)."
                )
        return self._limited(found)

    def get_updates(self, loss, params):
        """The operations of a graph that make one training step."""
        return [self.apply_gradients(zip(self.get_gradients(loss, params), params))]

    _config_names = ()
    _config_plain = ()

    def get_config(self):
        """The arguments as a dict, for from_config(); limits of gradients only where
        set.
        """
        config = {"name": self._name}
        for key in _LIMITS:
            if getattr(self, key) is not None:
                config[key] = getattr(self, key)
        if type(self)._update is BaseOptimizer._update:
            return config  # a subclass without a rule of ours says what it takes
        config["learning_rate"] = self._serialized("learning_rate")
        config["decay"] = self._hypers["decay"]
        config.update({n: self._serialized(n) for n in self._config_names})
        config.update({n: getattr(self, n) for n in self._config_plain})
        return config


class SGD(rules.SGDRule, Optimizer):
    """Keras 2.10's SGD, whose momentum may be set later."""

    _config_names, _config_plain = ("momentum",), ("nesterov",)

    def __init__(
        self, learning_rate=0.01, momentum=0.0, nesterov=False, name="SGD", **kwargs
    ):
        if isinstance(momentum, (int, float)) and not 0 <= momentum <= 1:
            raise ValueError(
                f"`momentum` must be between [0, 1]. Received: momentum={momentum} "
                f"(of type {type(momentum)})."
            )
        self._set_up(name, learning_rate, dict(momentum=momentum), kwargs)
        self._momentum, self.nesterov = bool(momentum), nesterov


_FTRL = rules.takes(  # in another order than the newer one's
    "learning_rate=0.001, learning_rate_power=-0.5, initial_accumulator_value=0.1, "
    "l1_regularization_strength=0.0, l2_regularization_strength=0.0, name='Ftrl', "
    "l2_shrinkage_regularization_strength=0.0, beta=0.0"
)
add_classes(
    globals(),
    """
Adam(rules.AdamRule, Optimizer)
    Keras 2.10's Adam.
RMSprop(rules.RMSpropRule, Optimizer)
    Keras 2.10's RMSprop.
Adagrad(rules.AdagradRule, Optimizer)
    Keras 2.10's Adagrad.
Ftrl(rules.FtrlRule, Optimizer, __init__=_FTRL)
    Keras 2.10's Ftrl: other order of arguments than the newer one's.
Adadelta(rules.AdadeltaRule, Optimizer)
    Keras 2.10's Adadelta.
Adamax(rules.AdamaxRule, Optimizer)
    Keras 2.10's Adamax.
""",
)


class Nadam(nadam.NadamRule, Optimizer):
    """Keras 2.10's Nadam, which takes no schedule as its learning rate."""

    _product_name = "momentum_cache"
    _schedule_decay = 0.004

    def _set_up(self, name, learning_rate, hypers, kwargs):
        kwargs = dict(kwargs)
        object.__setattr__(self, "_schedule_decay", kwargs.pop("schedule_decay", 0.004))
        learning_rate = kwargs.get("lr", learning_rate)
        if isinstance(learning_rate, LearningRateSchedule):
            raise ValueError(
                "The Nadam optimizer does not support "
                "tf.keras.optimizers.LearningRateSchedules as the learning rate."
            )
        super()._set_up(name, learning_rate, hypers, kwargs)

    def get_config(self):
        """Adds decay: that of the momentum's schedule."""
        return {**super().get_config(), "decay": self._schedule_decay}
