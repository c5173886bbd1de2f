"""Bernoulli, categorical and multinomial distributions."""

from headrace import _api as tf
from headrace.v1.distributions import checks, kl
from headrace.v1.distributions.base import (
    Distribution,
    ScalarEvents,
    after,
    takes,
)
from headrace.v1.distributions.gammas import OfConcentrations


@takes(
    "logits=None, probs=None, dtype=int32",
    reparameterized=False,
    shaped="logits",
    attributes="logits probs",
)
class Bernoulli(ScalarEvents):
    """Distributions of 0 and 1, by the probabilities of 1 or their logits."""

    _of = ("logits",)

    def _begin(self, logits, probs, dtype):
        self._logits, self._probs = checks.logits_and_probs(
            logits, probs, False, self.validate_args
        )
        return tf.as_dtype(dtype)

    def _sample_n(self, n, seed=None):
        shape = self._n_of_batch(n)
        uniform = tf.random.uniform(shape, dtype=self.probs.dtype, seed=seed)
        return tf.cast(tf.less(uniform, self.probs), self.dtype)

    def _valid(self, event):
        if not self.validate_args:
            return event
        negative, many = "Elements must be non-negative.", "Elements cannot exceed 1."
        one = tf.cast(1, event.dtype)
        tests = [
            tf.debugging.assert_non_negative(event, message=negative),
            tf.debugging.assert_less_equal(event, one, message=many),
        ]
        return after(tests, event)

    def _log_prob(self, event):
        event = tf.cast(self._valid(event), self.logits.dtype)
        zeros = tf.zeros_like(event * self.logits)
        return -tf.nn.sigmoid_cross_entropy_with_logits(
            labels=event + zeros, logits=self.logits + zeros
        )

    def _entropy(self):
        no = tf.sigmoid(self.logits) - 1.0
        return -self.logits * no + tf.nn.softplus(-self.logits)

    def _mean(self):
        return tf.identity(self.probs)

    def _variance(self):
        return self._mean() * (1.0 - self.probs)

    def _mode(self):
        return tf.cast(self.probs > 0.5, self.dtype)


@kl.RegisterKL(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(a, b, name=None):
    with tf.name_scope(name or "kl_bernoulli_bernoulli"):
        no = tf.nn.softplus(b.logits) - tf.nn.softplus(a.logits)
        yes = tf.nn.softplus(-b.logits) - tf.nn.softplus(-a.logits)
        return tf.sigmoid(a.logits) * yes + tf.sigmoid(-a.logits) * no


@takes(
    "logits=None, probs=None, dtype=int32",
    reparameterized=False,
    attributes="logits probs event_size",
)
class Categorical(Distribution):
    """Distributions of classes, by the last dimension's probabilities or logits."""

    def _begin(self, logits, probs, dtype):
        self._logits, self._probs = checks.logits_and_probs(
            logits, probs, True, self.validate_args
        )
        size = self._logits.shape[-1] if self._logits.shape.rank else None
        self._event_size = (
            tf.shape(self._logits)[-1] if size is None else tf.constant(size)
        )
        return tf.as_dtype(dtype)

    def _batch_shape(self):
        shape = self.logits.shape
        return tf.TensorShape(None if shape.rank is None else shape[:-1])

    def _batch_shape_tensor(self):
        return tf.shape(self.logits)[:-1]

    def _event_shape(self):
        return tf.TensorShape([])

    def _event_shape_tensor(self):
        return tf.constant([], tf.int32)

    def _sample_n(self, n, seed=None):
        logits = tf.reshape(self.logits, [-1, self.event_size])
        wide = tf.int64 if self.dtype.size > 4 else tf.int32
        draws = tf.random.categorical(logits, n, dtype=wide, seed=seed)
        shape = tf.concat([[n], self.batch_shape_tensor()], 0)
        return tf.cast(tf.reshape(tf.transpose(draws), shape), self.dtype)

    def _valid(self, k):
        if self.validate_args:
            last = tf.cast(self.event_size - 1, k.dtype)
            tests = checks.whole_and_not_negative(k, "Elements must be non-negative.")
            many = f"Elements cannot exceed {self.event_size - 1}."
            tests.append(tf.debugging.assert_less_equal(k, last, message=many))
            k = after(tests, k)
        return k if k.dtype.is_integer else tf.cast(k, tf.int32)

    def _log_prob(self, k):
        k, logits = self._broadcast(self._valid(k), self.logits)
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=k, logits=logits)

    def _broadcast(self, k, of_classes):
        """Classes of the batch, and a batch of values for each class."""
        batch = tf.broadcast_dynamic_shape(tf.shape(k), tf.shape(of_classes)[:-1])
        shape = tf.concat([batch, tf.shape(of_classes)[-1:]], 0)
        static = tf.broadcast_static_shape(k.shape, of_classes.shape[:-1])
        k, of_classes = tf.broadcast_to(k, batch), tf.broadcast_to(of_classes, shape)
        k.set_shape(static)
        of_classes.set_shape(static.concatenate([self.logits.shape[-1]]))
        return k, of_classes

    def _cdf(self, k):
        k, probs = self._broadcast(self._valid(k), self.probs)
        before = tf.sequence_mask(k, self.event_size, dtype=probs.dtype)
        return tf.reduce_sum(probs * before, -1)

    def _entropy(self):
        logs = tf.nn.log_softmax(self.logits)
        return -tf.reduce_sum(logs * self.probs, -1)

    def _mode(self):
        return tf.cast(tf.argmax(self.logits, axis=-1), self.dtype)


