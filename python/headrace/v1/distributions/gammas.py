"""Gamma distributions and what is made of them: exponential, beta, Dirichlet."""

import numpy as np

from headrace import _api as tf
from headrace.v1.distributions import checks, kl
from headrace.v1.distributions.base import (
    Distribution,
    ScalarEvents,
    after,
    takes,
)

_POSITIVE = "Concentration parameter must be positive."


def defined_above_one(distribution, mode, tensors, messages):
    """The mode where all of the tensors are above 1, else NaN or an error."""
    one = tf.constant(1.0, distribution.dtype)
    if distribution.allow_nan_stats:
        there = tensors[0] > one
        for tensor in tensors[1:]:
            there = tf.logical_and(there, tensor > one)
        return tf.where(there, mode, np.nan)
    tests = [
        tf.debugging.assert_less(one, tensor, message=message)
        for tensor, message in zip(tensors, messages)
    ]
    return after(tests, mode)


@takes(
    "concentration, rate",
    shaped="concentration rate",
    attributes="concentration rate",
)
class Gamma(ScalarEvents):
    """Gamma distributions of shape `concentration`; `rate` is the inverse scale."""

    _of = ("concentration", "rate")

    def _begin(self, concentration, rate):
        given = checks.float_tensors(concentration, rate)
        if self.validate_args:
            given = [after([tf.debugging.assert_positive(t)], t) for t in given]
        self._concentration, self._rate = map(tf.identity, given)
        return self._concentration.dtype

    def _sample_n(self, n, seed=None):
        return tf.random.gamma(
            [n], self.concentration, beta=self.rate, dtype=self.dtype, seed=seed
        )

    def _valid(self, x):
        if not self.validate_args:
            return x
        return after([tf.debugging.assert_positive(x)], x)

    def _log_prob(self, x):
        x, c = self._valid(x), self.concentration
        normalization = tf.math.lgamma(c) - c * tf.math.log(self.rate)
        return (c - 1.0) * tf.math.log(x) - self.rate * x - normalization

    def _cdf(self, x):
        x = self._valid(x) * self.rate
        zeros = tf.zeros_like(x * self.concentration)
        return tf.math.igamma(self.concentration + zeros, x + zeros)

    def _entropy(self):
        c = self.concentration
        further = tf.math.lgamma(c) + (1.0 - c) * tf.math.digamma(c)
        return c - tf.math.log(self.rate) + further

    def _mean(self):
        return self.concentration / self.rate

    def _variance(self):
        return self.concentration / tf.square(self.rate)

    def _stddev(self):
        return tf.sqrt(self.concentration) / self.rate

    def _mode(self):
        mode = (self.concentration - 1.0) / self.rate
        messages = ["mode not defined when any concentration <= 1"]
        return defined_above_one(self, mode, [self.concentration], messages)


@kl.RegisterKL(Gamma, Gamma)
def _kl_gamma_gamma(g0, g1, name=None):
    with tf.name_scope(name or "kl_gamma_gamma"):
        c0, c1 = g0.concentration, g1.concentration
        return (
            (c0 - c1) * tf.math.digamma(c0)
            + tf.math.lgamma(c1)
            - tf.math.lgamma(c0)
            + c1 * tf.math.log(g0.rate)
            - c1 * tf.math.log(g1.rate)
            + c0 * (g1.rate / g0.rate - 1.0)
        )


@takes("rate", shaped="rate", attributes="rate")
class Exponential(Gamma):
    """Exponential distributions of inverse scale `rate`."""

    def _begin(self, rate):
        rate = tf.convert_to_tensor(rate)
        return super()._begin(tf.ones([], rate.dtype), rate)

    def _sample_n(self, n, seed=None):
        # From above 0 on, whose logarithm would be infinite.
        tiny = np.finfo(self.dtype.as_numpy_dtype).tiny
        shape = tf.concat([[n], tf.shape(self.rate)], 0)
        uniform = tf.random.uniform(shape, tiny, 1.0, self.dtype, seed=seed)
        return -tf.math.log(uniform) / self.rate

    def _log_survival_function(self, x):
        return -self.rate * self._valid(x)


