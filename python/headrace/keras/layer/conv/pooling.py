"""Pooling over windows and over everything."""

from headrace import _api as tf
from headrace.framework import execution
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.classes import add_classes
from headrace.keras.layer.conv.convolution import (
    LAST,
    OnSpace,
    OnWindows,
    check_padding,
    output_length,
)
from headrace.keras.layer.parts import takes


@takes("pool_size=2, strides=None, padding='valid', data_format=None, **kwargs")
class _Pooling(OnWindows):
    """Pools windows of `rank` axes by `_function`."""

    _functions = ()
    _named = False  # whether the operation has another name than the function's
    _config_names = ("pool_size", "padding", "strides", "data_format")

    def _before(self, given):
        if given["strides"] is None:
            given["strides"] = given["pool_size"]
        check_padding(given["padding"], ("valid", "same"))

    def _begin(self):
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _length(self, size, axis):
        window, stride = self.pool_size[axis], self.strides[axis]
        return output_length(size, window, self.padding, stride)

    def _pool(self, inputs):
        function = self._functions[self.rank - 1]
        how = list(self.pool_size), list(self.strides), self.padding.upper()
        name = execution.node_name("MaxPool") if self._named else None
        return function(inputs, *how, name=name)

    def call(self, inputs):
        """[batch, space, channels], or channels first;
        the space shrunk by the strides."""
        return self._channels_last(self._pool, inputs)

    def compute_output_shape(self, input_shape):
        """The shape with the sizes of the space that windows and strides leave."""
        return tf.TensorShape(self._resized(tf.TensorShape(input_shape).as_list()))


class _Max(_Pooling):
    _functions = (tf.nn.max_pool1d, tf.nn.max_pool2d, tf.nn.max_pool3d)


class _Average(_Pooling):
    _functions = (tf.nn.avg_pool1d, tf.nn.avg_pool2d, tf.nn.avg_pool3d)


@takes("data_format=None, keepdims=False, **kwargs")
class _GlobalPooling(OnSpace):
    """Pools all axes but the batch and the channels."""

    def _begin(self):
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _axes(self):
        return list(range(self._first(), self._first() + self.rank))

    def build(self, input_shape):
        """ValueError for inputs of which nothing is left to be pooled, such as those of
        a network of more strides than its images have pixels."""
        sizes = tf.TensorShape(input_shape).as_list()
        for axis in self._axes():
            if sizes[axis] == 0:
                raise ValueError(
                    f"Incorrect input shape {sizes} with dimension 0 at reduction axis "
                    f"{axis}."
                )
        super().build(input_shape)

    def call(self, inputs):
        """[batch, channels]; the space stays as sizes of 1 with keepdims."""
        return self._reduce(inputs, axis=self._axes(), keepdims=self.keepdims)


class _GlobalMax(_GlobalPooling):
    _reduce = staticmethod(tf.reduce_max)


class _GlobalAverage(_GlobalPooling):
    _reduce = staticmethod(tf.reduce_mean)


@takes("data_format='channels_last', **kwargs")
class GlobalAveragePooling1D(_GlobalAverage):
    """The mean over time, of what the mask shows."""

    rank = 1
    supports_masking = True

    def call(self, inputs, mask=None):
        """[batch, channels]: the mean of the steps that `mask`, [batch, time],
        shows."""
        if mask is None:
            return super().call(inputs)
        axis = self._first()
        shown = tf.cast(mask, inputs.dtype)
        shown = tf.expand_dims(shown, 2 if axis == 1 else 1)
        total = tf.reduce_sum(inputs * shown, axis=axis, keepdims=self.keepdims)
        return total / tf.reduce_sum(shown, axis=axis, keepdims=self.keepdims)

    def compute_mask(self, inputs, mask=None):
        """None."""
        return None


add_classes(
    globals(),
    """
MaxPooling1D(_Max, rank=1, _defaults=LAST)
    The largest of each window of steps: [batch, steps, channels].
MaxPooling2D(_Max, rank=2, _named=True)
    The largest of each window of an image.
MaxPooling3D(_Max, rank=3)
    The largest of each window of a volume.
AveragePooling1D(_Average, rank=1, _defaults=LAST)
    The mean of each window of steps: [batch, steps, channels].
AveragePooling2D(_Average, rank=2)
    The mean of each window of an image.
AveragePooling3D(_Average, rank=3)
    The mean of each window of a volume.
GlobalMaxPooling1D(_GlobalMax, rank=1, _defaults=LAST)
    The largest of all steps: [batch, channels].
GlobalMaxPooling2D(_GlobalMax, rank=2)
    The largest of all places of an image: [batch, channels].
GlobalMaxPooling3D(_GlobalMax, rank=3)
    The largest of all places of a volume: [batch, channels].
GlobalAveragePooling2D(_GlobalAverage, rank=2)
    The mean over an image: [batch, channels].
GlobalAveragePooling3D(_GlobalAverage, rank=3)
    The mean over a volume: [batch, channels].
""",
)