@kl.RegisterKL(Categorical, Categorical)
def _kl_categorical_categorical(a, b, name=None):
    with tf.name_scope(name or "kl_categorical_categorical"):
        difference = tf.nn.log_softmax(a.logits) - tf.nn.log_softmax(b.logits)
        return tf.reduce_sum(tf.nn.softmax(a.logits) * difference, -1)


def _valid_total(total_count, validate_args):
    total = tf.convert_to_tensor(total_count)
    if not validate_args:
        return total
    return after(checks.whole_and_not_negative(total), total)


def _valid_counts(distribution, counts, message):
    if not distribution.validate_args:
        return counts
    total = tf.reduce_sum(counts, -1)
    tests = checks.whole_and_not_negative(counts)
    equal = tf.debugging.assert_equal
    tests.append(equal(distribution.total_count, total, message=message))
    return after(tests, counts)


def _counts(draws, size, dtype):
    """How often each of `size` classes is among the last dimension's."""
    return tf.reduce_sum(tf.one_hot(draws, size, dtype=dtype), -2)


@takes(
    "total_count, logits=None, probs=None",
    reparameterized=False,
    attributes="total_count logits probs",
)
class Multinomial(Distribution):
    """Distributions of how often each class comes in `total_count` draws."""

    def _begin(self, total_count, logits, probs):
        self._total_count = _valid_total(total_count, self.validate_args)
        self._logits, self._probs = checks.logits_and_probs(
            logits, probs, True, self.validate_args
        )
        self._mean_value = self._total_count[..., tf.newaxis] * self._probs
        return self._probs.dtype

    def _batch_shape(self):
        shape = self._mean_value.shape
        return tf.TensorShape(None if shape.rank is None else shape[:-1])

    def _batch_shape_tensor(self):
        return tf.shape(self._mean_value)[:-1]

    def _event_shape(self):
        shape = self._mean_value.shape
        return tf.TensorShape(None if shape.rank is None else shape[-1:])

    def _event_shape_tensor(self):
        return tf.shape(self._mean_value)[-1:]

    def _sample_n(self, n, seed=None):
        size = self.event_shape_tensor()[0]
        batch = self.batch_shape_tensor()
        draws = tf.broadcast_to(tf.cast(self.total_count, tf.int32), batch)
        logits = tf.broadcast_to(self.logits, tf.concat([batch, [size]], 0))

        def of_member(given):
            row, number = given
            found = tf.random.categorical(row[tf.newaxis], n * number, seed=seed)
            return _counts(tf.reshape(found, [n, number]), size, self.dtype)

        rows = (tf.reshape(logits, [-1, size]), tf.reshape(draws, [-1]))
        counts = tf.map_fn(of_member, rows, fn_output_signature=self.dtype)
        shape = tf.concat([[n], batch, [size]], 0)
        return tf.reshape(tf.transpose(counts, [1, 0, 2]), shape)

    def _log_prob(self, counts):
        message = "counts must sum to `self.total_count`"
        counts = _valid_counts(self, counts, message)
        density = tf.reduce_sum(counts * tf.nn.log_softmax(self.logits), -1)
        return density + checks.log_combinations(self.total_count, counts)

    def _mean(self):
        return tf.identity(self._mean_value)

    def _covariance(self):
        p = self.probs * tf.ones_like(self.total_count)[..., tf.newaxis]
        outer = -self._mean_value[..., tf.newaxis] * p[..., tf.newaxis, :]
        return tf.linalg.set_diag(outer, self._variance())

    def _variance(self):
        p = self.probs * tf.ones_like(self.total_count)[..., tf.newaxis]
        return self._mean_value - self._mean_value * p


@takes(
    "total_count, concentration",
    reparameterized=False,
    attributes="total_count concentration total_concentration",
)
class DirichletMultinomial(OfConcentrations):
    """Multinomial distributions whose probabilities are of a Dirichlet distribution."""

    def _begin(self, total_count, concentration):
        self._total_count = _valid_total(total_count, self.validate_args)
        return self._keep(concentration)

    def _sample_n(self, n, seed=None):
        size = self.event_shape_tensor()[0]
        gamma = tf.random.gamma([n], self.concentration, dtype=self.dtype, seed=seed)
        logits = tf.reshape(tf.math.log(gamma), [-1, size])
        draws = tf.random.categorical(
            logits,
            tf.cast(self.total_count, tf.int32),
            seed=checks.new_seed(seed, "dirichlet_multinomial"),
        )
        shape = tf.concat([[n], self.batch_shape_tensor(), [size]], 0)
        return tf.reshape(_counts(draws, size, self.dtype), shape)

    def _log_prob(self, counts):
        message = "counts last-dimension must sum to `self.total_count`"
        counts = _valid_counts(self, counts, message)
        c = self.concentration
        ordered = tf.math.lbeta(c + counts) - tf.math.lbeta(c)
        return ordered + checks.log_combinations(self.total_count, counts)

    def _mean(self):
        return self.total_count[..., tf.newaxis] * self._shares()

    def _scale(self):
        """The root of how much wider counts spread than those of one multinomial."""
        total = self.total_concentration[..., tf.newaxis]
        count = self.total_count[..., tf.newaxis]
        return tf.sqrt((total + count) / (1.0 + total))

    def _covariance(self):
        x = self._scale() * self._mean()
        share = self._scale() * self._shares()
        outer = -x[..., tf.newaxis] * share[..., tf.newaxis, :]
        return tf.linalg.set_diag(outer, self._variance())

    def _variance(self):
        scale, mean = self._scale(), self._mean()
        spread = scale * mean * scale
        return spread - spread * self._shares()
