"""tf.compat.v1.layers.BatchNormalization."""

import contextlib

from headrace import _api as tf
from headrace._load import _headrace, raw
from headrace.framework import execution
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.phase import choose, is_tensor
from headrace.keras.layer.parts import Weighted, counted_axes
from headrace.ops.random import initializers_v1
from headrace.v1.layer.base import Layer, takes


@takes(
    "axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True, "
    "beta_initializer=zeros, "
    "gamma_initializer=ones, "
    "moving_mean_initializer=zeros, "
    "moving_variance_initializer=ones, beta_regularizer=None, "
    "gamma_regularizer=None, beta_constraint=None, gamma_constraint=None, "
    "renorm=False, renorm_clipping=None, renorm_momentum=0.99, fused=None, "
    "trainable=True, virtual_batch_size=None, adjustment=None, name=None, **kwargs"
)
class BatchNormalization(Weighted, Layer):
    """Normalizes by the batch while training, by moving averages otherwise. In a graph
    what changes the averages is in the collection UPDATE_OPS.

    renorm: corrects the batch's moments towards slow averages of them, by no more than
    renorm_clipping, {"rmin", "rmax", "dmax"}, says (https://arxiv.org/abs/1702.03275).
    virtual_batch_size: parts of the batch are normalized each by itself.
    adjustment: a function of the inputs' shape that gives a scale and an offset, of the
    shape, that are applied before gamma and beta while training.
    fused: whether one operation does it all; by default where it can.
    """

    supports_masking = True
    _keeps_shape = True

    def _begin(self):
        axis = self.axis
        if not isinstance(axis, (int, list, tuple)) or isinstance(axis, bool):
            raise TypeError(
                "Expected an int or a list/tuple of ints for the argument 'axis', but "
                f"received: {axis!r}"
            )
        if self.virtual_batch_size is not None and not self.virtual_batch_size > 0:
            raise ValueError(
                "`virtual_batch_size` must be a positive integer that divides the true "
                f"batch size. Received: virtual_batch_size={self.virtual_batch_size}"
            )
        keys = ("rmax", "rmin", "dmax")
        if self.renorm and set(self.renorm_clipping or ()) - set(keys):
            raise ValueError(
                "Received invalid keys for `renorm_clipping` argument: "
                f"{self.renorm_clipping}. Supported values: {list(keys)}."
            )

    def build(self, input_shape):
        """Makes gamma, beta and the averages, of the sizes of `axis`; ValueError where
        one of these is unknown or the axis is none of the inputs'."""
        self._settle_dtype()
        shape = tf.TensorShape(input_shape)
        rank = shape.rank
        if rank is None:
            raise ValueError("Input has undefined rank.")
        given = [self.axis] if isinstance(self.axis, int) else self.axis
        axes = counted_axes(given, rank)
        sizes = {a: shape[a] for a in axes}
        if None in sizes.values():
            raise ValueError(
                "Input has undefined `axis` dimension. Received input with shape "
                f"{tuple(shape.as_list())} and axis={tuple(axes)}"
            )
        self.axis = axes
        self.input_spec = InputSpec(ndim=rank, axes=sizes)
        self._one_operation = self._can_fuse(rank) and self.fused is not False
        param = list(sizes.values())
        if len(axes) > 1:
            param = [sizes.get(i, 1) for i in range(rank)]
        self._make_weights(param, rank)
        self.built = True

    def _can_fuse(self, rank):
        plain = self.virtual_batch_size is None and self.adjustment is None
        last_or_first = self.axis in ([1], [rank - 1])
        return plain and not self.renorm and rank == 4 and last_or_first

    def _make_weights(self, param, rank):
        # The type of the averages of small floats is float32.
        dtype = self._dtype
        if dtype in (tf.float16, tf.bfloat16):
            dtype = tf.float32
        if self.virtual_batch_size is not None and len(param) == 1:
            param = [1] * (rank + 1)
            param[self.axis[0] + 1] = self.input_spec.axes[self.axis[0]]
        learned = {"gamma": self.scale, "beta": self.center}
        for name, wanted in learned.items():
            made = self._new_weight(name, param, dtype=dtype) if wanted else None
            setattr(self, name, made)
        how = {"dtype": dtype, "trainable": False}
        how["synchronization"] = tf.VariableSynchronization.ON_READ
        how["aggregation"] = tf.VariableAggregation.MEAN
        for name in ("moving_mean", "moving_variance"):
            setattr(self, name, self._new_weight(name, param, **how))
        if not self.renorm:
            return
        deviation = self.moving_variance_initializer
        if not isinstance(deviation, (type(None), initializers_v1.Constant)):
            deviation = initializers_v1.Ones()
        first = {"moving_stddev": deviation, "renorm_stddev": deviation}
        for name in ("moving_stddev", "renorm_mean", "renorm_stddev"):
            initial = first.get(name, self.moving_mean_initializer)
            weight = self.add_weight(name, param, initializer=initial, **how)
            setattr(self, name, weight)

    # --- calling ---

    def call(self, inputs, training=None):
        """(x - mean) / sqrt(variance + epsilon) * gamma + beta, along `axis`.

        training: whether the mean and the variance are the batch's, a bool or a scalar
        tensor; a layer that is not trainable has it False.
        """
        training = False if training is None else training
        if not self.trainable:
            training = False
        if isinstance(training, _headrace.Tensor):
            known = execution.get_static_value(training)
            training = training if known is None else bool(known)
        if self.virtual_batch_size is not None:
            return self._in_parts(inputs, training)
        if self._one_operation:
            return self._fused(inputs, training)
        return self._normalize(inputs, training, self.axis)

    def _in_parts(self, inputs, training):
        shape = tf.shape(inputs)
        parts = tf.concat([[self.virtual_batch_size, -1], shape[1:]], 0)
        # As upstream, parts are by themselves where it is known that this is training.
        known = not is_tensor(training)
        out = self._normalize(
            tf.reshape(inputs, parts),
            training,
            [a + 1 for a in self.axis],
            1 if known else None,
        )
        out = tf.reshape(out, shape)
        out.set_shape(inputs.shape)
        return out

    def _normalize(self, inputs, training, axes, kept=None):
        """`kept` is an axis whose elements are batches of their own."""
        rank = inputs.shape.rank
        given = inputs.dtype
        if given in (tf.float16, tf.bfloat16):
            inputs = tf.cast(inputs, tf.float32)
        others = [i for i in range(rank) if i not in axes and i != kept]
        keepdims = self.virtual_batch_size is not None or len(axes) > 1
        scale, offset = self._learned(inputs, rank, axes, training)
        mean, variance = self._moments(inputs, training, others, keepdims)
        if self.renorm:
            scale, offset, mean, variance = self._renormalized(
                (scale, offset), mean, variance, training, (rank, axes)
            )
        elif training is not False:
            self._move(mean, variance, training, kept)
        fitted = [self._fit(v, rank, axes) for v in (mean, variance, offset, scale)]
        out = tf.nn.batch_normalization(inputs, *fitted, self.epsilon)
        out.set_shape(inputs.shape)
        return tf.cast(out, given)

    def _fit(self, value, rank, axes):
        """A value of the normalized axis such that it broadcasts against the inputs."""
        if value is None or value.shape.rank in (0, rank) or axes == [rank - 1]:
            return value
        shape = [1] * rank
        shape[axes[0]] = value.shape[0]
        return tf.reshape(value, shape)

    def _learned(self, inputs, rank, axes, training):
        """gamma and beta, with the adjustment in training."""
        scale, offset = self.gamma, self.beta
        if self.adjustment is None or training is False:
            return scale, offset
        more, shift = self.adjustment(tf.shape(inputs))
        more = choose(training, lambda: more, lambda: tf.ones_like(more))
        shift = choose(training, lambda: shift, lambda: tf.zeros_like(shift))
        if scale is not None:
            scale = self._fit(scale, rank, axes)
            more, shift = more * scale, shift * scale
        if offset is not None:
            shift = shift + self._fit(offset, rank, axes)
        return more, shift

    def _moments(self, inputs, training, others, keepdims):
        averages = self.moving_mean, self.moving_variance
        if training is False:
            return [v.read_value() for v in averages]
        found = tf.nn.moments(inputs, others, keepdims=keepdims)
        return [
            choose(training, lambda f=f: f, lambda a=a: tf.convert_to_tensor(a))
            for f, a in zip(found, averages)
        ]

    # --- what moves the averages ---

    def _move(self, mean, variance, training, kept):
        if kept is not None:  # one of each part
            mean, variance = (
                tf.reduce_mean(v, axis=kept, keepdims=True) for v in (mean, variance)
            )
        for average, value in (
            (self.moving_mean, mean),
            (self.moving_variance, variance),
        ):
            self._noted(average, value, self.momentum, training)

    def _moved(self, average, value, momentum, read=False):
        placed = contextlib.nullcontext()
        if hasattr(average, "_reference"):
            placed = average.graph.colocate_with(average.op)
        with tf.name_scope("AssignMovingAvg") as scope, placed:
            rate = 1.0 - momentum
            if not isinstance(rate, _headrace.Tensor):
                rate = tf.constant(rate, average.dtype.base_dtype, name="decay")
            change = (average.value() - tf.cast(value, average.dtype)) * rate
            name = scope if hasattr(average, "_reference") else None
            return average.assign_sub(change, read_value=read, name=name)

    def _change(self, function, otherwise, training):
        """The operation of a change that is made in training."""
        if not is_tensor(training):
            return function()
        return choose(
            training,
            lambda: tf.identity(function(read=True)),
            lambda: tf.identity(otherwise),
        )

    def _noted(self, average, value, momentum, training):
        def move(read=False):
            return self._moved(average, value, momentum, read)

        self.add_update(self._change(move, average, training))

    def _renormalized(self, learned, mean, variance, training, where):
        """Scale and offset with the correction towards the slow averages."""
        rank, axes = where
        stddev = tf.sqrt(variance + self.epsilon)
        if training is False:
            return (*learned, mean, variance)
        least = tf.maximum(self.renorm_stddev, tf.sqrt(self.epsilon))
        ratio, shift = stddev / least, (mean - self.renorm_mean) / least
        with tf.control_dependencies([ratio, shift]):
            found, stddev = tf.identity(mean), tf.identity(stddev)
        ratio, shift = self._clipped(ratio, shift)
        ratio = choose(training, lambda: ratio, lambda: tf.ones_like(ratio))
        shift = choose(training, lambda: shift, lambda: tf.zeros_like(shift))
        with tf.control_dependencies(self._move_renorm(found, stddev, training)):
            found, noted = tf.identity(found), tf.identity(variance)
        self._noted(self.moving_mean, found, self.momentum, training)
        self._note_variance(noted, training)
        ratio, shift = tf.stop_gradient(ratio), tf.stop_gradient(shift)
        scale, offset = learned
        if scale is not None:
            ratio, shift = ratio * scale, shift * scale
        return ratio, shift if offset is None else shift + offset, mean, variance

    def _clipped(self, ratio, shift):
        clipping = self.renorm_clipping or {}
        if clipping.get("rmin") is not None:
            ratio = tf.maximum(ratio, clipping["rmin"])
        if clipping.get("rmax") is not None:
            ratio = tf.minimum(ratio, clipping["rmax"])
        if clipping.get("dmax") is not None:
            shift = tf.minimum(tf.maximum(shift, -clipping["dmax"]), clipping["dmax"])
        return ratio, shift

    def _move_renorm(self, mean, stddev, training):
        moved = []
        pairs = (self.renorm_mean, mean), (self.renorm_stddev, stddev)
        for average, value in pairs:

            def move(read=False, average=average, value=value):
                return self._moved(average, value, self.renorm_momentum, read)

            moved.append(self._change(move, average, training))
        return [getattr(m, "op", m) for m in moved if not _headrace.is_eager()]

    def _note_variance(self, variance, training):
        """The average of variances is the square of that of deviations."""

        def change(read=False):
            stddev = tf.sqrt(variance + self.epsilon)
            moved = self._moved(self.moving_stddev, stddev, self.momentum)
            before = [] if _headrace.is_eager() else [getattr(moved, "op", moved)]
            with tf.control_dependencies(before):
                deviation = self.moving_stddev.read_value()
                value = tf.nn.relu(deviation * deviation - self.epsilon)
                return self.moving_variance.assign(
                    value, name="AssignNewValue", read_value=read
                )

        self.add_update(self._change(change, self.moving_variance, training))

    # --- one operation ---

    def _fused(self, inputs, training):
        order = "NHWC" if self.axis == [3] else "NCHW"

        def run(train):
            mean = tf.convert_to_tensor(self.moving_mean)
            found = raw.FusedBatchNormV3(
                x=inputs if order == "NHWC" else tf.transpose(inputs, [0, 2, 3, 1]),
                scale=self.gamma if self.scale else tf.ones_like(mean),
                offset=self.beta if self.center else tf.zeros_like(mean),
                mean=[] if train else mean,
                variance=[] if train else self.moving_variance,
                epsilon=self.epsilon,
                is_training=train,
            )
            out = found[0]
            if order == "NCHW":
                out = tf.transpose(out, [0, 3, 1, 2])
            return out, found[1], found[2]

        out, mean, variance = choose(training, lambda: run(True), lambda: run(False))
        out.set_shape(inputs.shape)
        if training is not False:
            momentum = choose(
                training,
                lambda: tf.constant(self.momentum),
                lambda: tf.constant(1.0),
            )
            pairs = (self.moving_mean, mean), (self.moving_variance, variance)
            for average, value in pairs:
                self._noted(average, value, momentum, True)
        return out
