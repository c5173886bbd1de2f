"""tf.keras.metrics.Metric."""

import functools

import numpy as np

from headrace import _api as tf
from headrace._load import _headrace
from headrace.autograph.calls import in_graph
from headrace.context import strategies
from headrace.framework.support import signatures
from headrace.keras import serialization, settings
from headrace.keras.base.base_layer import Layer
from headrace.keras.base.graph_updates import Ordered


class Metric(Layer):
    """Keeps a state: update_state takes values in, result says what they give."""

    _saved_identifier = "_tf_keras_metric"
    _keras_module = "keras.metrics"
    _is_metric = True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "result" in cls.__dict__:
            cls.result = _of_all_replicas(cls.__dict__["result"])

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls, *args, **kwargs)
        if not _headrace.is_eager() and not tf.inside_function():
            update = functools.partial(_graph_update, self, self.update_state)
            object.__setattr__(self, "update_state", update)
        return self

    def __init__(self, name=None, dtype=None, **kwargs):
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.built = True

    def __repr__(self):
        given = ",".join(f"{k}={v}" for k, v in self.get_config().items())
        return f"{type(self).__name__}({given})"

    def __call__(self, *args, **kwargs):
        """Updates the state and gives the result."""
        update = in_graph(self.update_state)(*args, **kwargs)
        with tf.control_dependencies([] if update is None else [update]):
            return self.result()

    @property
    def updates(self):
        """The operations of a plain graph that take values in."""
        return self._keras.updates

    def reset_state(self):
        """Sets all variables to zeros."""
        set_to_zeros(self.variables)

    reset_states = reset_state

    def update_state(self, *args, **kwargs):
        """Takes in a batch. Subclasses define it; returns nothing that is used."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def _reads(self, *names):
        """{name: value} of variables of the state, by the names of attributes. Workers of a
        ring read them in that order and as often as they are named: so do TensorFlow's."""
        found = {}
        for name in names:
            variable = getattr(self, name)
            owner = getattr(variable, "_distribute_strategy", None)
            again = owner is not None and strategies.in_ring(owner)
            if name not in found or again:
                found[name] = variable._read()
        return found

    def result(self):
        """The value of all batches since reset_state(): a scalar tensor, or what the
        subclass says.
        """
        raise NotImplementedError("Must be implemented in subclasses.")

    def merge_state(self, metrics):
        """Adds the states of other metrics of the same kind: an iterable.

        ValueError where one has another number of variables.
        """
        for other in metrics:
            if len(self.weights) != len(other.weights):
                raise ValueError(f"Metric {other} is not compatible with {self}")
            for mine, theirs in zip(self.weights, other.weights):
                mine.assign_add(theirs)

    @signatures.having(
        "self, name, shape=(), aggregation=SUM, synchronization=ON_READ, "
        "initializer=None, dtype=None",
        SUM=tf.VariableAggregation.SUM,
        ON_READ=tf.VariableSynchronization.ON_READ,
    )
    def add_weight(self, initializer, dtype, **given):
        """A new variable of the state: not trained, zeros unless `initializer` says
        else.
        """
        variable = super().add_weight(
            dtype=self._dtype if dtype is None else dtype,
            trainable=False,
            initializer=initializer or "zeros",
            **given,
        )
        if hasattr(
            variable, "_initial_value"
        ):  # of a graph: not saved, not initialized
            found = variable.graph.get_collection_ref("variables")
            found[:] = [v for v in found if v is not variable]
        return variable

    def get_config(self):
        """The constructor's arguments as a dict, for from_config()."""
        own = serialization.config_of(self)
        return {"name": self.name, "dtype": self.dtype, **own}

    @classmethod
    def from_config(cls, config):
        """A metric of the dict that get_config() gave."""
        return cls(**config)

    @property
    def trainable_weights(self):
        """An empty list: states are not trained."""
        return []

    @property
    def non_trainable_weights(self):
        """A list of the variables of the state, those of metrics within included."""
        return self._gather(lambda _, v: True, lambda m: m.variables)


def set_to_zeros(variables):
    """Sets variables of any shape to zeros."""
    settings.batch_set_value(
        (v, np.zeros(v.shape.as_list(), v.dtype.as_numpy_dtype)) for v in variables
    )


def _of_all_replicas(result):
    """A metric's result, which in a replica is that of all of them. In graphs it is
    converted, like update_state: it may branch on the state."""

    @functools.wraps(result)
    def of_all(self):
        replica = strategies.replica()
        if replica is None:
            return in_graph(result)(self)
        return replica.merge_call(lambda strategy: in_graph(result)(self))

    return of_all


def _graph_update(metric, update_state, *args, **kwargs):
    """In a plain graph: the operation that takes values in."""
    graph = tf.compat.v1.get_default_graph()
    ordered = Ordered(graph)
    result = update_state(*args, **kwargs)
    operations = ordered.end()
    update = tf.group(*operations, *([] if result is None else [result]))
    metric.updates.append(update)
    return update
