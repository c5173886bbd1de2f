"""Convolutions whose kernel is another one at every place."""

import itertools
import math

import numpy as np

from headrace import _api as tf
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.classes import add_classes
from headrace.keras.layer.conv.convolution import OnWindows, check_padding
from headrace.keras.layer.parts import Weighted, takes


@takes(
    "filters, kernel_size, strides=1, padding='valid', data_format=None, "
    "activation=None, use_bias=True, implementation=1, **kwargs",
    *("kernel", "bias"),
    before="implementation",
)
class _LocallyConnected(Weighted, OnWindows):
    """`implementation` says how the kernel is kept: 1 as a matrix for every place, 2 as
    one of all inputs by all outputs, of which only what lies in a window counts, 3 as the
    list of the elements that count."""

    def _begin(self):
        name = type(self).__name__
        check_padding(self.padding, ("valid", "same"))
        if self.filters is not None and self.filters < 0:
            raise ValueError(f"filters cannot be less than 0, got {self.filters}.")
        if self.padding != "valid" and self.implementation == 1:
            raise ValueError(
                f'Invalid border mode for {name} (only "valid" is supported if '
                f"implementation is 1): {self.padding}"
            )
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def build(self, input_shape):
        sizes, first = tf.TensorShape(input_shape).as_list(), self._first()
        channels = sizes[self._channel_axis()]
        out = self._resized(sizes)[first : first + self.rank]
        if channels is None or None in out:
            raise ValueError(
                f"Axes 1 and up of the inputs to {type(self).__name__} should be fully "
                f"defined. Found shape: {input_shape}"
            )
        if min(out) <= 0:
            raise ValueError(
                "One of the dimensions in the output is <= 0 due to downsampling in "
                f"{self.name}. Consider increasing the input size. Received input shape "
                f"{tf.TensorShape(input_shape)} which would produce output shape with a "
                "zero or negative value in a dimension."
            )
        self.kernel = self._new_weight("kernel", self._kernel_shape(sizes, out))
        self.bias = None
        if self.use_bias:
            self.bias = self._new_weight("bias", (*out, self.filters))
        axes = {self._channel_axis(): channels}
        self.input_spec = InputSpec(ndim=self.rank + 2, axes=axes)
        self.built = True

    def _of_format(self, spatial, channels):
        """Sizes or numbers of a place and its channel, in the order of the format."""
        if self.data_format == "channels_first":
            return (channels, *spatial)
        return (*spatial, channels)

    def _kernel_shape(self, sizes, out):
        channels, first = sizes[self._channel_axis()], self._first()
        if self.implementation == 1:
            size = math.prod(self.kernel_size) * channels
            return math.prod(out), size, self.filters
        self._inputs = self._of_format(sizes[first : first + self.rank], channels)
        self._outputs = self._of_format(out, self.filters)
        if self.implementation == 2:
            return self._inputs + self._outputs
        if self.implementation != 3:
            raise ValueError(
                f"Unrecognized implementation mode: {self.implementation}."
            )
        self._pairs = sorted(self._connected())
        return (len(self._pairs),)

    def _connected(self):
        """(number of an output, number of an input) of all that are connected."""
        first = self._first() - 1
        sizes = self._inputs[first : first + self.rank]
        out = self._outputs[first : first + self.rank]
        channels = self._inputs[self._channel_axis() - (self._channel_axis() > 0)]
        for place in itertools.product(*map(range, out)):
            window = list(itertools.product(*map(self._window, place, sizes, range(9))))
            for f, c in itertools.product(range(self.filters), range(channels)):
                to = np.ravel_multi_index(self._of_format(place, f), self._outputs)
                for seen in window:
                    read = self._of_format(seen, c)
                    yield int(to), int(np.ravel_multi_index(read, self._inputs))

    def _window(self, at, size, axis):
        """What an output at a place of an axis is computed of."""
        kernel, left = self.kernel_size[axis], self.kernel_size[axis] // 2
        middle = at * self.strides[axis] + (left if self.padding == "valid" else 0)
        return range(max(0, middle - left), min(size, middle - left + kernel))

    def _compute_by_matrix(self, inputs):
        n_in, n_out = math.prod(self._inputs), math.prod(self._outputs)
        rows = tf.reshape(inputs, [-1, n_in])
        if self.implementation == 2:
            kernel = tf.reshape(self.kernel, [n_in, n_out])
            mask = np.zeros([n_in, n_out], kernel.dtype.as_numpy_dtype)
            for to, read in self._connected():
                mask[read, to] = 1
            out = tf.matmul(rows, kernel * mask)
        else:
            kernel = tf.SparseTensor(self._pairs, self.kernel, [n_out, n_in])
            product = tf.sparse.sparse_dense_matmul(kernel, rows, adjoint_b=True)
            out = tf.transpose(product)
        return tf.reshape(out, [-1, *self._outputs])

    def _compute(self, inputs):
        rows = tf.expand_dims(inputs, 1) if self.rank == 1 else inputs
        ones = (1,) * (2 - self.rank)
        sizes, strides = [1, *ones, *self.kernel_size, 1], [1, *ones, *self.strides, 1]
        patches = tf.image.extract_patches(rows, sizes, strides, [1, 1, 1, 1], "VALID")
        places, size = self.kernel.shape[0], self.kernel.shape[1]
        if self.data_format == "channels_first":  # so lie the kernel's elements, too
            window = math.prod(self.kernel_size)
            patches = tf.reshape(patches, [-1, places, window, size // window])
            patches = tf.transpose(patches, [0, 1, 3, 2])
        patches = tf.reshape(patches, [-1, places, size])
        out = tf.einsum("npi,pio->npo", patches, self.kernel)
        sizes = [n - k for n, k in zip(inputs.shape.as_list()[1:], self.kernel_size)]
        sizes = [n // s + 1 for n, s in zip(sizes, self.strides)]
        return tf.reshape(out, [-1, *sizes, self.filters])

    def _bias_of_format(self):
        if self.data_format != "channels_first":
            return self.bias
        *places, filters = self.bias.shape
        # Its elements as they lie, as upstream, not turned.
        return tf.reshape(self.bias, [filters, *places])

    def call(self, inputs):
        if self.implementation == 1:
            out = self._channels_last(self._compute, inputs)
        else:
            out = self._compute_by_matrix(inputs)
        if self.bias is not None:
            out += self._bias_of_format()
        return out if self.activation is None else self.activation(out)

    def compute_output_shape(self, input_shape):
        sizes = tf.TensorShape(input_shape).as_list()
        return tf.TensorShape(self._resized(sizes, self.filters))


add_classes(
    globals(),
    """
LocallyConnected1D(_LocallyConnected, rank=1)
    A kernel of its own for every step: [batch, steps, channels].
LocallyConnected2D(_LocallyConnected, rank=2)
    A kernel of its own for every place of an image.
""",
)
