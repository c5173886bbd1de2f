"""Dense, Activation, Dropout, and layers that change shapes."""

import math

from headrace import _api as tf
from headrace._load import _headrace
from headrace.keras import activation as activations
from headrace.keras import regularizer
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.layer.parts import Weighted, shaped, takes, times_kernel

_bias_add = _headrace.raw_op("BiasAdd")


@takes("units, activation=None, use_bias=True, **kwargs", "kernel", "bias")
class Dense(Weighted, Layer):
    """activation(inputs @ kernel + bias)."""

    supports_masking = True

    def _begin(self):
        if int(self.units) < 0:
            raise ValueError(
                "Received an invalid value for `units`, expected a positive integer. "
                f"Received: units={self.units}"
            )
        self.units = self.units if isinstance(self.units, int) else int(self.units)
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape):
        """Makes the kernel, [last size of the inputs, units], and the bias, [units].

        ValueError where the last size is unknown, TypeError for a dtype of integers.
        """
        if not (self._dtype.is_floating or self._dtype.is_complex):
            raise TypeError(
                "A Dense layer can only be built with a floating-point dtype. Received: "
                f"dtype={self._dtype}"
            )
        shape = tf.TensorShape(input_shape)
        size = shape[-1] if shape.rank else None
        if size is None:
            raise ValueError(
                "The last dimension of the inputs to a Dense layer should be defined. "
                f"Found None. Full input shape received: {shape}"
            )
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self.kernel = self._new_weight("kernel", [size, self.units])
        self.bias = self._new_weight("bias", [self.units]) if self.use_bias else None
        self.built = True

    def call(self, inputs):
        """activation(inputs @ kernel + bias) over the last axis: [..., n] to [...,
        units]; of a sparse matrix a dense one, of ragged rows ragged ones.
        """
        if isinstance(inputs, tf.RaggedTensor):
            return inputs.with_flat_values(self.call(inputs.flat_values))
        if inputs.dtype != self._computed:
            inputs = tf.cast(inputs, self._computed)
        out = times_kernel(inputs, self.kernel, self.units)
        if self.use_bias:
            out = _bias_add(value=out, bias=self.bias)
        if self.activation is not None and self.activation is not activations.linear:
            out = self.activation(out)
        return out

    def compute_output_shape(self, input_shape):
        """The shape with `units` as its last size."""
        shape = tf.TensorShape(input_shape).as_list()
        return tf.TensorShape(shape[:-1] + [self.units])


@takes("activation, **kwargs")
class Activation(Layer):
    """A layer of one function, `activation`, by itself or by the name that it has in
    tf.keras.activations; shapes stay."""

    supports_masking = True
    _keeps_shape = True

    def call(self, inputs):
        """activation(inputs)."""
        return self.activation(inputs)


@takes("data_format=None, **kwargs")
class Flatten(Layer):
    """[batch, everything else]."""

    def _begin(self):
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs):
        """[batch, ...] to [batch, everything]; [batch] to [batch, 1].

        With "channels_first" the channels are moved behind the others before.
        """
        rank = inputs.shape.rank
        if self.data_format == "channels_first" and rank is not None and rank > 1:
            inputs = tf.transpose(inputs, [0, *range(2, rank), 1])
        if rank == 1:
            return tf.expand_dims(inputs, 1)
        sizes = inputs.shape.as_list()
        if all(n is not None for n in sizes[1:]):
            return tf.reshape(inputs, [-1, math.prod(sizes[1:])])
        out = tf.reshape(inputs, [tf.shape(inputs)[0], -1])
        return shaped(out, self.compute_output_shape(inputs.shape).as_list())

    def compute_output_shape(self, input_shape):
        """[batch, product of the other sizes], None where one is unknown."""
        sizes = tf.TensorShape(input_shape).as_list()
        if len(sizes) == 1:
            return tf.TensorShape([*sizes, 1])
        whole = None if None in sizes[1:] else math.prod(sizes[1:])
        return tf.TensorShape([sizes[0], whole])


