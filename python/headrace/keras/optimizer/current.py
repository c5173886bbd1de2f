"""tf.keras.optimizers: the interface since Keras 2.11."""

from headrace.keras.optimizer import rules
from headrace.keras.optimizer.base import BaseOptimizer

_COMMON = {
    "weight_decay": None,
    "clipnorm": None,
    "clipvalue": None,
    "global_clipnorm": None,
    "use_ema": False,
    "ema_momentum": 0.99,
    "ema_overwrite_frequency": None,
    "jit_compile": False,
}


class Optimizer(BaseOptimizer):
    """Base of the optimizers of tf.keras.optimizers."""

    _keras_module = "keras.optimizers"

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if not cls.__module__.startswith("headrace.keras"):
            cls._keras_module = cls.__module__

    def _set_up(self, name, learning_rate, hypers, common):
        common = {**_COMMON, **common}
        hypers = dict(hypers)
        if "decay" in common:
            hypers["decay"] = common.pop("decay")
        unknown = [k for k in common if k not in _COMMON and k != "lr"]
        if unknown:
            raise TypeError(
                f"{unknown} are not valid arguments, kwargs should be empty  for "
                "`optimizer_experimental.Optimizer`."
            )
        if common["use_ema"]:
            raise NotImplementedError(f"{name}: use_ema is not supported")
        limits = {k: common[k] for k in ("clipnorm", "clipvalue", "global_clipnorm")}
        BaseOptimizer.__init__(
            self,
            name,
            common.get("lr", learning_rate),
            hypers,
            limits,
            common["weight_decay"],
        )
        self.jit_compile = common["jit_compile"]

    def update_step(self, gradient, variable):
        """One variable's update, for subclasses of the user."""
        raise NotImplementedError

    def _update(self, gradient, variable, slots, known):
        self.update_step(gradient, variable)

    def __init__(self, name="Optimizer", learning_rate=0.0, **kwargs):
        self._set_up(name, learning_rate, {}, kwargs)

    def add_variable_from_reference(
        self, model_variable, variable_name, shape=None, initial_value=None
    ):
        return self.add_slot(model_variable, variable_name, initial_value, shape)

    def _own_config(self):
        return {}

    def get_config(self):
        return {
            "name": self._name,
            "weight_decay": self.weight_decay,
            "clipnorm": self.clipnorm,
            "global_clipnorm": self.global_clipnorm,
            "clipvalue": self.clipvalue,
            "use_ema": False,
            "ema_momentum": 0.99,
            "ema_overwrite_frequency": None,
            "jit_compile": self.jit_compile,
            "is_legacy_optimizer": False,
            "learning_rate": self._serialized("learning_rate"),
            **self._own_config(),
        }


class SGD(rules.SGDRule, Optimizer):
    def __init__(
        self, learning_rate=0.01, momentum=0.0, nesterov=False, name="SGD", **kwargs
    ):
        if isinstance(momentum, (int, float)) and not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be between [0, 1].")
        self._set_up(name, learning_rate, {}, kwargs)
        self.momentum, self._momentum = momentum, bool(momentum)
        self.nesterov = nesterov

    def _value(self, name, dtype):
        if name == "momentum":
            import headrace as tf

            return tf.constant(self.momentum, dtype)
        return super()._value(name, dtype)

    def _own_config(self):
        return {"momentum": self.momentum, "nesterov": self.nesterov}


class Adam(rules.AdamRule, Optimizer):
    def __init__(
        self,
        learning_rate=0.001,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-7,
        amsgrad=False,
        name="Adam",
        **kwargs,
    ):
        hypers = dict(beta_1=beta_1, beta_2=beta_2)
        self._set_up(name, learning_rate, hypers, kwargs)
        self.epsilon, self.amsgrad = epsilon, amsgrad

    def _own_config(self):
        return {
            "beta_1": float(self._hypers["beta_1"]),
            "beta_2": float(self._hypers["beta_2"]),
            "epsilon": self.epsilon,
            "amsgrad": self.amsgrad,
        }


