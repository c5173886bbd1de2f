"""Long short-term memory over images and the like: its products are convolutions."""

from headrace import _api as tf
from headrace.keras.base.input_spec import InputSpec
from headrace.keras.phase import dropped, is_off
from headrace.keras.classes import add_classes
from headrace.keras.layer.conv.convolution import OnWindows, of_axes
from headrace.keras.layer.parts import Weighted, takes
from headrace.keras.layer.rnn import cells
from headrace.keras.layer.rnn.recurrent import _WithCell, layer_init

_CONVOLUTIONS = (tf.nn.conv1d, tf.nn.conv2d, tf.nn.conv3d)


@takes(
    "rank, filters, kernel_size, strides=1, padding='valid', data_format=None, "
    "dilation_rate=1, activation='tanh', recurrent_activation='hard_sigmoid', "
    "use_bias=True, kernel_initializer='glorot_uniform', "
    "recurrent_initializer='orthogonal', bias_initializer='zeros', "
    "unit_forget_bias=True, kernel_regularizer=None, recurrent_regularizer=None, "
    "bias_regularizer=None, kernel_constraint=None, recurrent_constraint=None, "
    "bias_constraint=None, dropout=0.0, recurrent_dropout=0.0, **kwargs"
)
class ConvLSTMCell(Weighted, OnWindows):
    """One step; gates in the order input, forget, cell, output."""

    _config_without = ("rank",)

    def _before(self, given):
        if given["padding"].lower() not in ("valid", "same"):
            raise ValueError(f"ConvLSTM: padding={given['padding']!r} is not supported")

    def _kept(self, name, value):
        value = super()._kept(name, value)
        return cells.within_one(value) if name.endswith("dropout") else value

    state_size = property(lambda self: [self.filters, self.filters])
    output_size = property(lambda self: self.filters)

    def build(self, input_shape):
        channels = tf.TensorShape(input_shape)[self._channel_axis()]
        if channels is None:
            raise ValueError(
                "The channel dimension of the inputs (last axis) should be defined. "
                f"Found None. Full input shape received: input_shape={input_shape}"
            )
        wide = self.filters * 4
        self.kernel = self._new_weight("kernel", (*self.kernel_size, channels, wide))
        self.recurrent_kernel = self._new_weight(
            "recurrent", (*self.kernel_size, self.filters, wide), "recurrent_kernel"
        )
        self.bias = cells.new_lstm_bias(self, self.filters) if self.use_bias else None
        self.built = True

    def _convolution(self, x, kernel, strides, padding, dilations):
        function = _CONVOLUTIONS[self.rank - 1]
        if self.rank == 3:
            strides, dilations = (1, *strides, 1), (1, *dilations, 1)

        def convolve(x):
            return function(
                x, kernel, list(strides), padding.upper(), dilations=list(dilations)
            )

        return self._channels_last(convolve, x)

    def _of_gates(self, x, kernel, masks, *how):
        """The convolution for all gates; with a mask a gate, one for each."""
        if masks is None:
            return self._convolution(x, kernel, *how)
        parts = tf.split(kernel, 4, axis=-1)
        found = [self._convolution(x * m, k, *how) for m, k in zip(masks, parts)]
        return tf.concat(found, self._axis())

    def _axis(self):
        return -self.rank - 1 if self.data_format == "channels_first" else -1

    def masks(self, x, rate, training):
        """A mask of x a gate; None where nothing is dropped."""
        if is_off(training) or not rate:
            return None
        ones = tf.ones_like(x)
        return [dropped(ones, rate, training) for _ in range(4)]

    def project(self, x, masks=None):
        """What the input gives to the gates."""
        out = self._of_gates(
            x, self.kernel, masks, self.strides, self.padding, self.dilation_rate
        )
        if self.bias is None:
            return out
        wide = 4 * self.filters
        shape = [wide] + [1] * (-self._axis() - 1)
        return out + tf.reshape(self.bias, shape)

    def step(self, projected, states, masks):
        h, c = states
        ones = (1,) * self.rank
        z = projected + self._of_gates(
            h, self.recurrent_kernel, masks, ones, "same", ones
        )
        c, o = cells.lstm_gates(self, tf.split(z, 4, axis=self._axis()), c)
        h = o * self.activation(c)
        return h, [h, c]

    def call(self, inputs, states, training=None):
        projected = self.project(inputs, self.masks(inputs, self.dropout, training))
        drop = self.masks(states[0], self.recurrent_dropout, training)
        return self.step(projected, list(states), drop)

    def state_shape(self, sizes):
        """The shape of a state, given the sizes of an input."""
        return self._resized(sizes, self.filters)


class _ConvLSTM(_WithCell):
    rank = 2
    _cell_name = "conv_lstm_cell"
    _names_cell = False
    _says_implementation = False

    def __init__(self, **kwargs):
        if kwargs.pop("unroll", False):
            raise TypeError(
                "Unrolling is not possible with convolutional RNNs. Received: unroll=True"
            )
        if kwargs.pop("time_major", False):
            raise NotImplementedError(f"{type(self).__name__}: time_major=True")
        super().__init__(**kwargs)
        self.input_spec = InputSpec(ndim=self.rank + 3)

    def _cell_class(self, **kwargs):
        return ConvLSTMCell(self.rank, **kwargs)

    def _initial_states(self, inputs):
        if self.stateful:
            return super()._initial_states(inputs)
        dynamic = tf.shape(inputs)
        sizes = [
            dynamic[i + 1] if n is None else n
            for i, n in enumerate(inputs.shape.as_list()[1:])
        ]
        return [tf.zeros(tf.stack(self.cell.state_shape(sizes)), inputs.dtype)] * 2

    def _state_shapes(self, inputs):
        return [self.cell.state_shape(inputs.shape.as_list()[1:])] * 2

    def _step_function(self, inputs, training, constants):
        cell = self.cell
        sizes, dynamic = inputs.shape.as_list(), tf.shape(inputs)
        inner = tf.concat([[-1], dynamic[2:]], 0)
        flat = tf.ensure_shape(tf.reshape(inputs, inner), [None, *sizes[2:]])
        drop_in = cell.masks(inputs[0], cell.dropout, training)
        if drop_in is not None:  # the same at every step
            times = tf.concat([dynamic[:1], tf.ones_like(dynamic[2:])], 0)
            drop_in = [tf.tile(m, times) for m in drop_in]
        projected = cell.project(flat, drop_in)
        shape = tf.concat([dynamic[:2], tf.shape(projected)[1:]], 0)
        every = tf.reshape(projected, shape)
        every = tf.ensure_shape(every, [*sizes[:2], *projected.shape.as_list()[1:]])
        drop = []

        def step(x, states):
            if not drop:
                drop.append(cell.masks(states[0], cell.recurrent_dropout, training))
            return cell.step(x, states, drop[0])

        return step, every


def _of_rank(rank):
    """What a row says of its rank."""
    loop = "dropout=0.0, recurrent_dropout=0.0"
    return {
        "rank": rank,
        "__init__": layer_init(
            _ConvLSTM, ConvLSTMCell, loop, **of_axes(ConvLSTMCell, rank)
        ),
    }


add_classes(
    globals(),
    """
ConvLSTM1D(_ConvLSTM, **_of_rank(1))
    [batch, steps, length, channels].
ConvLSTM2D(_ConvLSTM, **_of_rank(2))
    [batch, steps, rows, columns, channels].
ConvLSTM3D(_ConvLSTM, **_of_rank(3))
    [batch, steps, and volumes of channels].
""",
)
