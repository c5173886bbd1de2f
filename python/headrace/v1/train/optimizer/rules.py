"""The optimizers of tf.compat.v1.train, with slots named as in TensorFlow 1."""

from headrace import _api as tf
from headrace._load import raw
from headrace.framework.support import signatures
from headrace.v1.train.optimizer.base import Optimizer, beside, is_resource


_ATTRIBUTES = {
    "initial_accumulator_value": "_initial",
    "l1_regularization_strength": "_l1",
    "l2_regularization_strength": "_l2",
    "l2_shrinkage_regularization_strength": "_shrinkage",
    "learning_rate_power": "_power",
    "initial_gradient_squared_accumulator_value": "_initial",
}


def takes(text):
    """A constructor of those parameters, each kept as an attribute: `_rho` for rho."""

    def begin(self, use_locking, name, **given):
        own = given.pop("use_own_namescope_for_non_slot_vars", False)
        Optimizer.__init__(self, use_locking, name, own)
        for key, value in given.items():
            attribute = self._attributes.get(key) or _ATTRIBUTES.get(key, f"_{key}")
            setattr(self, attribute, value)
        self._begin()

    return signatures.constructor(text, begin)


def numbers(text):
    """{input of an op: attribute} of a text such as "lr=learning_rate momentum"."""
    pairs = (word.partition("=") for word in text.split())
    return {name: f"_{attribute or name}" for name, _, attribute in pairs}


def check_positive(name, value):
    """ValueError where it is not."""
    if value <= 0.0:
        raise ValueError(f"{name} must be positive: {value}")


class GradientDescentOptimizer(Optimizer):
    """Takes `learning_rate` times the gradient from each variable."""

    _more_numbers = ("_learning_rate",)

    __init__ = takes("learning_rate, use_locking=False, name='GradientDescent'")

    def _change(self, gradient, variable):
        rate = self._number("_learning_rate", variable)
        self._update("ApplyGradientDescent", variable, alpha=rate, delta=gradient)

    def _change_rows(self, values, rows, variable):
        rate = self._number("_learning_rate", variable)
        _add_rows(self, variable, rows, -values * rate)


def _add_rows(optimizer, variable, rows, values):
    """Adds to rows of a variable."""
    if is_resource(variable):
        raw.ResourceScatterAdd(variable.handle, rows, values)
        return optimizer._done(None)
    added = raw.ScatterAdd(variable._ref(), rows, values)
    return optimizer._done(added)


class MomentumOptimizer(Optimizer):
    """Down the gradients of late."""

    _op = "Momentum"
    _slots_begin = {"momentum": 0}
    _slot_inputs = {"momentum": "accum"}
    _number_inputs = numbers("lr=learning_rate momentum")

    __init__ = takes(
        "learning_rate, momentum, use_locking=False, name='Momentum', "
        "use_nesterov=False"
    )

    def _arguments(self, variable):
        return {**super()._arguments(variable), "use_nesterov": self._use_nesterov}


class AdamOptimizer(Optimizer):
    """By the means of gradients and of their squares."""

    _attributes = {"learning_rate": "_lr"}
    _op = "Adam"
    _slots_begin = {"m": 0, "v": 0}
    _number_inputs = numbers("lr beta1 beta2 epsilon")

    __init__ = takes(
        "learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, "
        "use_locking=False, name='Adam', use_own_namescope_for_non_slot_vars=False"
    )

    def _create_slots(self, variables):
        self._make_plain("beta1_power", self._value(self._beta1))
        self._make_plain("beta2_power", self._value(self._beta2))
        super()._create_slots(variables)

    def _get_beta_accumulators(self):
        """beta1 and beta2 to the power of the steps so far, as variables."""
        return self._plain_variable("beta1_power"), self._plain_variable("beta2_power")

    def _arguments(self, variable):
        powers = dict(zip(("beta1_power", "beta2_power"), self._powers(variable)))
        return {**powers, **super()._arguments(variable)}

    def _powers(self, variable):
        """The values of the accumulators, like the variable."""
        dtype = variable.dtype.base_dtype
        return [
            tf.cast(tf.convert_to_tensor(p), dtype)
            for p in self._get_beta_accumulators()
        ]

    def _change_rows(self, values, rows, variable):
        beta1, beta2 = (self._number(b, variable) for b in ("_beta1", "_beta2"))
        p1, p2 = self._powers(variable)
        rate = self._number("_lr", variable) * tf.sqrt(1 - p2) / (1 - p1)
        means = {}
        for name, beta, part in (
            ("m", beta1, values * (1 - beta1)),
            ("v", beta2, values * values * (1 - beta2)),
        ):
            slot = self.get_slot(variable, name)
            faded = self._assign(slot, slot.read_value() * beta)
            with tf.control_dependencies([faded]):
                added = _add_rows(self, slot, rows, part)
            with tf.control_dependencies([added]):
                means[name] = slot.read_value()
        epsilon = self._number("_epsilon", variable)
        change = rate * means["m"] / (tf.sqrt(means["v"]) + epsilon)
        self._done(variable.assign_sub(change, read_value=False))

    def _assign(self, variable, value):
        return self._done(variable.assign(value, read_value=False))

    def _after_updates(self):
        for power, beta in zip(self._get_beta_accumulators(), ("_beta1", "_beta2")):
            with beside(power):
                self._assign(power, power.value() * self._number(beta, power))