class AdamW(Adam):
    """Adam with weights that decay by themselves."""

    def __init__(
        self,
        learning_rate=0.001,
        weight_decay=0.004,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-7,
        amsgrad=False,
        name="AdamW",
        **kwargs,
    ):
        super().__init__(
            learning_rate,
            beta_1,
            beta_2,
            epsilon,
            amsgrad,
            name,
            weight_decay=weight_decay,
            **kwargs,
        )
        if weight_decay is None:
            raise ValueError("Missing value of `weight_decay` which is required.")


class RMSprop(rules.RMSpropRule, Optimizer):
    def __init__(
        self,
        learning_rate=0.001,
        rho=0.9,
        momentum=0.0,
        epsilon=1e-7,
        centered=False,
        name="RMSprop",
        **kwargs,
    ):
        hypers = dict(rho=rho, momentum=momentum)
        self._set_up(name, learning_rate, hypers, kwargs)
        self._momentum = bool(momentum)
        self.epsilon, self.centered = epsilon, centered

    def _own_config(self):
        return {
            "rho": float(self._hypers["rho"]),
            "momentum": float(self._hypers["momentum"]),
            "epsilon": self.epsilon,
            "centered": self.centered,
        }


class Adagrad(rules.AdagradRule, Optimizer):
    def __init__(
        self,
        learning_rate=0.001,
        initial_accumulator_value=0.1,
        epsilon=1e-7,
        name="Adagrad",
        **kwargs,
    ):
        self._set_up(name, learning_rate, {}, kwargs)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon

    def _own_config(self):
        return {
            "initial_accumulator_value": self.initial_accumulator_value,
            "epsilon": self.epsilon,
        }


class Ftrl(rules.FtrlRule, Optimizer):
    def __init__(
        self,
        learning_rate=0.001,
        learning_rate_power=-0.5,
        initial_accumulator_value=0.1,
        l1_regularization_strength=0.0,
        l2_regularization_strength=0.0,
        l2_shrinkage_regularization_strength=0.0,
        beta=0.0,
        name="Ftrl",
        **kwargs,
    ):
        hypers = dict(
            learning_rate_power=learning_rate_power,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
            beta=beta,
        )
        if initial_accumulator_value < 0.0:
            raise ValueError(
                "`initial_accumulator_value` needs to be positive or zero. Received: "
                f"initial_accumulator_value={initial_accumulator_value}."
            )
        self._set_up(name, learning_rate, hypers, kwargs)
        self.initial_accumulator_value = initial_accumulator_value
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength

    def _own_config(self):
        names = (
            "learning_rate_power",
            "l1_regularization_strength",
            "l2_regularization_strength",
            "beta",
        )
        return {
            "initial_accumulator_value": self.initial_accumulator_value,
            "l2_shrinkage_regularization_strength": (
                self.l2_shrinkage_regularization_strength
            ),
            **{n: float(self._hypers[n]) for n in names},
        }


class Adadelta(rules.AdadeltaRule, Optimizer):
    def __init__(
        self, learning_rate=0.001, rho=0.95, epsilon=1e-7, name="Adadelta", **kwargs
    ):
        self._set_up(name, learning_rate, dict(rho=rho), kwargs)
        self.epsilon = epsilon

    def _own_config(self):
        return {"rho": float(self._hypers["rho"]), "epsilon": self.epsilon}


class Adamax(rules.AdamaxRule, Optimizer):
    def __init__(
        self,
        learning_rate=0.001,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-7,
        name="Adamax",
        **kwargs,
    ):
        hypers = dict(beta_1=beta_1, beta_2=beta_2)
        self._set_up(name, learning_rate, hypers, kwargs)
        self.epsilon = epsilon

    def _own_config(self):
        return {
            "beta_1": float(self._hypers["beta_1"]),
            "beta_2": float(self._hypers["beta_2"]),
            "epsilon": self.epsilon,
        }
