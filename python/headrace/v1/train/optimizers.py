"""The optimizers of tf.compat.v1.train, with slots named as in TensorFlow 1."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.v1.train.optimizer import Optimizer, filled, is_resource


class GradientDescentOptimizer(Optimizer):
    """Down the gradient."""

    def __init__(self, learning_rate, use_locking=False, name="GradientDescent"):
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _apply_dense(self, gradient, variable):
        rate = self._number(self._learning_rate, variable)
        self._update("ApplyGradientDescent", variable, alpha=rate, delta=gradient)

    def _apply_sparse(self, values, rows, variable):
        rate = self._number(self._learning_rate, variable)
        _add_rows(self, variable, rows, -values * rate)


def _add_rows(optimizer, variable, rows, values):
    """Adds to rows of a variable."""
    if is_resource(variable):
        _headrace.raw_op("ResourceScatterAdd")(
            resource=variable.handle, indices=rows, updates=values
        )
        return optimizer._done(None)
    added = _headrace.raw_op("ScatterAdd")(
        ref=variable._ref(), indices=rows, updates=values
    )
    return optimizer._done(added)


class MomentumOptimizer(Optimizer):
    """Down the gradients of late."""

    def __init__(
        self,
        learning_rate,
        momentum,
        use_locking=False,
        name="Momentum",
        use_nesterov=False,
    ):
        super().__init__(use_locking, name)
        self._learning_rate, self._momentum = learning_rate, momentum
        self._use_nesterov = use_nesterov

    def _create_slots(self, variables):
        for v in variables:
            self._zeros_slot(v, "momentum", self._name)

    def _arguments(self, variable):
        return {
            "accum": self.get_slot(variable, "momentum"),
            "lr": self._number(self._learning_rate, variable),
            "momentum": self._number(self._momentum, variable),
            "use_nesterov": self._use_nesterov,
        }

    def _apply_dense(self, gradient, variable):
        self._update(
            "ApplyMomentum", variable, grad=gradient, **self._arguments(variable)
        )

    def _apply_sparse(self, values, rows, variable):
        self._update(
            "SparseApplyMomentum",
            variable,
            grad=values,
            indices=rows,
            **self._arguments(variable),
        )


class AdamOptimizer(Optimizer):
    """By the means of gradients and of their squares."""

    def __init__(
        self,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-08,
        use_locking=False,
        name="Adam",
    ):
        super().__init__(use_locking, name)
        self._lr, self._beta1, self._beta2 = learning_rate, beta1, beta2
        self._epsilon = epsilon

    def _create_slots(self, variables):
        self._make_plain("beta1_power", self._value(self._beta1))
        self._make_plain("beta2_power", self._value(self._beta2))
        for v in variables:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _get_beta_accumulators(self):
        """beta1 and beta2 to the power of the steps so far, as variables."""
        return self._plain_variable("beta1_power"), self._plain_variable("beta2_power")

    def _apply_dense(self, gradient, variable):
        beta1_power, beta2_power = self._get_beta_accumulators()
        self._update(
            "ApplyAdam",
            variable,
            m=self.get_slot(variable, "m"),
            v=self.get_slot(variable, "v"),
            beta1_power=self._number(beta1_power, variable),
            beta2_power=self._number(beta2_power, variable),
            lr=self._number(self._lr, variable),
            beta1=self._number(self._beta1, variable),
            beta2=self._number(self._beta2, variable),
            epsilon=self._number(self._epsilon, variable),
            grad=gradient,
        )

    def _apply_sparse(self, values, rows, variable):
        beta1, beta2 = (self._number(b, variable) for b in (self._beta1, self._beta2))
        p1, p2 = (self._number(p, variable) for p in self._get_beta_accumulators())
        rate = self._number(self._lr, variable) * tf.sqrt(1 - p2) / (1 - p1)
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
        change = rate * means["m"] / (tf.sqrt(means["v"]) + self._epsilon)
        self._done(variable.assign_sub(change, read_value=False))

    def _assign(self, variable, value):
        return self._done(variable.assign(value, read_value=False))

    def _finish(self):
        powers = zip(self._get_beta_accumulators(), (self._beta1, self._beta2))
        for power, beta in powers:
            self._assign(power, power.read_value() * self._number(beta, power))


class AdagradOptimizer(Optimizer):
    """Rates fall with the squares seen so far."""

    def __init__(
        self,
        learning_rate,
        initial_accumulator_value=0.1,
        use_locking=False,
        name="Adagrad",
    ):
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                "initial_accumulator_value must be positive: "
                f"{initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial = initial_accumulator_value

    def _create_slots(self, variables):
        for v in variables:
            self._make_slot(v, "accumulator", self._name, filled(v, self._initial))

    def _arguments(self, variable):
        return {
            "accum": self.get_slot(variable, "accumulator"),
            "lr": self._number(self._learning_rate, variable),
        }

    def _apply_dense(self, gradient, variable):
        self._update(
            "ApplyAdagrad", variable, grad=gradient, **self._arguments(variable)
        )

    def _apply_sparse(self, values, rows, variable):
        self._update(
            "SparseApplyAdagrad",
            variable,
            grad=values,
            indices=rows,
            **self._arguments(variable),
        )


class AdadeltaOptimizer(Optimizer):
    """Rates by a window of squares."""

    def __init__(
        self,
        learning_rate=0.001,
        rho=0.95,
        epsilon=1e-8,
        use_locking=False,
        name="Adadelta",
    ):
        super().__init__(use_locking, name)
        self._lr, self._rho, self._epsilon = learning_rate, rho, epsilon

    def _create_slots(self, variables):
        for v in variables:
            self._zeros_slot(v, "accum", self._name)
            self._zeros_slot(v, "accum_update", self._name)

    def _arguments(self, variable):
        return {
            "accum": self.get_slot(variable, "accum"),
            "accum_update": self.get_slot(variable, "accum_update"),
            "lr": self._number(self._lr, variable),
            "rho": self._number(self._rho, variable),
            "epsilon": self._number(self._epsilon, variable),
        }

    def _apply_dense(self, gradient, variable):
        self._update(
            "ApplyAdadelta", variable, grad=gradient, **self._arguments(variable)
        )

    def _apply_sparse(self, values, rows, variable):
        self._update(
            "SparseApplyAdadelta",
            variable,
            grad=values,
            indices=rows,
            **self._arguments(variable),
        )


class RMSPropOptimizer(Optimizer):
    """Rates by the mean square, centred or not."""

    def __init__(
        self,
        learning_rate,
        decay=0.9,
        momentum=0.0,
        epsilon=1e-10,
        use_locking=False,
        centered=False,
        name="RMSProp",
    ):
        super().__init__(use_locking, name)
        self._learning_rate, self._decay = learning_rate, decay
        self._momentum, self._epsilon = momentum, epsilon
        self._centered = centered

    def _create_slots(self, variables):
        for v in variables:
            self._make_slot(v, "rms", self._name, filled(v, 1))
            if self._centered:
                self._zeros_slot(v, "mg", self._name)
            self._zeros_slot(v, "momentum", self._name)

    def _arguments(self, variable):
        slots = {
            "ms": self.get_slot(variable, "rms"),
            "mom": self.get_slot(variable, "momentum"),
        }
        if self._centered:
            slots["mg"] = self.get_slot(variable, "mg")
        return {
            **slots,
            "lr": self._number(self._learning_rate, variable),
            "rho": self._number(self._decay, variable),
            "momentum": self._number(self._momentum, variable),
            "epsilon": self._number(self._epsilon, variable),
        }

    def _apply_dense(self, gradient, variable):
        op = "ApplyCenteredRMSProp" if self._centered else "ApplyRMSProp"
        self._update(op, variable, grad=gradient, **self._arguments(variable))

    def _apply_sparse(self, values, rows, variable):
        op = "SparseApplyCenteredRMSProp" if self._centered else "SparseApplyRMSProp"
        self._update(
            op,
            variable,
            grad=values,
            indices=rows,
            **self._arguments(variable),
        )


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader."""

    def __init__(
        self,
        learning_rate,
        learning_rate_power=-0.5,
        initial_accumulator_value=0.1,
        l1_regularization_strength=0.0,
        l2_regularization_strength=0.0,
        use_locking=False,
        name="Ftrl",
        accum_name=None,
        linear_name=None,
        l2_shrinkage_regularization_strength=0.0,
        beta=None,
    ):
        super().__init__(use_locking, name)
        for what, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            (
                "l2_shrinkage_regularization_strength",
                l2_shrinkage_regularization_strength,
            ),
        ):
            if value < 0.0:
                raise ValueError(
                    f"{what} {value} needs to be greater than or equal to zero"
                )
        if learning_rate_power > 0.0:
            raise ValueError(
                f"learning_rate_power {learning_rate_power} needs to be negative or zero"
            )
        self._learning_rate = learning_rate
        self._power = learning_rate_power
        self._initial = initial_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength
        self._shrinkage = l2_shrinkage_regularization_strength
        self._beta = 0.0 if beta is None else beta
        self._names = accum_name or name, linear_name or name

    def _create_slots(self, variables):
        for v in variables:
            self._make_slot(v, "accum", self._names[0], filled(v, self._initial))
            self._zeros_slot(v, "linear", self._names[1])

    def _arguments(self, variable):
        rate = self._number(self._learning_rate, variable)
        arguments = {
            "accum": self.get_slot(variable, "accum"),
            "linear": self.get_slot(variable, "linear"),
            "lr": rate,
            "l1": self._number(self._l1, variable),
            "l2": self._number(self._l2, variable)
            + self._number(self._beta, variable) / (2.0 * rate),
            "lr_power": self._number(self._power, variable),
        }
        if self._shrinkage > 0:
            arguments["l2_shrinkage"] = self._number(self._shrinkage, variable)
        return arguments

    def _op(self, base):
        return base + "V2" if self._shrinkage > 0 else base

    def _apply_dense(self, gradient, variable):
        self._update(
            self._op("ApplyFtrl"), variable, grad=gradient, **self._arguments(variable)
        )

    def _apply_sparse(self, values, rows, variable):
        self._update(
            self._op("SparseApplyFtrl"),
            variable,
            grad=values,
            indices=rows,
            **self._arguments(variable),
        )
