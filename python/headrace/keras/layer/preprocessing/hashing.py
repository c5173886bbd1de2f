"""Hashing, HashedCrossing and Discretization: numbers for values."""

import numpy as np

from headrace import _api as tf
from headrace.keras.layer.parts import takes
from headrace.keras.layer.preprocessing.adapting import as_tensor
from headrace.keras.layer.preprocessing.encoding import Encoded, on_values


@takes(
    "num_bins, mask_value=None, salt=None, output_mode='int', sparse=False, **kwargs"
)
class Hashing(Encoded):
    """Bins by the values' hashes."""

    _config_names = ("num_bins", "salt", "mask_value", "output_mode", "sparse")

    def _before(self, given):
        num_bins, salt = given["num_bins"], given["salt"]
        if num_bins is None or num_bins <= 0:
            raise ValueError(
                "The `num_bins` for `Hashing` cannot be `None` or non-positive values. "
                f"Received: num_bins={num_bins}."
            )
        if salt is not None and not (
            isinstance(salt, int)
            or (isinstance(salt, (list, tuple)) and len(salt) == 2)
        ):
            raise ValueError(
                "The `salt` argument for `Hashing` can only be a tuple of size 2 "
                f"integers, or a single integer. Received: salt={salt}."
            )
        given["salt"] = [salt, salt] if isinstance(salt, int) else salt

    def compute_output_shape(self, input_shape):
        """The shape itself for bins, else that of rows of `num_bins`."""
        shape = tf.TensorShape(input_shape)
        if self.output_mode == "int" or shape.rank is None:
            return shape
        is_apart = self.output_mode == "one_hot" and shape.rank and shape[-1] != 1
        return (shape if is_apart else shape[:-1]).concatenate(self.num_bins)

    def call(self, inputs):
        ids = on_values(self._bins, as_tensor(inputs))
        return self._encoded(ids, self.num_bins)

    def _bins(self, values):
        masked = None
        bins = self.num_bins
        if self.mask_value is not None and bins > 1:
            masked = tf.equal(values, tf.cast(self.mask_value, values.dtype))
            bins -= 1
        if values.dtype.is_integer:
            values = tf.strings.as_string(values)
        if self.salt is None:
            found = tf.strings.to_hash_bucket_fast(values, bins)
        else:
            found = tf.strings.to_hash_bucket_strong(values, bins, list(self.salt))
        if masked is None:
            return found
        return tf.where(masked, tf.zeros_like(found), found + 1)


@takes("num_bins, output_mode='int', sparse=False, **kwargs")
class HashedCrossing(Encoded):
    """Bins by the hashes of several features together."""

    _config_names = ("num_bins", "output_mode", "sparse")
    _modes = ("int", "one_hot")
    _takes_lists = False

    def call(self, inputs):
        if not isinstance(inputs, (list, tuple)):
            raise ValueError(
                "`HashedCrossing` should be called on a list or tuple of inputs. "
                f"Received: inputs={inputs}"
            )
        if len(inputs) < 2:
            raise ValueError(
                "`HashedCrossing` should be passed at least two inputs. Received: "
                f"inputs={inputs}"
            )
        columns = [as_tensor(x) for x in inputs]
        rank = columns[0].shape.rank
        if rank == 0:
            columns = [tf.reshape(x, [1, 1]) for x in columns]
        elif rank == 1:
            columns = [tf.expand_dims(x, -1) for x in columns]
        crossed = tf.sparse.cross_hashed(columns, self.num_bins)
        ids = tf.sparse.to_dense(crossed)
        if rank < 2:
            ids = tf.reshape(ids, [] if rank == 0 else [-1])
        return self._encoded(ids, self.num_bins)


def _summary(values, epsilon):
    """Sorted values of a batch and the weight of each, 1 / epsilon of them at most."""
    values = np.sort(np.ravel(values))
    step = values.size * epsilon
    width = max(step, 1)
    kept = values[int(step) :: int(width)]
    return np.stack([kept, np.full_like(kept, width)]).astype(np.float32)


def _compressed(summary, epsilon):
    """A summary of 1 / epsilon values, found between those of the given one."""
    if summary.shape[1] * epsilon < 1:
        return summary
    places = epsilon + np.arange(0.0, 1.0, epsilon)
    totals = summary[1].cumsum()
    shares = totals / totals[-1]
    values = np.interp(places, shares, summary[0])
    ends = np.interp(places, shares, totals)
    weights = ends - np.concatenate([[0.0], ends[:-1]])
    return np.stack([values, weights]).astype(np.float32)


@takes(
    "bin_boundaries=None, num_bins=None, epsilon=0.01, output_mode='int', "
    "sparse=False, **kwargs"
)
class Discretization(Encoded):
    """The numbers of the ranges that values lie in."""

    _config_names = ("bin_boundaries", "num_bins", "epsilon", "output_mode", "sparse")
    _config_attributes = {"bin_boundaries": "input_bin_boundaries"}

    def _before(self, given):
        bins = given.pop("bins", None)  # what both were called before
        if bins is None:
            return
        name = "num_bins" if isinstance(bins, int) else "bin_boundaries"
        given[name] = bins

    def _begin(self):
        num_bins, bin_boundaries = self.num_bins, self.input_bin_boundaries
        if num_bins is not None and num_bins < 0:
            raise ValueError(
                "`num_bins` must be greater than or equal to 0. You passed "
                f"`num_bins={num_bins}`"
            )
        if num_bins is not None and bin_boundaries is not None:
            raise ValueError(
                "Both `num_bins` and `bin_boundaries` should not be set. You passed "
                f"`num_bins={num_bins}` and `bin_boundaries={bin_boundaries}`"
            )
        given = None if bin_boundaries is None else [float(b) for b in bin_boundaries]
        self.input_bin_boundaries = given
        self.bin_boundaries = [] if given is None else list(given)

    def _check_adaptable(self):
        if self.input_bin_boundaries is not None:
            raise ValueError(
                "Cannot adapt a Discretization layer that has been initialized with "
                "`bin_boundaries`, use `num_bins` instead. You passed "
                f"`bin_boundaries={self.input_bin_boundaries}`."
            )

    def build(self, input_shape):
        if self.input_bin_boundaries is None:
            none = np.zeros((2, 0), np.float32)
            self.summary = tf.Variable(none, False, shape=(2, None), name="summary")
        self.built = True

    def reset_state(self):
        if self.input_bin_boundaries is None and self.built:
            self.summary.assign(np.zeros((2, 0), np.float32))

    def update_state(self, data):
        values = data if isinstance(data, tf.Tensor) else data.values
        values = np.asarray(values, np.float32)
        if not values.size:
            return
        merged = np.concatenate(
            [self.summary.numpy(), _summary(values, self.epsilon)], axis=1
        )
        merged = merged[:, np.argsort(merged[0], kind="stable")]
        self.summary.assign(_compressed(merged, self.epsilon))

    def finalize_state(self):
        if self.input_bin_boundaries is not None or not self.built:
            return
        summary = self.summary.numpy()
        if not summary.size or not self.num_bins:
            self.bin_boundaries = []
            return
        limits = _compressed(summary, 1.0 / self.num_bins)[0, :-1]
        self.bin_boundaries = [float(v) for v in limits]

    def call(self, inputs):
        def bins(values):
            values = tf.cast(values, tf.float32)
            found = tf.raw_ops.Bucketize(
                input=values, boundaries=list(self.bin_boundaries)
            )
            return tf.cast(found, tf.int64)

        ids = on_values(bins, as_tensor(inputs))
        return self._encoded(ids, len(self.bin_boundaries) + 1)
