"""The update rules: a class each, mixed with the interfaces old and new."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.framework.support import signatures


def summed_rows(gradient):
    """(values, indices) of slices with equal indices added."""
    indices, places = tf.unique(gradient.indices)
    count = tf.shape(indices)[0]
    return tf.math.unsorted_segment_sum(gradient.values, places, count), indices


def takes(text):
    """A constructor of those parameters, **kwargs behind them: hyper-parameters of the
    configuration, its further attributes, the rate and the name."""

    def begin(self, learning_rate, name, **given):
        self._check(given)
        hypers = {n: given.pop(n) for n in self._config_names}
        plain = {n: given.pop(n) for n in self._config_plain}
        self._set_up(name, learning_rate, hypers, given)
        for key, value in plain.items():
            setattr(self, key, value)

    return signatures.constructor(f"{text}, **kwargs", begin)


class Rule:
    """A rule whose update is one op: ResourceApplyX, or ResourceSparseApplyX of rows.

    Attributes of subclasses:
      _config_names: the hyper-parameters of the configuration.
      _config_plain: its further attributes.
      _op: X, and the slot of each of the op's arguments.
      _op_numbers: the hyper-parameters that the op takes, beside lr and epsilon.
      _has_sparse_op: rows have an op; else they are updated as a whole tensor.
      _slot_row: the names of its slots, made variable by variable; by older optimizers
        slot by slot.
      _slot_labels: what newer optimizers call variables of slots in their names.
      _slot_lists: their attributes that list the variables of a slot.
    """

    _config_names = ()
    _config_plain = ()
    _op_numbers = ()
    _has_sparse_op = False
    _slot_row = ()
    _slot_labels = {}
    _slot_lists = {"m": "_momentums", "v": "_velocities", "vhat": "_velocity_hats"}

    def _check(self, given):
        """Raises ValueError for arguments that cannot be."""

    def _slot_names(self):
        if self._is_legacy:
            return tuple((name,) for name in self._slot_row)
        return (self._slot_row,)

    def _coefficients(self, dtype):
        known = {"lr": self._rate(dtype)}
        for name in self._op_numbers:
            known[name] = self._value(name, dtype)
        known["epsilon"] = tf.constant(self.epsilon, dtype)
        return known

    def _apply(self, kind, variable, slots, **arguments):
        op, slot_of = self._op
        handles = {a: slots[s].handle for a, s in slot_of.items()}
        _headrace.raw_op(f"Resource{kind}{op}")(
            var=variable.handle, **handles, **arguments
        )

    def _update(self, gradient, variable, slots, known):
        self._apply("Apply", variable, slots, grad=gradient, **known)

    def _update_sparse(self, gradient, variable, slots, known):
        if not self._has_sparse_op:
            super()._update_sparse(gradient, variable, slots, known)
            return
        values, rows = summed_rows(gradient)
        self._apply("SparseApply", variable, slots, grad=values, indices=rows, **known)


class SGDRule(Rule):
    """Plain, with momentum, or Nesterov's."""

    _op = ("KerasMomentum", {"accum": "momentum"})
    _has_sparse_op = property(lambda self: self._is_legacy)
    _slot_labels = {"momentum": "m"}
    _slot_lists = {"momentum": "momentums"}

    def _slot_names(self):
        like_newer = not self._is_legacy and self._in_ring
        if self._momentum or self._writes_lists or self._restores_slots() or like_newer:
            return (("momentum",),)
        return ()

    def _coefficients(self, dtype):
        known = {"lr": self._rate(dtype)}
        if self._momentum:
            known["momentum"] = self._value("momentum", dtype)
            known["use_nesterov"] = self.nesterov
        return known

    def _update(self, gradient, variable, slots, known):
        if self._momentum:
            super()._update(gradient, variable, slots, known)
            return
        _headrace.raw_op("ResourceApplyGradientDescent")(
            var=variable.handle, alpha=known["lr"], delta=gradient
        )

    def _update_sparse(self, gradient, variable, slots, known):
        if self._momentum:
            super()._update_sparse(gradient, variable, slots, known)
            return
        _headrace.raw_op("ResourceScatterAdd")(
            resource=variable.handle,
            indices=gradient.indices,
            updates=-known["lr"] * gradient.values,
        )