@takes("target_shape, **kwargs")
class Reshape(Layer):
    """Another shape of the same values."""

    def _begin(self):
        self.target_shape = tuple(self.target_shape)

    def _full(self, sizes):
        target = list(self.target_shape)
        if -1 not in target:
            return target
        if target.count(-1) > 1:
            raise ValueError(
                "There must be at most one unknown dimension in output_shape. Received: "
                f"output_shape={self.target_shape}."
            )
        if None in sizes:
            return [None if n == -1 else n for n in target]
        known = math.prod(n for n in target if n != -1)
        whole = math.prod(sizes)
        if not known or whole % known:
            self._refuse(sizes)
        return [whole // known if n == -1 else n for n in target]

    def _refuse(self, sizes):
        raise ValueError(
            "total size of new array must be unchanged, input_shape = "
            f"{sizes}, output_shape = {list(self.target_shape)}"
        )

    def compute_output_shape(self, input_shape):
        """[batch, *target_shape], a -1 in it worked out; ValueError where sizes do not
        fit.
        """
        sizes = tf.TensorShape(input_shape).as_list()
        full = self._full(sizes[1:])
        if None not in full and None not in sizes[1:]:
            if math.prod(full) != math.prod(sizes[1:]):
                self._refuse(sizes[1:])
        return tf.TensorShape([sizes[0], *full])

    def call(self, inputs):
        """The same values as [batch, *target_shape]."""
        shape = self.compute_output_shape(inputs.shape)
        out = tf.reshape(inputs, (tf.shape(inputs)[0], *self.target_shape))
        return shaped(out, shape.as_list())


@takes("dims, **kwargs")
class Permute(Layer):
    """Other orders of the axes after the first."""

    def _begin(self):
        dims = self.dims
        self.dims = tuple(dims)
        if sorted(dims) != list(range(1, len(dims) + 1)):
            raise ValueError(
                "Invalid permutation argument `dims` for Permute Layer. The set of "
                f"indices in `dims` must be consecutive and start from 1. Received "
                f"dims={dims}"
            )
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, inputs):
        """Axis i + 1 of the result is axis dims[i] of the inputs; the batch stays
        first.
        """
        return tf.transpose(inputs, (0, *self.dims))


@takes("n, **kwargs")
class RepeatVector(Layer):
    """[batch, features] n times: [batch, n, features]."""

    def _begin(self):
        if not isinstance(self.n, int):
            raise TypeError(f"Expected an integer value for `n`, got {type(self.n)}.")
        self.input_spec = InputSpec(ndim=2)

    def call(self, inputs):
        """[batch, features] to [batch, n, features]."""
        return tf.tile(tf.expand_dims(inputs, 1), [1, self.n, 1])


@takes("mask_value=0.0, **kwargs")
class Masking(Layer):
    """Hides time steps whose features all have one value."""

    supports_masking = True

    def compute_mask(self, inputs, mask=None):
        """True for the steps with a feature that is not mask_value: [batch, time]."""
        return tf.reduce_any(tf.not_equal(inputs, self.mask_value), axis=-1)

    def call(self, inputs):
        """The inputs, with zeros for the steps that are masked."""
        shown = tf.reduce_any(
            tf.not_equal(inputs, self.mask_value), axis=-1, keepdims=True
        )
        return inputs * tf.cast(shown, inputs.dtype)


class ActivityRegularization(Layer):
    """Adds a penalty of what passes through."""

    supports_masking = True

    def __init__(self, l1=0.0, l2=0.0, **kwargs):
        super().__init__(activity_regularizer=regularizer.L1L2(l1=l1, l2=l2), **kwargs)
        self.l1, self.l2 = l1, l2


class Identity(Layer):
    """Gives what it takes."""

    def call(self, inputs):
        """The inputs, of any structure."""
        return tf.nest.map_structure(tf.identity, inputs)
