"""Loss scales: losses are multiplied before gradients are taken and these divided after,
so that small numbers in float16 do not vanish."""

import abc

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework.settings import config, logging
from headrace.framework.trackable import AutoTrackable
from headrace.v1.train.optimizer.base import Optimizer
from headrace.v1.variable_scope import variable_v1


class LossScale(AutoTrackable, metaclass=abc.ABCMeta):
    """Base of loss scales: called, one gives its value, a float32 scalar."""

    def __init__(self):
        object.__setattr__(self, "_weights", {})  # by name and graph

    @abc.abstractmethod
    def __call__(self):
        """The scale now, a float32 scalar tensor."""

    @abc.abstractmethod
    def update(self, grads):
        """Changes the scale by gradients, a structure of tensors, that have been divided
        by it.

        Returns:
          (an operation that does it, None eagerly; whether the gradients are to be
          applied, a bool or a tensor of one).
        """

    @abc.abstractmethod
    def get_config(self):
        """The constructor's arguments as a dict, for from_config()."""

    @classmethod
    def from_config(cls, config):
        """A loss scale of what get_config() gave."""
        return cls(**config)

    def _add_weight(self, name, initial_value, dtype=None):
        """A variable of the loss scale, of the graph of here; checkpoints know it by its
        name."""
        with stack.init_scope():
            made = variable_v1(
                initial_value=initial_value,
                name=name,
                dtype=dtype,
                trainable=False,
                use_resource=True,
            )
        self._track_trackable(made, name, overwrite=True)
        self._weights[name, stack.outside_functions()] = made
        return made

    def _weight(self, name):
        found = self._weights.get((name, stack.outside_functions()))
        if found is None:
            raise RuntimeError(
                f"{type(self).__name__}: the variable {name} was made in another graph"
            )
        return found


class FixedLossScale(LossScale):
    """A loss scale that stays as it is: a number, at least 1."""

    def __init__(self, loss_scale_value):
        super().__init__()
        if not isinstance(loss_scale_value, (int, float)):
            raise ValueError("loss_scale_value must be a Python int or float.")
        if loss_scale_value < 1:
            raise ValueError("loss_scale_value must be at least 1.")
        self._loss_scale_value = float(loss_scale_value)

    def __call__(self):
        return tf.convert_to_tensor(self._loss_scale_value)

    def update(self, grads):
        """(nothing to be done, True)."""
        return tf.no_op(), True

    def __repr__(self):
        return f"FixedLossScale({self._loss_scale_value})"

    def get_config(self):
        """{"loss_scale_value": the number}."""
        return {"loss_scale_value": self._loss_scale_value}


def _all_finite(grads):
    """Whether all numbers of some gradients are finite; None is no gradient."""
    flat = [
        g.values if isinstance(g, tf.IndexedSlices) else g
        for g in tf.nest.flatten(grads)
        if g is not None
    ]
    if not flat:
        return tf.constant(True)
    return tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g in flat])


class DynamicLossScale(LossScale):
    """A loss scale that is multiplied after increment_period steps with finite gradients,
    and divided, by the same, after one without; it stays at least 1."""

    def __init__(self, initial_loss_scale=2**15, increment_period=2000, multiplier=2.0):
        super().__init__()
        self._initial_loss_scale = float(initial_loss_scale)
        self._increment_period = int(increment_period)
        self._multiplier = float(multiplier)
        self._add_weight("current_loss_scale", self._initial_loss_scale, tf.float32)
        self._add_weight("good_steps", 0, tf.int64)

    initial_loss_scale = read_only("_initial_loss_scale", "The first value: a float.")
    increment_period = read_only(
        "_increment_period", "The steps that are to go well before the scale grows."
    )
    multiplier = read_only(
        "_multiplier", "What the scale is multiplied and divided by."
    )

    def __call__(self):
        return tf.convert_to_tensor(self._weight("current_loss_scale"))

    def update(self, grads):
        """(the change of the scale, whether all gradients are finite)."""
        finite = _all_finite(grads)
        scale = self._weight("current_loss_scale")
        steps = self._weight("good_steps")
        now, count = scale.read_value(), steps.read_value() + 1
        grown = now * self._multiplier
        full = count >= self._increment_period
        grown = tf.where(full & tf.math.is_finite(grown), grown, now)
        less = tf.maximum(now / self._multiplier, 1.0)
        none = tf.zeros_like(count)
        with tf.control_dependencies([now, count]):
            changes = [
                scale.assign(tf.where(finite, grown, less), read_value=False),
                steps.assign(tf.where(finite & ~full, count, none), read_value=False),
            ]
        return None if _headrace.is_eager() else tf.group(*changes), finite

    def __repr__(self):
        config = ", ".join(f"{k}={v}" for k, v in self.get_config().items())
        if not _headrace.is_eager():
            return f"DynamicLossScale({config})"
        now = self._weight("current_loss_scale").numpy()
        steps = self._weight("good_steps").numpy()
        return (
            f"DynamicLossScale(current_loss_scale={now}, num_good_steps={steps}, "
            f"{config})"
        )

    def get_config(self):
        """The constructor's arguments as a dict, for from_config()."""
        names = ("initial_loss_scale", "increment_period", "multiplier")
        return {name: getattr(self, name) for name in names}