_BETA = "concentration1=None, concentration0=None"


@takes(
    _BETA,
    shaped="concentration1 concentration0",
    attributes="concentration1 concentration0 total_concentration",
)
class Beta(ScalarEvents):
    """Beta distributions, of [0, 1], of two concentrations."""

    _of = ("total_concentration",)

    def _begin(self, concentration1, concentration0):
        given = checks.float_tensors(concentration1, concentration0)
        if self.validate_args:
            positive = tf.debugging.assert_positive
            given = [after([positive(t, message=_POSITIVE)], t) for t in given]
        self._concentration1, self._concentration0 = map(tf.identity, given)
        self._total_concentration = self._concentration1 + self._concentration0
        return self._total_concentration.dtype

    def _sample_n(self, n, seed=None):
        ones = tf.ones_like(self.total_concentration)
        first, second = (
            tf.random.gamma([n], ones * concentration, dtype=self.dtype, seed=s)
            for concentration, s in (
                (self.concentration1, seed),
                (self.concentration0, checks.new_seed(seed, "beta")),
            )
        )
        return first / (first + second)

    def _valid(self, x):
        if not self.validate_args:
            return x
        one = tf.ones([], self.dtype)
        positive, less = tf.debugging.assert_positive, tf.debugging.assert_less
        tests = [
            positive(x, message="sample must be positive"),
            less(x, one, message="sample must be less than `1`."),
        ]
        return after(tests, x)

    def _log_prob(self, x):
        x, c1, c0 = self._valid(x), self.concentration1, self.concentration0
        density = (c1 - 1.0) * tf.math.log(x) + (c0 - 1.0) * tf.math.log1p(-x)
        return density - self._log_beta()

    def _log_beta(self):
        parts = (self.concentration1, self.concentration0)
        return sum(map(tf.math.lgamma, parts)) - tf.math.lgamma(
            self.total_concentration
        )

    def _cdf(self, x):
        zeros = tf.zeros_like(self._valid(x) + self.total_concentration)
        c1, c0 = self.concentration1 + zeros, self.concentration0 + zeros
        return tf.math.betainc(c1, c0, x + zeros)

    def _entropy(self):
        c1, c0, total = (
            self.concentration1,
            self.concentration0,
            self.total_concentration,
        )
        return (
            self._log_beta()
            - (c1 - 1.0) * tf.math.digamma(c1)
            - (c0 - 1.0) * tf.math.digamma(c0)
            + (total - 2.0) * tf.math.digamma(total)
        )

    def _mean(self):
        return self.concentration1 / self.total_concentration

    def _variance(self):
        return self._mean() * (1.0 - self._mean()) / (1.0 + self.total_concentration)

    def _mode(self):
        mode = (self.concentration1 - 1.0) / (self.total_concentration - 2.0)
        names = ("concentration1", "concentration0")
        messages = [f"Mode undefined for {name} <= 1." for name in names]
        tensors = [self.concentration1, self.concentration0]
        return defined_above_one(self, mode, tensors, messages)


@kl.RegisterKL(Beta, Beta)
def _kl_beta_beta(d1, d2, name=None):
    def difference(function, attribute):
        return function(getattr(d2, attribute)) - function(getattr(d1, attribute))

    with tf.name_scope(name or "kl_beta_beta"):
        parts = ("concentration1", "concentration0")
        found = difference(tf.math.lgamma, parts[0]) + difference(
            tf.math.lgamma, parts[1]
        )
        found -= difference(tf.math.lgamma, "total_concentration")
        for part in parts:
            found -= tf.math.digamma(getattr(d1, part)) * difference(tf.identity, part)
        total = tf.math.digamma(d1.total_concentration)
        return found + total * difference(tf.identity, "total_concentration")


