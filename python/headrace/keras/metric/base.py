"""tf.keras.metrics.Metric."""

import headrace as tf
from headrace.keras import settings
from headrace.keras.engine.base_layer import Layer


class Metric(Layer):
    """Keeps a state: update_state takes values in, result says what they give."""

    _keras_module = "keras.metrics"
    _is_metric = True

    def __init__(self, name=None, dtype=None, **kwargs):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.built = True

    def __call__(self, *args, **kwargs):
        """Updates the state and gives the result."""
        self.update_state(*args, **kwargs)
        return self.result()

    def reset_state(self):
        for v in self.variables:
            v.assign(tf.zeros(v.shape, v.dtype))

    reset_states = reset_state

    def update_state(self, *args, **kwargs):
        raise NotImplementedError("Must be implemented in subclasses.")

    def result(self):
        raise NotImplementedError("Must be implemented in subclasses.")

    def merge_state(self, metrics):
        for other in metrics:
            if len(self.weights) != len(other.weights):
                raise ValueError(f"Metric {other} is not compatible with {self}")
            for mine, theirs in zip(self.weights, other.weights):
                mine.assign_add(theirs)

    def add_weight(
        self,
        name,
        shape=(),
        aggregation=tf.VariableAggregation.SUM,
        synchronization=tf.VariableSynchronization.ON_READ,
        initializer=None,
        dtype=None,
    ):
        return super().add_weight(
            name=name,
            shape=shape,
            dtype=self._dtype if dtype is None else dtype,
            trainable=False,
            initializer=initializer or "zeros",
            synchronization=synchronization,
            aggregation=aggregation,
        )

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    @property
    def trainable_weights(self):
        return []

    @property
    def non_trainable_weights(self):
        return list(self._keras.own)


def to_floats(*values):
    """The values as tensors of Keras' float type; None stays None."""
    dtype = settings.floatx()
    return [None if v is None else tf.cast(v, dtype) for v in values]
