"""tf.keras.mixed_precision.LossScaleOptimizer: gradients of a loss that is scaled up.

Gradients of float16 vanish where they are small, so the loss is multiplied before they
are taken, and they are divided by the same.
"""

import functools

from headrace import _api as tf
from headrace.context import strategies
from headrace.framework.settings import logging
from headrace.framework.trackable import AutoTrackable, node_of
from headrace.keras.base.tracking import attach_new
from headrace.keras.optimizer import registry
from headrace.keras.optimizer.base import BaseOptimizer, aggregates, with_gradients

_INITIAL_SCALE = 2.0**15
_GROWTH_STEPS = 2000
_SHARED = "_loss_scaling"  # the attribute of an optimizer that says how it scales


class _Scale(AutoTrackable):
    """The loss scale, and how many steps it was right for."""

    def __init__(self, initial, growth_steps):
        self.growth_steps = growth_steps
        for name, value, dtype in (
            ("current_loss_scale", initial, tf.float32),
            ("good_steps", 0, tf.int64),
        ):
            variable = tf.Variable(value, trainable=False, name=name, dtype=dtype)
            setattr(self, name, variable)

    def update(self, is_finite):
        """Moves on after a step, whose gradients were finite or not."""
        scale, steps = self.current_loss_scale, self.good_steps
        good = steps._read() + 1
        grows = good >= self.growth_steps
        doubled = scale._read() * 2.0
        larger = tf.where(tf.math.is_finite(doubled), doubled, scale._read())
        kept = tf.where(grows, larger, scale._read())
        halved = tf.maximum(scale._read() / 2.0, 1.0)
        zero = tf.zeros([], tf.int64)
        new_steps = tf.where(is_finite & ~grows, good, zero)
        scale.assign(tf.where(is_finite, kept, halved), read_value=False)
        steps.assign(new_steps, read_value=False)


def _is_finite(gradients):
    """Whether all of the gradients are, a bool tensor."""
    values = [getattr(g, "values", g) for g in gradients if g is not None]
    return tf.reduce_all(
        [tf.reduce_all(tf.math.is_finite(tf.convert_to_tensor(v))) for v in values]
    )


