"""tf.compat.v1.keras.layers that differ from those of tf.keras."""

from headrace.keras.layer import normalization
from headrace.keras.layer.rnn import cells, recurrent


class _HardSigmoid:
    """Gates by hard_sigmoid unless told otherwise, as Keras 1's."""

    def __init__(self, units, activation="tanh", *args, **kwargs):
        if not args:
            kwargs.setdefault("recurrent_activation", "hard_sigmoid")
        super().__init__(units, activation, *args, **kwargs)


class LSTMCell(_HardSigmoid, cells.LSTMCell):
    """One step of an LSTM; gates by hard_sigmoid."""


class GRUCell(_HardSigmoid, cells.GRUCell):
    """One step of a GRU; gates by hard_sigmoid, reset before the product."""

    def __init__(self, units, *args, reset_after=False, **kwargs):
        super().__init__(units, *args, reset_after=reset_after, **kwargs)


class _Layer:
    """A recurrent layer that says the implementation of TensorFlow 1's."""

    def __init__(self, units, *args, **kwargs):
        super().__init__(units, *args, **{"implementation": 1, **kwargs})


class LSTM(_Layer, recurrent.LSTM):
    """Long short-term memory: [batch, steps, features] to [batch, (steps,) units]."""

    _cell_class = LSTMCell


class GRU(_Layer, recurrent.GRU):
    """Gated recurrent units: [batch, steps, features] to [batch, (steps,) units]."""

    _cell_class = GRUCell


class BatchNormalization(normalization.BatchNormalization):
    """Normalizes by the batch while training; `fused` says only how, and changes no
    value. NotImplementedError for renorm and virtual_batch_size.
    """

    def __init__(self, *args, **kwargs):
        given = {name: kwargs.pop(name, None) for name in _FURTHER}
        kwargs.pop("fused", None)
        wanted = [name for name, value in given.items() if value]
        if wanted:
            raise NotImplementedError(
                f"BatchNormalization: {', '.join(wanted)} not supported"
            )
        super().__init__(*args, **kwargs)


_FURTHER = ("renorm", "virtual_batch_size", "adjustment")