def _with_betas(rule, dtype, powers):
    """Adam's coefficients, with the powers that some of them have at this step."""
    step = tf.cast(rule.iterations._read() + 1, dtype)
    known = {"lr": rule._rate(dtype), "epsilon": tf.constant(rule.epsilon, dtype)}
    known["beta1"], known["beta2"] = (rule._value(n, dtype) for n in rule._config_names)
    for name, hyper in zip(("beta1", "beta2"), rule._config_names):
        if name in powers:
            known[f"{name}_power"] = rule._power(hyper, dtype, step)
    return known


class AdamRule(Rule):
    """Adam, and AMSGrad."""

    _config_names, _config_plain = ("beta_1", "beta_2"), ("epsilon", "amsgrad")
    _slot_row = ("m", "v")

    __init__ = takes(
        "learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, "
        "amsgrad=False, name='Adam'"
    )

    def _slot_names(self):
        return super()._slot_names() + ((("vhat",),) if self.amsgrad else ())

    @property
    def _op(self):
        if self.amsgrad:
            return "AdamWithAmsgrad", {"m": "m", "v": "v", "vhat": "vhat"}
        return "Adam", {"m": "m", "v": "v"}

    def _coefficients(self, dtype):
        return _with_betas(self, dtype, ("beta1", "beta2"))


class RMSpropRule(Rule):
    """RMSprop, centred or not, with momentum or not."""

    _config_names, _config_plain = ("rho", "momentum"), ("epsilon", "centered")
    _op_numbers = _config_names
    _has_sparse_op = property(lambda self: self._momentum and self._is_legacy)
    _slot_labels = {"rms": "velocity", "mg": "average_gradient"}
    _slot_lists = {"rms": "_velocities", "momentum": "_momentums"}
    _slot_lists["mg"] = "_average_gradients"

    __init__ = takes(
        "learning_rate=0.001, rho=0.9, momentum=0.0, epsilon=1e-7, "
        "centered=False, name='RMSprop'"
    )

    def _set_up(self, name, learning_rate, hypers, kwargs):
        super()._set_up(name, learning_rate, hypers, kwargs)
        self._momentum = bool(hypers["momentum"])

    def _slot_names(self):
        groups = [("rms",)]
        if self._momentum:
            groups.append(("momentum",))
        if self.centered:
            groups.append(("mg",))
        return tuple(groups)

    @property
    def _op(self):
        slots = {"ms": "rms", "mom": "momentum"}
        if self.centered:
            return "CenteredRMSProp", {**slots, "mg": "mg"}
        return "RMSProp", slots

    def _update(self, gradient, variable, slots, known):
        if self._momentum:
            super()._update(gradient, variable, slots, known)
            return
        rho = known["rho"]
        rms = slots["rms"]
        mean = rho * rms._read() + (1.0 - rho) * tf.square(gradient)
        rms.assign(mean, read_value=False)
        if self.centered:
            mg = rho * slots["mg"]._read() + (1.0 - rho) * gradient
            slots["mg"].assign(mg, read_value=False)
            mean = mean - tf.square(mg)
        if self._is_legacy:
            step = gradient / (tf.sqrt(mean) + known["epsilon"])
        else:
            step = gradient * tf.math.rsqrt(mean + known["epsilon"])
        variable.assign_sub(known["lr"] * step, read_value=False)


class AdagradRule(Rule):
    """Adagrad: rates fall with the squares seen so far."""

    _config_plain = ("initial_accumulator_value", "epsilon")
    _op = ("AdagradV2", {"accum": "accumulator"})
    _slot_row = ("accumulator",)
    _has_sparse_op = True
    _slot_lists = {"accumulator": "_accumulators"}

    __init__ = takes(
        "learning_rate=0.001, initial_accumulator_value=0.1, epsilon=1e-7, "
        "name='Adagrad'"
    )

    def _initial_slot(self, variable, slot_name):
        return tf.fill(
            variable.shape.as_list(),
            tf.constant(self.initial_accumulator_value, variable.dtype),
        )


