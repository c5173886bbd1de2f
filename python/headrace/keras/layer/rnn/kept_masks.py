"""What cells drop, kept over the steps of a sequence, for cells of programs."""

import weakref

from headrace import _api as tf
from headrace.context import stack
from headrace.keras.phase import dropped


class KeptMasks:
    """Of cells with shares to drop, `dropout` and `recurrent_dropout`: masks for classes
    that compute their steps themselves. The first step of a sequence makes them, the
    others are given the same; the layers that run a cell begin by forgetting them."""

    def get_dropout_mask_for_cell(self, inputs, training, count=1):
        """What inputs are to be multiplied by: a tensor of their shape, or a list of
        `count` of them, of ones where it does not train; None without dropout."""
        return self._kept_mask("dropout", inputs, training, count)

    def get_recurrent_dropout_mask_for_cell(self, inputs, training, count=1):
        """As get_dropout_mask_for_cell, of a state and recurrent_dropout."""
        return self._kept_mask("recurrent_dropout", inputs, training, count)

    def reset_dropout_mask(self):
        """Forgets the mask of inputs: the next one is drawn anew."""
        self._keras.dropout_masks = {**self._masks(), "dropout": None}

    def reset_recurrent_dropout_mask(self):
        """Forgets the mask of states."""
        self._keras.dropout_masks = {**self._masks(), "recurrent_dropout": None}

    def _masks(self):
        return getattr(self._keras, "dropout_masks", {})

    def _kept_mask(self, name, inputs, training, count):
        rate = getattr(self, name)
        if not rate:
            return None
        kept = self._masks().get(name)
        if kept is None or not kept[0]():
            ones = tf.ones_like(inputs)
            draw = lambda: dropped(ones, rate, training)
            mask = draw() if count <= 1 else [draw() for _ in range(count)]
            kept = (_is_here(), mask)
            self._keras.dropout_masks = {**self._masks(), name: kept}
        return kept[1]


def _is_here():
    """A function that says whether the place is this one: tensors belong to a graph."""
    graph = stack.current()
    if graph is None:
        return lambda: stack.current() is None
    known = weakref.ref(graph)
    return lambda: stack.current() is not None and stack.current() is known()


def forget(cell):
    """Begins a sequence of a cell, of whatever class."""
    if isinstance(cell, KeptMasks):
        cell.reset_dropout_mask()
        cell.reset_recurrent_dropout_mask()
