"""Batch, layer, group and unit normalization."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import strategies
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.phase import choose, is_tensor
from headrace.keras.layer.parts import Weighted, counted_axes, takes


_HALF = (tf.float16, tf.bfloat16)


def _in_floats(inputs):
    """The inputs in float32 if they are of half its size, too small for moments."""
    return tf.cast(inputs, tf.float32) if inputs.dtype in _HALF else inputs


def _of_known_rank(input_shape):
    """The TensorShape; ValueError for one of any rank."""
    shape = tf.TensorShape(input_shape)
    if shape.rank is None:
        raise ValueError(f"Input has undefined rank. Received: input_shape={shape}")
    return shape


def _checked_axes(axis, rank):
    """The axes, an integer or several, counted from the first; TypeError and ValueError
    for what is none of inputs of that rank, or is said twice."""
    given = _listed(axis)
    if not all(isinstance(a, int) for a in given):
        raise TypeError(
            "Expected an int or a list/tuple of ints for the argument 'axis', but "
            f"received: {axis!r}"
        )
    return counted_axes(given, rank)


def _listed(axis):
    """The axes of an argument: one, or several."""
    return axis if isinstance(axis, (list, tuple)) else [axis]


@takes(
    "axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True, "
    "synchronized=False, **kwargs",
    *("beta", "gamma"),
    initialized=("moving_mean", "moving_variance"),
    before="synchronized",
    activity=False,
)
class BatchNormalization(Weighted, Layer):
    """Normalizes by the batch while training, by running averages otherwise.

    With `synchronized` the moments are those of the batches of all replicas together.
    """

    supports_masking = True
    _config_without = ("synchronized",)
    _keeps_shape = True

    def _axes(self, rank):
        return _checked_axes(self.axis, rank)

    def build(self, input_shape):
        """Makes gamma, beta, moving_mean and moving_variance, of the sizes of `axis`.

        ValueError where one of these is unknown.
        """
        shape = _of_known_rank(input_shape)
        axes = self._axes(shape.rank)
        sizes = {a: shape[a] for a in axes}
        if None in sizes.values():
            raise ValueError(
                "All `axis` values must be kept in the input shape: "
                f"{tuple(shape.as_list())}"
            )
        self.input_spec = InputSpec(ndim=shape.rank, axes=sizes)
        self.axis = axes
        param = list(sizes.values())
        if len(axes) > 1:
            param = [sizes.get(i, 1) for i in range(shape.rank)]
        dtype = tf.float32 if self._dtype in _HALF else self._dtype
        how = {"dtype": dtype, "experimental_autocast": False}
        self.gamma = self._new_weight("gamma", param, **how) if self.scale else None
        self.beta = self._new_weight("beta", param, **how) if self.center else None
        for name in ("moving_mean", "moving_variance"):
            # Each replica moves its own averages; they are saved as the mean of all.
            weight = self._new_weight(
                name,
                param,
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.MEAN,
                **how,
            )
            setattr(self, name, weight)
        self.built = True

    def call(self, inputs, mask=None, training=None):
        """(x - mean) / sqrt(variance + epsilon) * gamma + beta, along `axis`.

        In training by the batch's moments, which move the running ones; else, and where
        `trainable` is False, by these. With a mask hidden steps do not count.
        """
        training = self.trainable and (
            training if is_tensor(training) else bool(training)
        )
        rank = inputs.shape.rank
        axes = self._axes(rank)
        fused = rank == 4 and not self.synchronized
        if fused and axes == [3]:
            return self._call_fused(inputs, training)
        if fused and axes == [1]:
            out = self._call_fused(tf.transpose(inputs, [0, 2, 3, 1]), training)
            return tf.transpose(out, [0, 3, 1, 2])
        others = [i for i in range(rank) if i not in axes]
        inputs = _in_floats(inputs)
        averages = (self.moving_mean, self.moving_variance)
        if training is False:
            mean, variance = (v._read() for v in averages)
        else:
            found = self._moments(inputs, others, len(axes) > 1, mask)
            self._update(inputs, *found, training)
            mean, variance = (
                choose(training, lambda m=m: m, lambda v=v: v._read())
                for m, v in zip(found, averages)
            )
        shape = None
        if axes != [rank - 1] and len(axes) == 1:
            shape = [1] * rank
            shape[axes[0]] = inputs.shape[axes[0]]

        def fit(x):
            return x if shape is None or x is None else tf.reshape(x, shape)

        gamma = None if self.gamma is None else self.gamma._read()
        beta = None if self.beta is None else self.beta._read()
        return self._cast_out(
            tf.nn.batch_normalization(
                inputs, fit(mean), fit(variance), fit(beta), fit(gamma), self.epsilon
            )
        )

    def _moments(self, inputs, axes, keepdims, mask):
        if self.synchronized:
            return self._moments_of_all(inputs, axes, keepdims, mask)
        if mask is None:
            found = tf.nn.moments(inputs, axes, keepdims=keepdims)
            some = _has_rows(inputs)
            if some is None:
                return found
            return [tf.where(some, x, tf.zeros_like(x)) for x in found]
        shown = _shown(mask, inputs)
        count = tf.reduce_sum(shown * tf.ones_like(inputs), axes, keepdims=True)
        mean = tf.reduce_sum(inputs * shown, axes, keepdims=True) / count
        squares = tf.math.squared_difference(inputs, mean) * shown
        variance = tf.reduce_sum(squares, axes, keepdims=True) / count
        if not keepdims:
            mean, variance = tf.squeeze(mean, axes), tf.squeeze(variance, axes)
        return mean, variance

    def _moments_of_all(self, inputs, axes, keepdims, mask):
        """Those of the batches of all replicas: from sums, which can be added up."""
        ones = tf.ones_like(inputs)
        shown = ones if mask is None else _shown(mask, inputs) * ones
        parts = (shown, inputs * shown, tf.square(inputs) * shown)
        sums = [tf.reduce_sum(x, axes, keepdims=keepdims) for x in parts]
        replica = strategies.replica()
        if replica is not None:
            sums = replica.all_reduce("SUM", sums)
        count, total, squares = sums
        mean = total / count
        return mean, squares / count - tf.square(mean)

    def _update(self, inputs, mean, variance, training):
        """Moves the running averages: not at all where a graph does not train, nor in a
        replica that has no rows."""
        rate = 1.0 - self.momentum
        some = None if self.synchronized else _has_rows(inputs)
        averages = (self.moving_mean, self.moving_variance)
        for average, value in zip(averages, (mean, variance)):
            change = (average._read() - value) * rate
            if is_tensor(training):
                change = tf.where(training, change, tf.zeros_like(change))
            if some is not None:
                change = tf.where(some, change, tf.zeros_like(change))
            self.add_update(average.assign_sub(change, read_value=False))

    def _call_fused(self, inputs, training):
        mean, variance = self.moving_mean._read(), self.moving_variance._read()
        scale = self.gamma._read() if self.scale else tf.ones_like(mean)
        offset = self.beta._read() if self.center else tf.zeros_like(mean)

        def run(trains):
            return _headrace.raw_op("FusedBatchNormV3")(
                x=inputs,
                scale=scale,
                offset=offset,
                mean=[] if trains else mean,
                variance=[] if trains else variance,
                epsilon=self.epsilon,
                is_training=trains,
            )[:3]

        out, mean, variance = choose(training, lambda: run(True), lambda: run(False))
        if training is not False:
            self._update(inputs, mean, variance, training)
        return tf.ensure_shape(out, inputs.shape) if is_tensor(training) else out


@takes(
    "axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True, **kwargs",
    *("beta", "gamma"),
    initialized=("moving_mean", "moving_variance"),
    activity=False,
)
class SyncBatchNormalization(BatchNormalization):
    """BatchNormalization whose moments are those of all replicas together."""

    def _begin(self):
        self.synchronized = True


def _has_rows(inputs):
    """Whether a replica's batch has rows: at the end of the data there may be fewer than
    replicas. None where it has for sure."""
    replica = strategies.replica()
    if replica is None or replica.num_replicas_in_sync == 1 or inputs.shape[0]:
        return None
    return tf.size(inputs) > 0


def _shown(mask, inputs):
    """A mask as factors of the inputs."""
    shown = tf.cast(mask, inputs.dtype)
    while shown.shape.rank < inputs.shape.rank:
        shown = tf.expand_dims(shown, -1)
    return shown


@takes(
    "axis=-1, epsilon=1e-3, center=True, scale=True, **kwargs",
    *("beta", "gamma"),
    activity=False,
)
class LayerNormalization(Weighted, Layer):
    """Normalizes each sample over some axes."""

    _casts_weights = False  # GroupNormalization's are
    supports_masking = True
    _keeps_shape = True

    def _axes(self, rank):
        return _checked_axes(self.axis, rank)

    def build(self, input_shape):
        """Makes gamma and beta, of the sizes of `axis`; ValueError where the inputs may
        have any rank."""
        shape = _of_known_rank(input_shape)
        axes = self._axes(shape.rank)
        if not self._casts_weights:
            self.axis = axes
        param = [shape[a] for a in axes]
        how = {"experimental_autocast": self._casts_weights}
        self.gamma = self._new_weight("gamma", param, **how) if self.scale else None
        self.beta = self._new_weight("beta", param, **how) if self.center else None
        self.built = True

    def call(self, inputs):
        """(x - mean) / sqrt(variance + epsilon) * gamma + beta, each sample by itself.

        Mean and variance are over `axis`. Ba et al. (2016),
        https://arxiv.org/abs/1607.06450.
        """
        rank = inputs.shape.rank
        axes = self._axes(rank)
        shape = None
        if axes != [rank - 1]:
            shape = [inputs.shape[i] if i in axes else 1 for i in range(rank)]
        inputs = _in_floats(inputs)
        mean, variance = tf.nn.moments(inputs, axes, keepdims=True)

        def fit(weight):
            if weight is None:
                return None
            value = tf.cast(weight, inputs.dtype)
            return value if shape is None else tf.reshape(value, shape)

        return self._cast_out(
            tf.nn.batch_normalization(
                inputs, mean, variance, fit(self.beta), fit(self.gamma), self.epsilon
            )
        )


@takes(
    "groups=32, axis=-1, epsilon=1e-3, center=True, scale=True, **kwargs",
    *("beta", "gamma"),
    activity=False,
)
class GroupNormalization(LayerNormalization):
    """Normalizes groups of channels."""

    _casts_weights = True

    def build(self, input_shape):
        """Makes gamma and beta, a number each channel; a `groups` of -1 is one each
        channel.

        ValueError where the channels are no multiple of the groups.
        """
        shape = tf.TensorShape(input_shape)
        self._axes(shape.rank)
        size = shape[self.axis]
        if self.groups == -1:
            self.groups = size
        if size % self.groups:
            raise ValueError(
                f"Number of groups ({self.groups}) must be a multiple of the number of "
                f"channels ({size})."
            )
        super().build(input_shape)

    def call(self, inputs):
        """Each group of channels of each sample, less its mean, by its deviation.

        Then times gamma plus beta, of each channel. Wu and He (2018),
        https://arxiv.org/abs/1803.08494.
        """
        rank, axis = inputs.shape.rank, self.axis % inputs.shape.rank
        sizes = inputs.shape.as_list()
        dynamic = tf.shape(inputs)
        full = [n if n is not None else dynamic[i] for i, n in enumerate(sizes)]
        split = [self.groups, sizes[axis] // self.groups]
        grouped = tf.reshape(inputs, [*full[:axis], *split, *full[axis + 1 :]])
        axes = [i for i in range(1, rank + 1) if i != axis]
        mean, variance = tf.nn.moments(grouped, axes, keepdims=True)
        normal = (grouped - mean) * tf.math.rsqrt(variance + self.epsilon)
        out = tf.reshape(normal, full)
        shape = [sizes[axis] if i == axis else 1 for i in range(rank)]
        if self.gamma is not None:
            out = out * tf.reshape(self.gamma, shape)
        return out if self.beta is None else out + tf.reshape(self.beta, shape)


@takes("axis=-1, **kwargs")
class UnitNormalization(Layer):
    """Gives inputs the length 1."""

    supports_masking = True

    def build(self, input_shape):
        """Checks the axes; ValueError for what is none of such inputs."""
        self.axis = _checked_axes(self.axis, tf.TensorShape(input_shape).rank)
        self.built = True

    def call(self, inputs):
        """Inputs divided by their L2 norm along `axis`."""
        return tf.math.l2_normalize(inputs, axis=self.axis, epsilon=1e-12)


@takes("axis=-1, epsilon=1e-6, **kwargs")
class RMSNormalization(Layer):
    """Divides by the root of the mean square along an axis, then scales. Keras 3's."""

    supports_masking = True

    def build(self, input_shape):
        """Makes `scale`, one weight a place along the axes."""
        sizes = tf.TensorShape(input_shape).as_list()
        axes = _listed(self.axis)
        self.scale = self.add_weight(
            "scale", [sizes[a] for a in axes], initializer="ones"
        )
        self.built = True

    def call(self, inputs):
        """The inputs, of the same shape."""
        axes = _listed(self.axis)
        square = tf.reduce_mean(tf.square(inputs), axes, keepdims=True)
        wide = [1] * inputs.shape.rank
        for a in axes:
            wide[a] = inputs.shape[a]
        return (
            inputs * tf.math.rsqrt(square + self.epsilon) * tf.reshape(self.scale, wide)
        )