def get(identifier):
    """The loss scale that an argument stands for: a number, "dynamic", or one itself."""
    if isinstance(identifier, (int, float)):
        return FixedLossScale(identifier)
    if identifier == "dynamic":
        return DynamicLossScale()
    if isinstance(identifier, LossScale):
        return identifier
    if identifier is None:
        raise ValueError("loss_scale cannot be None")
    raise ValueError(f"Could not interpret loss scale identifier: {identifier}")


class MixedPrecisionLossScaleOptimizer(Optimizer):
    """An optimizer around another that takes gradients of the scaled loss and applies
    them where they are finite."""

    def __init__(self, opt, loss_scale):
        if not isinstance(opt, Optimizer):
            raise ValueError(
                f'"opt" must be an instance of Optimizer, but got: {type(opt)}'
            )
        self._optimizer = opt
        super().__init__(opt._use_locking, opt._name)
        self._loss_scale = get(loss_scale)
        self._track_trackable(opt, "base_optimizer")
        self._track_trackable(self._loss_scale, "loss_scale")

    def compute_gradients(
        self,
        loss,
        var_list=None,
        gate_gradients=Optimizer.GATE_OP,
        aggregation_method=None,
        colocate_gradients_with_ops=False,
        grad_loss=None,
    ):
        """(gradient, variable) pairs of a loss: those of the scaled one, divided."""
        pairs = self._optimizer.compute_gradients(
            self._scaled(loss),
            var_list,
            gate_gradients,
            aggregation_method,
            colocate_gradients_with_ops,
            grad_loss,
        )
        share = 1 / self._loss_scale()
        return [(_times(gradient, share), variable) for gradient, variable in pairs]

    def _scaled(self, loss):
        if callable(loss):
            return lambda: self._scaled(loss())
        return loss * tf.cast(self._loss_scale(), loss.dtype)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Changes the scale and, where the gradients are finite, variables and step."""
        pairs = tuple(grads_and_vars)
        change, right = self._loss_scale.update([gradient for gradient, _ in pairs])

        def apply():
            done = self._optimizer.apply_gradients(pairs, global_step, name)
            return () if done is None else tf.group(done)

        if _headrace.is_eager():
            if bool(right):
                apply()
            return None
        if right is True:
            applied = apply()
        else:
            with stack.init_scope():
                given = [v for gradient, v in pairs if gradient is not None]
                self._optimizer._create_slots(given)
            applied = tf.cond(right, _giving_nothing(apply), _giving_nothing(tf.no_op))
        return tf.group(applied, change, name=name or self._name)

    def variables(self):
        """What the optimizer and the loss scale remember."""
        graph = stack.outside_functions()
        own = [v for (_, at), v in self._loss_scale._weights.items() if at is graph]
        return [*self._optimizer.variables(), *own]


def _giving_nothing(function):
    """A branch for its effects: a function that gives a constant behind them."""

    def branch():
        done = function()
        with tf.control_dependencies([done] if done is not None and done != () else []):
            return tf.constant(True)

    return branch


def _times(gradient, share):
    if gradient is None:
        return None
    share = tf.cast(share, gradient.dtype)
    if isinstance(gradient, tf.IndexedSlices):
        scaled = gradient.values * share
        return tf.IndexedSlices(scaled, gradient.indices, gradient.dense_shape)
    return gradient * share


def enable_mixed_precision_graph_rewrite(opt, loss_scale="dynamic"):
    """Asks for graphs in small floats where that is faster, and scales losses.

    The rewrite is of GPUs: on a CPU graphs stay as they are, as in TensorFlow.

    Args:
      opt: a tf.compat.v1.train.Optimizer.
      loss_scale: a number, "dynamic" or a LossScale.

    Returns:
      `opt` in a MixedPrecisionLossScaleOptimizer.

    Raises:
      ValueError: if `opt` is none, or one that scales losses already, or loss_scale is
        None.
    """
    if isinstance(opt, MixedPrecisionLossScaleOptimizer):
        raise ValueError(
            '"opt" must not already be an instance of a MixedPrecisionLossScaleOptimizer.'
            " `enable_mixed_precision_graph_rewrite` will automatically wrap the "
            "optimizer with a MixedPrecisionLossScaleOptimizer."
        )
    if isinstance(opt, tf.keras.optimizers.legacy.Optimizer):
        raise NotImplementedError(
            "enable_mixed_precision_graph_rewrite: optimizers of Keras are not supported"
        )
    if not isinstance(opt, Optimizer):
        raise ValueError(
            '"opt" must be an instance of a tf.train.Optimizer or a '
            f"tf.keras.optimizers.Optimizer, but got: {opt}"
        )
    wrapped = MixedPrecisionLossScaleOptimizer(opt, loss_scale)
    config.set_optimizer_experimental_options({"auto_mixed_precision": True})
    return wrapped


def disable_mixed_precision_graph_rewrite():
    """Asks no longer for what enable_mixed_precision_graph_rewrite() asks for."""
    if not config.get_optimizer_experimental_options().get("auto_mixed_precision"):
        logging.warning(
            "disable_mixed_precision_graph_rewrite() called when mixed precision is "
            "already disabled."
        )
    config.set_optimizer_experimental_options({"auto_mixed_precision": False})
