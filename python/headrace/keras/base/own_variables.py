"""Weights of a layer's own in stores: what whole files have of it beside its config."""

import numpy as np

from headrace.keras import settings


def own_of(layer):
    """A layer's own weights, the trainable ones first."""
    own = layer._keras.own
    return [v for v in own if v.trainable] + [v for v in own if not v.trainable]


class Kept:
    """What `.keras` files and `.weights.h5` ask of each layer. Subclasses may define
    these four, for state that is no weight."""

    def save_own_variables(self, store):
        """Puts the layer's own weights as arrays into a dict or HDF5 group, under "0",
        "1", ...: trainable ones first, those of layers below not."""
        own = own_of(self)
        for i, value in enumerate(settings.batch_get_value(own)):
            store[str(i)] = value

    def load_own_variables(self, store):
        """Assigns what save_own_variables() put into a store.

        ValueError where the numbers of weights or a shape differ, KeyError where one is
        missing; then nothing is assigned.
        """
        own = own_of(self)
        if len(store.keys()) != len(own):
            raise ValueError(
                f"Layer '{self.name}' expected {len(own)} variables, but received "
                f"{len(store.keys())} variables during loading. Expected: "
                f"{[v.name for v in own]}"
            )
        values = [np.asarray(store[str(i)]) for i in range(len(own))]
        for variable, value in zip(own, values):
            if not variable.shape.is_compatible_with(value.shape):
                raise ValueError(
                    f"Cannot assign value to variable ' {variable.name}': Shape "
                    f"mismatch.The variable shape {tuple(variable.shape.as_list())}, and "
                    f"the assigned value shape {value.shape} are incompatible."
                )
        settings.batch_set_value(list(zip(own, values)))

    def save_assets(self, dir_path):
        """Writes files that the layer needs besides into an empty folder: here none."""

    def load_assets(self, dir_path):
        """Reads what save_assets() wrote."""