class LossScaleOptimizer:
    """An optimizer whose loss is scaled up, so that float16 can hold the gradients.

    With `dynamic` the scale begins as initial_scale, 2**15 by default, is doubled after
    dynamic_growth_steps steps (2000) with finite gradients, and halved where some are
    not; that step changes no variable. Else it stays initial_scale. minimize() does all
    of it; where a program has a tape of its own, get_scaled_loss() is what it takes the
    gradients of, and apply_gradients() gets what get_unscaled_gradients() makes of
    them. All other attributes are the inner optimizer's.
    """

    _keras_module = "tf_keras.src.mixed_precision.loss_scale_optimizer"

    def __new__(cls, inner_optimizer=None, *args, **kwargs):
        if isinstance(inner_optimizer, LossScaleOptimizer):
            raise TypeError(
                "LossScaleOptimizer cannot wrap another LossScaleOptimizer, but got: "
                f"{inner_optimizer}"
            )
        if not isinstance(inner_optimizer, BaseOptimizer):
            raise TypeError(
                '"inner_optimizer" must be an instance of '
                "`tf.keras.optimizers.Optimizer` or "
                "`tf.keras.optimizers.experimental.Optimizer`, but got: "
                f"{inner_optimizer}."
            )
        return object.__new__(_class_around(type(inner_optimizer)))

    def __init__(
        self,
        inner_optimizer,
        dynamic=True,
        initial_scale=None,
        dynamic_growth_steps=None,
    ):
        if not isinstance(dynamic, bool):
            raise TypeError(
                '"dynamic" argument to LossScaleOptimizer.__init__ must be a bool, but '
                f"got: {dynamic!r}"
            )
        if not dynamic and initial_scale is None:
            raise ValueError('"initial_scale" must be specified if "dynamic" is False')
        if not dynamic and dynamic_growth_steps is not None:
            raise ValueError(
                '"dynamic_growth_steps" must be None if "dynamic" is False, but got: '
                f"{dynamic_growth_steps}"
            )
        # The optimizer itself, seen as another class: its state is one.
        object.__setattr__(self, "__dict__", inner_optimizer.__dict__)
        initial = float(_INITIAL_SCALE if initial_scale is None else initial_scale)
        steps = _GROWTH_STEPS if dynamic_growth_steps is None else dynamic_growth_steps
        with tf.init_scope():
            scale = _Scale(initial, int(steps)) if dynamic else None
        shared = {"inner": inner_optimizer, "initial": initial, "scale": scale}
        self.__dict__[_SHARED] = {**shared, "knows": False}
        if scale is not None:
            attach_new(node_of(inner_optimizer), "loss_scale", scale)

    def _reference_node(self):
        return node_of(self.inner_optimizer)

    @property
    def inner_optimizer(self):
        """The optimizer that it was made with."""
        return self.__dict__[_SHARED]["inner"]

    @property
    def dynamic(self):
        """Whether the scale changes."""
        return self.__dict__[_SHARED]["scale"] is not None

    @property
    def initial_scale(self):
        """The scale of the first step, a float."""
        return self.__dict__[_SHARED]["initial"]

    @property
    def loss_scale(self):
        """The scale now, a float32 tensor."""
        scale = self.__dict__[_SHARED]["scale"]
        if scale is None:
            return tf.constant(self.initial_scale, tf.float32)
        return tf.convert_to_tensor(scale.current_loss_scale)

    @property
    def dynamic_counter(self):
        """How many steps had finite gradients since the scale changed: an int64
        variable; None without `dynamic`."""
        return self.__dict__[_SHARED]["scale"].good_steps if self.dynamic else None

    @property
    def dynamic_growth_steps(self):
        """After how many such steps the scale is doubled; None without `dynamic`."""
        return self.__dict__[_SHARED]["scale"].growth_steps if self.dynamic else None

    def get_scaled_loss(self, loss):
        """The loss, or a function that gives it, times the scale."""
        self.__dict__[_SHARED]["knows"] = True
        if callable(loss):
            return lambda: self.get_scaled_loss(loss())
        return loss * tf.cast(self.loss_scale, loss.dtype)

    def get_unscaled_gradients(self, grads):
        """A list of the gradients divided by the scale; None stays."""
        self.__dict__[_SHARED]["knows"] = True
        inverse = 1.0 / self.loss_scale
        return [self._unscaled(g, inverse) for g in grads]

    @staticmethod
    def _unscaled(gradient, inverse):
        if isinstance(gradient, tf.IndexedSlices):
            values = gradient.values * tf.cast(inverse, gradient.values.dtype)
            return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
        return None if gradient is None else gradient * tf.cast(inverse, gradient.dtype)

    def compute_gradients(self, loss, var_list, tape=None, grad_loss=None):
        """A list of (gradient, variable) of the loss, as the inner optimizer's; taken of
        the scaled loss."""
        scaled = self.loss_scale
        if grad_loss is not None or not callable(loss):
            like = loss if grad_loss is None else grad_loss
            ones = tf.ones_like(loss) if grad_loss is None else grad_loss
            scaled = ones * tf.cast(scaled, like.dtype)
        else:
            loss = self.get_scaled_loss(loss)
            scaled = grad_loss
        pairs = self.inner_optimizer.compute_gradients(loss, var_list, tape, scaled)
        found = self.get_unscaled_gradients([g for g, _ in pairs])
        return [(g, v) for g, (_, v) in zip(found, pairs)]

    _compute_gradients = compute_gradients

    def apply_gradients(self, grads_and_vars, name=None, **kwargs):
        """Updates variables by their gradients where all of these are finite; counts
        the step and moves the scale on."""
        shared = self.__dict__[_SHARED]
        if not shared["knows"]:
            logging.warn(
                "LossScaleOptimizer.apply_gradients() was called, but neither "
                "get_scaled_loss() nor get_unscaled_gradients() before it, so that the "
                "gradients are not those of the scaled loss"
            )
        pairs, inner = tuple(grads_and_vars), self.inner_optimizer
        if shared["scale"] is None:
            return inner.apply_gradients(pairs, name=name, **kwargs)
        replica = strategies.replica()
        if replica is not None and (known := with_gradients(pairs)):
            variables = [v for _, v in known]
            replica.merge_call(lambda _: inner._make_ready(variables))
            known = inner._combined(known, aggregates(kwargs))
            return replica.merge_call(self._apply_to_copies, (known, name))
        variables = [v for g, v in pairs if g is not None]
        if variables:
            inner.build(variables)
        is_finite = _is_finite([g for g, _ in pairs])
        count = tf.cond(
            is_finite,
            lambda: tf.cast(inner.apply_gradients(pairs, name, **kwargs), tf.int64),
            lambda: tf.cast(inner.iterations.assign_add(1), tf.int64),
        )
        with tf.control_dependencies([count]):
            shared["scale"].update(is_finite)
        return count

    def _apply_to_copies(self, strategy, pairs, name):
        """Called once for all replicas, which all update or none: it asks whether the
        gradients of all are finite."""
        inner = self.inner_optimizer
        given, variables = [g for g, _ in pairs], [v for _, v in pairs]
        all_given = [g for x in given for g in strategy.experimental_local_results(x)]
        is_finite = _is_finite(all_given)

        def update():
            inner._apply_to_copies(strategy, given, variables, name)
            return tf.cast(inner.iterations._read(), tf.int64)

        def skip():
            inner.iterations.assign_add(1, read_value=False)
            return tf.cast(inner.iterations._read(), tf.int64)

        count = tf.cond(is_finite, update, skip)
        with tf.control_dependencies([count]):
            self.__dict__[_SHARED]["scale"].update(is_finite)
        return count

    def get_config(self):
        """The arguments as a dict, for from_config(); the inner optimizer as its own
        configuration."""
        return {
            "inner_optimizer": registry.serialize(self.inner_optimizer),
            "dynamic": self.dynamic,
            "initial_scale": self.initial_scale,
            "dynamic_growth_steps": self.dynamic_growth_steps,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """An optimizer of what get_config() gave."""
        config = dict(config)
        inner = config.pop("inner_optimizer")
        if isinstance(inner, dict):
            inner = registry.deserialize(inner, custom_objects)
        return LossScaleOptimizer(inner, **config)


@functools.cache
def _class_around(inner):
    """The class of a LossScaleOptimizer of optimizers of a class."""
    name = "LossScaleOptimizer" if inner._is_legacy else "LossScaleOptimizerV3"
    members = {"__module__": __name__, "_registered_as": name}
    return type(name, (LossScaleOptimizer, inner), members)


for _name in ("LossScaleOptimizer", "LossScaleOptimizerV3"):
    registry.add(_name, LossScaleOptimizer)
