"""The update rules: a class each, mixed with the interfaces old and new."""

import headrace as tf
from headrace._load import _headrace
from headrace.keras.optimizer.base import apply, summed_rows


class SGDRule:
    """Plain, with momentum, or Nesterov's."""

    def _slot_names(self):
        return (("momentum",),) if self._momentum else ()

    def _coefficients(self, dtype):
        known = {"lr": self._rate(dtype)}
        if self._momentum:
            known["momentum"] = self._value("momentum", dtype)
        return known

    def _update(self, gradient, variable, slots, known):
        if not self._momentum:
            apply(
                "ResourceApplyGradientDescent",
                variable,
                alpha=known["lr"],
                delta=gradient,
            )
            return
        apply(
            "ResourceApplyKerasMomentum",
            variable,
            accum=slots["momentum"].handle,
            lr=known["lr"],
            grad=gradient,
            momentum=known["momentum"],
            use_nesterov=self.nesterov,
        )

    def _update_sparse(self, gradient, variable, slots, known):
        if self._momentum and not self._is_legacy:
            dense = tf.convert_to_tensor(gradient)
            self._update(dense, variable, slots, known)
            return
        if self._momentum:
            values, indices = summed_rows(gradient)
            apply(
                "ResourceSparseApplyKerasMomentum",
                variable,
                accum=slots["momentum"].handle,
                lr=known["lr"],
                grad=values,
                indices=indices,
                momentum=known["momentum"],
                use_nesterov=self.nesterov,
            )
            return
        _headrace.raw_op("ResourceScatterAdd")(
            resource=variable.handle,
            indices=gradient.indices,
            updates=-known["lr"] * gradient.values,
        )


class AdamRule:
    """Adam, and AMSGrad."""

    def _slot_names(self):
        pairs = (("m", "v"),) if not self._is_legacy else (("m",), ("v",))
        return pairs + ((("vhat",),) if self.amsgrad else ())

    def _coefficients(self, dtype):
        step = tf.cast(self.iterations._read() + 1, dtype)
        beta_1, beta_2 = self._value("beta_1", dtype), self._value("beta_2", dtype)
        return {
            "lr": self._rate(dtype),
            "beta1": beta_1,
            "beta2": beta_2,
            "beta1_power": tf.pow(beta_1, step),
            "beta2_power": tf.pow(beta_2, step),
            "epsilon": tf.constant(self.epsilon, dtype),
        }

    def _update(self, gradient, variable, slots, known):
        handles = {"m": slots["m"].handle, "v": slots["v"].handle}
        if not self.amsgrad:
            apply("ResourceApplyAdam", variable, grad=gradient, **handles, **known)
            return
        apply(
            "ResourceApplyAdamWithAmsgrad",
            variable,
            grad=gradient,
            vhat=slots["vhat"].handle,
            **handles,
            **known,
        )


class RMSpropRule:
    """RMSprop, centred or not, with momentum or not."""

    def _slot_names(self):
        groups = [("rms",)]
        if self._momentum:
            groups.append(("momentum",))
        if self.centered:
            groups.append(("mg",))
        return tuple(groups)

    def _coefficients(self, dtype):
        return {
            "lr": self._rate(dtype),
            "rho": self._value("rho", dtype),
            "momentum": self._value("momentum", dtype),
            "epsilon": tf.constant(self.epsilon, dtype),
        }

    def _update(self, gradient, variable, slots, known):
        if self._momentum:
            self._update_with_momentum(gradient, variable, slots, known)
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

    def _update_with_momentum(self, gradient, variable, slots, known):
        handles = {"ms": slots["rms"].handle, "mom": slots["momentum"].handle}
        op = "ResourceApplyRMSProp"
        if self.centered:
            op, handles["mg"] = "ResourceApplyCenteredRMSProp", slots["mg"].handle
        apply(op, variable, grad=gradient, **handles, **known)

    def _update_sparse(self, gradient, variable, slots, known):
        if not (self._momentum and self._is_legacy):
            super()._update_sparse(gradient, variable, slots, known)
            return
        values, indices = summed_rows(gradient)
        handles = {"ms": slots["rms"].handle, "mom": slots["momentum"].handle}
        op = "ResourceSparseApplyRMSProp"
        if self.centered:
            op, handles["mg"] = "ResourceSparseApplyCenteredRMSProp", slots["mg"].handle
        apply(op, variable, grad=values, indices=indices, **handles, **known)


class AdagradRule:
    """Adagrad: rates fall with the squares seen so far."""

    def _slot_names(self):
        return (("accumulator",),)

    def _initial_slot(self, variable, slot_name):
        return tf.fill(
            variable.shape.as_list(),
            tf.constant(self.initial_accumulator_value, variable.dtype),
        )

    def _coefficients(self, dtype):
        return {
            "lr": self._rate(dtype),
            "epsilon": tf.constant(self.epsilon, dtype),
        }

    def _update(self, gradient, variable, slots, known):
        apply(
            "ResourceApplyAdagradV2",
            variable,
            accum=slots["accumulator"].handle,
            grad=gradient,
            **known,
        )

    def _update_sparse(self, gradient, variable, slots, known):
        values, indices = summed_rows(gradient)
        apply(
            "ResourceSparseApplyAdagradV2",
            variable,
            accum=slots["accumulator"].handle,
            grad=values,
            indices=indices,
            **known,
        )


class FtrlRule:
    """Follow the regularized leader."""

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

    def _update(self, gradient, variable, slots, known):
        apply(
            "ResourceApplyFtrlV2",
            variable,
            accum=slots["accumulator"].handle,
            linear=slots["linear"].handle,
            grad=gradient,
            **known,
        )

    def _update_sparse(self, gradient, variable, slots, known):
        values, indices = summed_rows(gradient)
        apply(
            "ResourceSparseApplyFtrlV2",
            variable,
            accum=slots["accumulator"].handle,
            linear=slots["linear"].handle,
            grad=values,
            indices=indices,
            **known,
        )


class AdadeltaRule:
    """Adadelta: rates by a window of squares."""

    def _slot_names(self):
        return (("accum_grad",), ("accum_var",))

    def _coefficients(self, dtype):
        return {
            "lr": self._rate(dtype),
            "rho": self._value("rho", dtype),
            "epsilon": tf.constant(self.epsilon, dtype),
        }

    def _update(self, gradient, variable, slots, known):
        apply(
            "ResourceApplyAdadelta",
            variable,
            accum=slots["accum_grad"].handle,
            accum_update=slots["accum_var"].handle,
            grad=gradient,
            **known,
        )


class AdamaxRule:
    """Adam by the infinity norm."""

    def _slot_names(self):
        return (("m", "v"),) if not self._is_legacy else (("m",), ("v",))

    def _coefficients(self, dtype):
        step = tf.cast(self.iterations._read() + 1, dtype)
        beta_1 = self._value("beta_1", dtype)
        return {
            "lr": self._rate(dtype),
            "beta1": beta_1,
            "beta2": self._value("beta_2", dtype),
            "beta1_power": tf.pow(beta_1, step),
            "epsilon": tf.constant(self.epsilon, dtype),
        }

    def _update(self, gradient, variable, slots, known):
        apply(
            "ResourceApplyAdaMax",
            variable,
            m=slots["m"].handle,
            v=slots["v"].handle,
            grad=gradient,
            **known,
        )

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