class FtrlRule(Rule):
    """Follow the regularized leader."""

    _config_names = ("learning_rate_power", "l1_regularization_strength")
    _config_names += ("l2_regularization_strength", "beta")
    _config_plain = (
        "initial_accumulator_value",
        "l2_shrinkage_regularization_strength",
    )
    _op = ("FtrlV2", {"accum": "accumulator", "linear": "linear"})
    _has_sparse_op = property(lambda self: self._is_legacy)
    _slot_lists = {"accumulator": "_accumulators", "linear": "_linears"}

    __init__ = takes(
        "learning_rate=0.001, learning_rate_power=-0.5, initial_accumulator_value=0.1, "
        "l1_regularization_strength=0.0, l2_regularization_strength=0.0, "
        "l2_shrinkage_regularization_strength=0.0, beta=0.0, name='Ftrl'"
    )

    def _check(self, given):
        start = given["initial_accumulator_value"]
        if start < 0.0:
            raise ValueError(
                "`initial_accumulator_value` needs to be positive or zero. Received: "
                f"initial_accumulator_value={start}."
            )
        if given["learning_rate_power"] > 0.0:
            raise ValueError(
                "`learning_rate_power` needs to be negative or zero. Received: "
                f"learning_rate_power={given['learning_rate_power']}."
            )

    def _slot_names(self):
        return (("accumulator", "linear"),)

    def _initial_slot(self, variable, slot_name):
        start = self.initial_accumulator_value if slot_name == "accumulator" else 0.0
        return tf.fill(variable.shape.as_list(), tf.constant(start, variable.dtype))

    def _coefficients(self, dtype):
        rate = self._rate(dtype)
        beta = self._value("beta", dtype)
        l2 = self._value("l2_regularization_strength", dtype)
        return {
            "lr": rate,
            "l1": self._value("l1_regularization_strength", dtype),
            "l2": l2 + beta / (2.0 * rate),
            "l2_shrinkage": tf.constant(
                self.l2_shrinkage_regularization_strength, dtype
            ),
            "lr_power": self._value("learning_rate_power", dtype),
        }


class AdadeltaRule(Rule):
    """Adadelta: rates by a window of squares."""

    _config_names, _config_plain = ("rho",), ("epsilon",)
    _op = ("Adadelta", {"accum": "accum_grad", "accum_update": "accum_var"})
    _op_numbers = _config_names
    _slot_row = ("accum_grad", "accum_var")
    _slot_labels = dict(zip(_slot_row, ("accumulated_grad", "accumulated_delta_var")))
    _slot_lists = {slot: f"_{label}s" for slot, label in _slot_labels.items()}

    __init__ = takes("learning_rate=0.001, rho=0.95, epsilon=1e-7, name='Adadelta'")


class AdamaxRule(Rule):
    """Adam by the infinity norm."""

    _config_names, _config_plain = ("beta_1", "beta_2"), ("epsilon",)
    _op = ("AdaMax", {"m": "m", "v": "v"})
    _slot_row = ("m", "v")
    _slot_labels = {"v": "u"}
    _slot_lists = {"m": "_m", "v": "_u"}

    __init__ = takes(
        "learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, name='Adamax'"
    )

    def _coefficients(self, dtype):
        return _with_betas(self, dtype, ("beta1",))

    def _update_sparse(self, gradient, variable, slots, known):
        if not self._is_legacy:
            super()._update_sparse(gradient, variable, slots, known)
            return
        values, rows = summed_rows(gradient)
        m, v = (slots[n].sparse_read(rows) for n in ("m", "v"))
        m = known["beta1"] * m + (1.0 - known["beta1"]) * values
        v = tf.maximum(known["beta2"] * v, tf.abs(values))
        for name, value in (("m", m), ("v", v)):
            slots[name].scatter_update(tf.IndexedSlices(value, rows))
        rate = known["lr"] / (1.0 - known["beta1_power"])
        step = rate * m / (v + known["epsilon"])
        variable.scatter_sub(tf.IndexedSlices(step, rows))
