"""Nadam: Adam with Nesterov's momentum, after a schedule of its own."""

from headrace import _api as tf
from headrace.framework.trackable import node_of
from headrace.keras.base.tracking import attach_new
from headrace.keras.optimizer import rules


class NadamRule(rules.Rule):
    """The product of the momenta so far is a variable beside the slots.

    Attributes of subclasses:
      _product_name: what that variable is called, also by checkpoints.
      _schedule_decay: how fast the schedule goes.
    """

    _config_names, _config_plain = ("beta_1", "beta_2"), ("epsilon",)
    _slot_row = ("m", "v")
    _product_name = "_u_product"
    _schedule_decay = 1.0

    _product = None

    __init__ = rules.takes(
        "learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, name='Nadam'"
    )

    def _further_variables(self):
        """As upstream, newer optimizers do not list the product."""
        return [self._product] if self._is_legacy and self._product is not None else []

    def _make_slots(self, var_list):
        """Makes the product of the momenta, and the slots for those variables."""
        if self._product is None:
            dtype = var_list[0].dtype if var_list else tf.float32
            label = self._product_name
            name = f"{self._name}/{label}" if self._is_legacy else label
            product = self._new_variable(1.0, name, dtype)
            object.__setattr__(self, "_product", product)
            attach_new(node_of(self), label, product)
        super()._make_slots(var_list)

    def _momentum_at(self, step, beta_1):
        power = tf.pow(tf.constant(0.96, beta_1.dtype), self._schedule_decay * step)
        return beta_1 * (1.0 - 0.5 * power)

    def _coefficients(self, dtype):
        step = tf.cast(self.iterations._read() + 1, dtype)
        beta_1, beta_2 = self._value("beta_1", dtype), self._value("beta_2", dtype)
        now = self._momentum_at(step, beta_1)
        following = self._momentum_at(step + 1.0, beta_1)
        product = tf.cast(self._product._read(), dtype) * now
        return {
            "lr": self._rate(dtype),
            "beta1": beta_1,
            "beta2": beta_2,
            "gradient_scale": (1.0 - now) / (1.0 - product),
            "m_scale": following / (1.0 - product * following),
            "v_scale": 1.0 / (1.0 - tf.pow(beta_2, step)),
            "epsilon": tf.constant(self.epsilon, dtype),
            "product": product,
        }

    def _after(self, known):
        """Behind the updates of all variables."""
        if known:
            product = next(iter(known.values()))["product"]
            self._product.assign(
                tf.cast(product, self._product.dtype), read_value=False
            )

    def _change_of(self, m, v, gradient, known):
        mean = m * known["m_scale"] + gradient * known["gradient_scale"]
        return known["lr"] * mean / (tf.sqrt(v * known["v_scale"]) + known["epsilon"])

    def _update(self, gradient, variable, slots, known):
        beta_1, beta_2 = known["beta1"], known["beta2"]
        m = beta_1 * slots["m"]._read() + (1.0 - beta_1) * gradient
        v = beta_2 * slots["v"]._read() + (1.0 - beta_2) * tf.square(gradient)
        slots["m"].assign(m, read_value=False)
        slots["v"].assign(v, read_value=False)
        step = self._change_of(m, v, gradient, known)
        variable.assign_sub(step, read_value=False)

    def _update_sparse(self, gradient, variable, slots, known):
        if not self._is_legacy:
            super()._update_sparse(gradient, variable, slots, known)
            return
        values, rows = rules.summed_rows(gradient)
        found = []
        for name, beta, new in (
            ("m", known["beta1"], values),
            ("v", known["beta2"], tf.square(values)),
        ):
            whole = beta * slots[name]._read()
            row = tf.gather(whole, rows) + (1.0 - beta) * new
            slots[name].assign(
                tf.tensor_scatter_nd_update(whole, rows[:, tf.newaxis], row),
                read_value=False,
            )
            found.append(row)
        step = self._change_of(*found, values, known)
        variable.scatter_sub(tf.IndexedSlices(step, rows))
