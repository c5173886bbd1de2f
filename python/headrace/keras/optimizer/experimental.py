"""tf.keras.optimizers.experimental: checkpoints as TensorFlow's newer optimizers'.

They train as those of tf.keras.optimizers do, and read the same files. What they
write has lists of variables in place of slots (`optimizer/_variables/1`), as
Keras 2.11 and later have it.
"""

from headrace.keras.optimizer import current


class _Listing:
    """Mixed with an optimizer: its checkpoints have lists."""

    _keras_module = "keras.optimizers.experimental"
    _writes_lists = True


Optimizer = current.Optimizer  # the base is one


for _name in current.NAMES:
    globals()[_name] = type(
        _name,
        (_Listing, getattr(current, _name)),
        {"__doc__": f"{_name} whose checkpoints have lists.", "__module__": __name__},
    )