def valid_concentrations(concentration, validate_args):
    """Concentrations, the last dimension's an event's, checked where that is asked for."""
    concentration = tf.convert_to_tensor(concentration)
    if not validate_args:
        return concentration
    few = "Concentration parameter must have event_size >= 2."
    tests = [
        tf.debugging.assert_positive(concentration, message=_POSITIVE),
        tf.debugging.assert_rank_at_least(
            concentration,
            1,
            message="Concentration parameter must have >=1 dimensions.",
        ),
        tf.debugging.assert_less(1, tf.shape(concentration)[-1], message=few),
    ]
    return after(tests, concentration)


class OfConcentrations(Distribution):
    """Distributions of vectors as long as the concentrations' last dimension."""

    def _keep(self, concentration):
        concentration = valid_concentrations(concentration, self.validate_args)
        self._concentration = tf.identity(concentration)
        self._total_concentration = tf.reduce_sum(self._concentration, -1)
        return self._concentration.dtype

    def _batch_shape(self):
        return self.total_concentration.shape

    def _batch_shape_tensor(self):
        return tf.shape(self.total_concentration)

    def _event_shape(self):
        shape = self.concentration.shape
        return tf.TensorShape(None if shape.rank is None else shape[-1:])

    def _event_shape_tensor(self):
        return tf.shape(self.concentration)[-1:]

    def _shares(self):
        """The concentrations, of which each event's sum is 1."""
        return self.concentration / self.total_concentration[..., tf.newaxis]


@takes("concentration", attributes="concentration total_concentration")
class Dirichlet(OfConcentrations):
    """Dirichlet distributions of vectors whose sum is 1."""

    def _begin(self, concentration):
        return self._keep(concentration)

    def _sample_n(self, n, seed=None):
        found = tf.random.gamma([n], self.concentration, dtype=self.dtype, seed=seed)
        return found / tf.reduce_sum(found, -1, keepdims=True)

    def _valid(self, x):
        if not self.validate_args:
            return x
        one = tf.ones([], self.dtype)
        message = "sample last-dimension must sum to `1`"
        tests = [
            tf.debugging.assert_positive(x, message="samples must be positive"),
            checks.assert_close(one, tf.reduce_sum(x, -1), message),
        ]
        return after(tests, x)

    def _log_prob(self, x):
        powers = (self.concentration - 1.0) * tf.math.log(self._valid(x))
        return tf.reduce_sum(powers, -1) - tf.math.lbeta(self.concentration)

    def _size(self):
        return tf.cast(self.event_shape_tensor()[0], self.dtype)

    def _entropy(self):
        c, total = self.concentration, self.total_concentration
        return (
            tf.math.lbeta(c)
            + (total - self._size()) * tf.math.digamma(total)
            - tf.reduce_sum((c - 1.0) * tf.math.digamma(c), -1)
        )

    def _mean(self):
        return self._shares()

    def _scale(self):
        """Of how much the root of covariances falls with the total."""
        return tf.math.rsqrt(1.0 + self.total_concentration[..., tf.newaxis])

    def _covariance(self):
        x = self._scale() * self._mean()
        outer = -x[..., tf.newaxis] * x[..., tf.newaxis, :]
        return tf.linalg.set_diag(outer, self._variance())

    def _variance(self):
        scale, mean = self._scale(), self._mean()
        return scale * mean * (scale - scale * mean)

    def _mode(self):
        total = self.total_concentration[..., tf.newaxis]
        mode = (self.concentration - 1.0) / (total - self._size())
        message = "Mode undefined when any concentration <= 1"
        least = tf.reduce_min(self.concentration, -1, keepdims=True)
        return defined_above_one(self, mode, [least], [message])


@kl.RegisterKL(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(d1, d2, name=None):
    with tf.name_scope(name or "kl_dirichlet_dirichlet"):
        total = tf.math.digamma(tf.reduce_sum(d1.concentration, -1, keepdims=True))
        logs = tf.math.digamma(d1.concentration) - total
        difference = d1.concentration - d2.concentration
        betas = tf.math.lbeta(d1.concentration) - tf.math.lbeta(d2.concentration)
        return tf.reduce_sum(difference * logs, -1) - betas
