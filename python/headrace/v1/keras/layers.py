"""tf.compat.v1.keras.layers that differ from those of tf.keras."""

from headrace.keras.classes import add_classes, with_defaults
from headrace.keras.layer import normalization
from headrace.keras.layer.rnn import cells, recurrent
from headrace.keras.layer.rnn.recurrent import layer_init


_HARD = {"recurrent_activation": "hard_sigmoid"}


class _Layer:
    """A recurrent layer that says the implementation of TensorFlow 1's."""

    def __init__(self, **kwargs):
        super().__init__(**{"implementation": 1, **kwargs})


def _around(cell, loop="unroll=False"):
    """What a row says of its cell."""
    return {"_cell_class": cell, "__init__": layer_init(_Layer, cell, loop)}


add_classes(
    globals(),
    """
LSTMCell(cells.LSTMCell, __init__=with_defaults(cells.LSTMCell, **_HARD))
    One step of an LSTM; gates by hard_sigmoid.
GRUCell(cells.GRUCell, __init__=with_defaults(cells.GRUCell, reset_after=False, **_HARD))
    One step of a GRU; gates by hard_sigmoid, reset before the product.
""",
)
add_classes(
    globals(),
    """
LSTM(_Layer, recurrent.LSTM, **_around(LSTMCell))
    Long short-term memory: [batch, steps, features] to [batch, (steps,) units].
GRU(_Layer, recurrent.GRU, **_around(GRUCell, "unroll=False, reset_after=False"))
    Gated recurrent units: [batch, steps, features] to [batch, (steps,) units].
""",
)


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