class AdagradOptimizer(Optimizer):
    """Rates fall with the squares seen so far."""

    _op = "Adagrad"
    _slots_begin = {"accumulator": "_initial"}
    _slot_inputs = {"accumulator": "accum"}
    _number_inputs = numbers("lr=learning_rate")

    __init__ = takes(
        "learning_rate, initial_accumulator_value=0.1, use_locking=False, "
        "name='Adagrad'"
    )

    def _begin(self):
        check_positive("initial_accumulator_value", self._initial)


class AdadeltaOptimizer(Optimizer):
    """Rates by a window of squares."""

    _attributes = {"learning_rate": "_lr"}
    _op = "Adadelta"
    _slots_begin = {"accum": 0, "accum_update": 0}
    _number_inputs = numbers("lr rho epsilon")
    _number_names = {}

    __init__ = takes(
        "learning_rate=0.001, rho=0.95, epsilon=1e-8, use_locking=False, "
        "name='Adadelta'"
    )


class RMSPropOptimizer(Optimizer):
    """Rates by the mean square, centred or not."""

    _slot_inputs = {"rms": "ms", "momentum": "mom"}
    _number_inputs = numbers("lr=learning_rate rho=decay momentum epsilon")

    __init__ = takes(
        "learning_rate, decay=0.9, momentum=0.0, epsilon=1e-10, "
        "use_locking=False, centered=False, name='RMSProp'"
    )

    def _begin(self):
        self._op = "CenteredRMSProp" if self._centered else "RMSProp"

    @property
    def _slots_begin(self):
        mean = {"mg": 0} if self._centered else {}
        return {"rms": 1, **mean, "momentum": 0}


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader."""

    _slots_begin = {"accum": "_initial", "linear": 0}
    _number_inputs = numbers("lr=learning_rate l1")
    _more_numbers = ("_l2", "_beta", "_power", "_shrinkage")

    __init__ = takes(
        "learning_rate, learning_rate_power=-0.5, initial_accumulator_value=0.1, "
        "l1_regularization_strength=0.0, l2_regularization_strength=0.0, "
        "use_locking=False, name='Ftrl', accum_name=None, linear_name=None, "
        "l2_shrinkage_regularization_strength=0.0, beta=None"
    )

    def _begin(self):
        for what, attribute in _ATTRIBUTES.items():
            value = getattr(self, attribute, 0.0)
            if value < 0.0 and what != "learning_rate_power":
                raise ValueError(
                    f"{what} {value} needs to be greater than or equal to zero"
                )
        if self._power > 0.0:
            raise ValueError(
                f"learning_rate_power {self._power} needs to be negative or zero"
            )
        self._beta = 0.0 if self._beta is None else self._beta
        self._op = "FtrlV2" if self._shrinkage > 0 else "Ftrl"

    def _label(self, slot_name):
        return getattr(self, f"_{slot_name}_name") or self._name

    def _arguments(self, variable):
        arguments = super()._arguments(variable)
        l2 = self._number("_l2", variable)
        beta = self._number("_beta", variable) / (2.0 * arguments["lr"])
        arguments["l2"] = l2 + beta
        arguments["lr_power"] = self._number("_power", variable)
        if self._shrinkage > 0:
            arguments["l2_shrinkage"] = self._number("_shrinkage", variable)
        return arguments
