"""Normal, Laplace, Student's t and uniform distributions."""

import math

import numpy as np

from headrace import _api as tf
from headrace.v1.distributions import checks, kl
from headrace.v1.distributions.base import ScalarEvents, after, takes


class _Located(ScalarEvents):
    """Of a standard distribution's z the values loc + scale * z."""

    _of = ("loc", "scale")

    def _begin(self, loc, scale):
        if self.validate_args:
            scale = tf.convert_to_tensor(scale)
            scale = after([tf.debugging.assert_positive(scale)], scale)
        self._loc, self._scale = map(tf.identity, checks.float_tensors(loc, scale))
        return self._loc.dtype

    def _z(self, x):
        with tf.name_scope("standardize"):
            return (x - self.loc) / self.scale

    def _located(self, samples):
        return samples * self.scale + self.loc

    def _mean(self):
        return self.loc * tf.ones_like(self.scale)

    _mode = _mean

    def _spread(self):
        """The scales, one for each of the batch."""
        return self.scale * tf.ones_like(self.loc)


@takes("loc, scale", shaped="loc scale", attributes="loc scale")
class Normal(_Located):
    """Normal distributions of means `loc` and standard deviations `scale`."""

    def _sample_n(self, n, seed=None):
        shape = self._n_of_batch(n)
        return self._located(tf.random.normal(shape, dtype=self.dtype, seed=seed))

    def _log_prob(self, x):
        half_log = 0.5 * math.log(2.0 * math.pi) + tf.math.log(self.scale)
        return -0.5 * tf.square(self._z(x)) - half_log

    def _log_cdf(self, x):
        return checks.log_ndtr(self._z(x))

    def _cdf(self, x):
        return checks.ndtr(self._z(x))

    def _log_survival_function(self, x):
        return checks.log_ndtr(-self._z(x))

    def _survival_function(self, x):
        return checks.ndtr(-self._z(x))

    def _entropy(self):
        return 0.5 * math.log(2.0 * math.pi * math.e) + tf.math.log(self._spread())

    def _quantile(self, p):
        return self._located(tf.math.ndtri(p))

    def _stddev(self):
        return self._spread()


@kl.RegisterKL(Normal, Normal)
def _kl_normal_normal(n_a, n_b, name=None):
    with tf.name_scope(name or "kl_normal_normal"):
        variance_a, variance_b = tf.square(n_a.scale), tf.square(n_b.scale)
        ratio = variance_a / variance_b
        distance = tf.math.squared_difference(n_a.loc, n_b.loc) / (2.0 * variance_b)
        return distance + 0.5 * (ratio - 1.0 - tf.math.log(ratio))


@takes("loc, scale", shaped="loc scale", attributes="loc scale")
class Laplace(_Located):
    """Laplace distributions: exponential on both sides of `loc`."""

    def _sample_n(self, n, seed=None):
        # From above -1 on, whose logarithm would be infinite.
        lowest = np.nextafter(
            self.dtype.as_numpy_dtype(-1.0), self.dtype.as_numpy_dtype(0.0)
        )
        shape = self._n_of_batch(n)
        uniform = tf.random.uniform(shape, lowest, 1.0, self.dtype, seed=seed)
        return self.loc - self.scale * tf.sign(uniform) * tf.math.log1p(
            -tf.abs(uniform)
        )

    def _log_prob(self, x):
        return -tf.abs(self._z(x)) - math.log(2.0) - tf.math.log(self.scale)

    def _prob(self, x):
        return 0.5 * tf.exp(-tf.abs(self._z(x))) / self.scale

    def _log_cdf(self, x):
        return self._log_side(self._z(x))

    def _log_survival_function(self, x):
        return self._log_side(-self._z(x))

    def _log_side(self, z):
        side = math.log(2.0)
        return tf.where(z < 0, z - side, tf.math.log1p(-0.5 * tf.exp(-tf.abs(z))))

    def _cdf(self, x):
        z = self._z(x)
        return 0.5 - 0.5 * tf.sign(z) * tf.math.expm1(-tf.abs(z))

    def _entropy(self):
        return math.log(2.0) + 1 + tf.math.log(self._spread())

    def _stddev(self):
        return math.sqrt(2.0) * self._spread()


