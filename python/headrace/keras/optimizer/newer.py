"""Rules that no legacy optimizer has."""

from headrace import _api as tf
from headrace.keras.optimizer import rules


class LionRule(rules.Rule):
    """Steps of one size: the sign of a mean of gradients."""

    _config_names = ("beta_1", "beta_2")
    _slot_row = ("m",)
    _slot_lists = {"m": "momentums"}

    __init__ = rules.takes("learning_rate=0.0001, beta_1=0.9, beta_2=0.99, name='Lion'")

    def _check(self, given):
        if not 0 < given["beta_1"] <= 1:
            raise ValueError(
                f"`beta_1`={given['beta_1']} must be between ]0, 1]. Otherwise, the "
                "optimizer degenerates to SignSGD."
            )

    def _coefficients(self, dtype):
        known = {name: self._value(name, dtype) for name in self._config_names}
        return {"lr": self._rate(dtype), **known}

    def _update(self, gradient, variable, slots, known):
        m = slots["m"]

        def mean(beta):
            return m._read() * beta + gradient * (1.0 - beta)

        step = known["lr"] * tf.sign(mean(known["beta_1"]))
        variable.assign_sub(step, read_value=False)
        m.assign(mean(known["beta_2"]), read_value=False)


def _root_mean_square(x):
    return tf.sqrt(tf.reduce_mean(tf.square(x)))


class AdafactorRule(rules.Rule):
    """Squares of gradients kept as means of rows and of columns, steps in proportion to
    the variable."""

    _config_plain = ("beta_2_decay", "epsilon_1", "epsilon_2", "clip_threshold")
    _config_plain += ("relative_step",)
    _slot_row = ("r", "c", "v")
    _slot_lists = {"r": "_r", "c": "_c", "v": "_v"}

    __init__ = rules.takes(
        "learning_rate=0.001, beta_2_decay=-0.8, epsilon_1=1e-30, epsilon_2=1e-3, "
        "clip_threshold=1.0, relative_step=True, name='Adafactor'"
    )

    def add_slot(self, variable, slot_name, initializer=None, shape=None):
        """The slot of that name; a vector and a scalar have no rows and no columns,
        whose places in the lists of checkpoints hold a zero."""
        if slot_name not in "rc":
            return super().add_slot(variable, slot_name, initializer, shape)
        if variable.shape.rank < 2:
            label = f"{self._scope}r/{variable._shared_name}"
            self._list_slot(slot_name, self._new_variable(0, label, tf.int32))
            return None
        sizes = variable.shape.as_list()
        del sizes[-1 if slot_name == "r" else -2]
        return super().add_slot(variable, slot_name, "zeros", sizes)

    def _coefficients(self, dtype):
        step = tf.cast(self.iterations._read() + 1, dtype)
        known = {"lr": self._rate(dtype)}
        known["rate"] = known["lr"]
        if self.relative_step and self._schedule is None:
            known["rate"] = tf.minimum(known["lr"], tf.math.rsqrt(step))
        known["kept"] = 1.0 - tf.pow(step, tf.cast(self.beta_2_decay, dtype))
        return known

    def _update(self, gradient, variable, slots, known):
        square = tf.square(gradient) + tf.cast(self.epsilon_1, variable.dtype)
        kept = known["kept"]

        def moved(name, value):
            value = kept * slots[name]._read() + (1.0 - kept) * value
            slots[name].assign(value, read_value=False)
            return value

        if "r" in slots:
            rows = moved("r", tf.reduce_mean(square, -1))
            columns = moved("c", tf.reduce_mean(square, -2))
            rows = rows / tf.reduce_mean(rows, -1, keepdims=True)
            v = tf.expand_dims(rows, -1) * tf.expand_dims(columns, -2)
            slots["v"].assign(v, read_value=False)
        else:
            v = moved("v", square)
        step = gradient * tf.math.rsqrt(v)
        step /= tf.maximum(1.0, _root_mean_square(step) / self.clip_threshold)
        size = tf.maximum(self.epsilon_2, _root_mean_square(variable._read()))
        variable.assign_sub(size * known["rate"] * step, read_value=False)
