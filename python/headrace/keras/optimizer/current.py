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
    _config_names = ()
    _config_plain = ()

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

    def _number(self, name):
        """A hyper-parameter as it was given, or what it was changed to since."""
        given = self._hypers[name]
        variable = self._hyper_variables.get(name)
        if variable is None:
            return float(given() if callable(given) else given)
        now = variable.numpy()
        return float(given if now.dtype.type(given) == now else now)

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
            **{n: self._number(n) for n in self._config_names},
            **{n: getattr(self, n) for n in self._config_plain},
        }


class SGD(rules.SGDRule, Optimizer):
    _config_plain = ("momentum", "nesterov")

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


class Adam(rules.AdamRule, Optimizer):
    pass


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
    pass


class Adagrad(rules.AdagradRule, Optimizer):
    pass


class Ftrl(rules.FtrlRule, Optimizer):
    pass


class Adadelta(rules.AdadeltaRule, Optimizer):
    pass


class Adamax(rules.AdamaxRule, Optimizer):
    pass