@takes("df, loc, scale", shaped="df loc scale", attributes="df loc scale")
class StudentT(_Located):
    """Student's t distributions of `df` degrees of freedom, moved and scaled."""

    _of = ("df", "loc", "scale")

    def _begin(self, df, loc, scale):
        df = tf.convert_to_tensor(df)
        if self.validate_args:
            df = after([tf.debugging.assert_positive(df)], df)
        self._df, self._loc, self._scale = map(
            tf.identity, checks.float_tensors(df, loc, scale)
        )
        return self._df.dtype

    def _sample_n(self, n, seed=None):
        normal = tf.random.normal(self._n_of_batch(n), dtype=self.dtype, seed=seed)
        df = self.df * self._batch_ones()
        other = checks.new_seed(seed, "student_t")
        gamma = tf.random.gamma([n], 0.5 * df, beta=0.5, dtype=self.dtype, seed=other)
        return normal * tf.math.rsqrt(gamma / df) * self.scale + self.loc

    def _log_prob(self, x):
        y, df = self._z(x), self.df
        unnormalized = -0.5 * (df + 1.0) * tf.math.log1p(tf.square(y) / df)
        return unnormalized - self._log_normalization()

    def _log_normalization(self):
        df = self.df
        return (
            tf.math.log(tf.abs(self.scale))
            + 0.5 * tf.math.log(df)
            + 0.5 * math.log(math.pi)
            + tf.math.lgamma(0.5 * df)
            - tf.math.lgamma(0.5 * (df + 1.0))
        )

    def _cdf(self, x):
        y = (x - self.loc) / tf.abs(self.scale)
        share = self.df / (tf.square(y) + self.df)
        half = tf.constant(0.5, self.dtype)
        a, b, share = (
            t + tf.zeros_like(half * self.df + y) for t in (0.5 * self.df, half, share)
        )
        below = 0.5 * tf.math.betainc(a, b, share)
        return tf.where(y < 0, below, 1.0 - below)

    def _entropy(self):
        ones = self._batch_ones()
        v = ones * self.df
        both = tf.stack([tf.constant(0.5, self.dtype) * ones, 0.5 * v], -1)
        return (
            tf.math.log(tf.abs(self.scale) * ones)
            + 0.5 * tf.math.log(v)
            + tf.math.lbeta(both)
            + 0.5
            * (v + 1.0)
            * (tf.math.digamma(0.5 * (v + 1.0)) - tf.math.digamma(0.5 * v))
        )

    def _mean(self):
        mean = self.loc * self._batch_ones()
        return self._above_one(mean, "mean")

    def _above_one(self, found, what):
        """What is found where there are more than one degree of freedom."""
        one = tf.constant(1.0, self.dtype)
        if self.allow_nan_stats:
            return tf.where(self.df * self._batch_ones() > one, found, np.nan)
        message = f"{what} not defined for components of df <= 1"
        return after([tf.debugging.assert_less(one, self.df, message=message)], found)

    def _variance(self):
        # (Its result is infinite at two degrees of freedom and fewer.)
        enough = self.df > 2.0
        denominator = tf.where(enough, self.df - 2.0, tf.ones_like(self.df))
        found = self._batch_ones() * tf.square(self.scale) * self.df / denominator
        found = tf.where(self._batch_ones() * self.df > 2.0, found, np.inf)
        return self._above_one(found, "variance")

    def _mode(self):
        return self.loc * self._batch_ones()


@takes("low=0.0, high=1.0", shaped="low high", attributes="low high")
class Uniform(ScalarEvents):
    """Uniform distributions of [low, high)."""

    _of = ("low", "high")

    def _begin(self, low, high):
        low, high = checks.float_tensors(low, high)
        tests = []
        if self.validate_args:
            message = "uniform not defined when low >= high."
            tests = [tf.debugging.assert_less(low, high, message=message)]
        self._low, self._high = after(tests, low), after(tests, high)
        return self._low.dtype

    def range(self, name="range"):
        """high - low."""
        with self._name_scope(name):
            return self.high - self.low

    def _sample_n(self, n, seed=None):
        shape = self._n_of_batch(n)
        samples = tf.random.uniform(shape, dtype=self.dtype, seed=seed)
        return self.low + self.range() * samples

    def _prob(self, x):
        values = x * tf.ones_like(self.low) * tf.ones_like(self.high)
        outside = tf.logical_or(x < self.low, x >= self.high)
        inside = tf.ones_like(values) / self.range()
        found = tf.where(outside, tf.zeros_like(values), inside)
        return tf.where(tf.math.is_nan(values), values, found)

    def _cdf(self, x):
        share = (x - self.low) / self.range()
        zeros, ones = tf.zeros_like(share), tf.ones_like(share)
        return tf.where(x < self.low, zeros, tf.where(x >= self.high, ones, share))

    def _entropy(self):
        return tf.math.log(self.range())

    def _mean(self):
        return (self.low + self.high) / 2.0

    def _variance(self):
        return tf.square(self.range()) / 12.0

    def _stddev(self):
        return self.range() / math.sqrt(12.0)
