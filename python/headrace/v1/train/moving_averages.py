"""tf.train.ExponentialMovingAverage: shadows of variables that follow them slowly."""

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework.support import signatures
from headrace.train.saver_graph import is_variable
from headrace.v1.collections import GraphKeys
from headrace.v1.train.optimizer.base import (
    in_plain_graph,
    name_of,
    slot_variable,
    trainable_variables,
)
from headrace.v1.variable_scope import variable_scope

_DTYPES = (tf.bfloat16, tf.float16, tf.float32, tf.float64)


class ExponentialMovingAverage:
    """Keeps averages of variables, and in graphs of tensors.

    `apply` makes a shadow of each and moves it: shadow -= (1 - decay) * (shadow -
    value). In a graph it gives the operation that does so; eagerly and in tf.function
    it is done at once. Checkpoints know a shadow by `average_name`; the average itself
    is not trackable, as upstream.

    Args:
      decay: how much of the old average stays.
      num_updates: a count of steps; early ones then decay faster:
        min(decay, (1 + num_updates) / (10 + num_updates)).
      zero_debias: averages of tensors, which begin at zero, are corrected for that.
      name: of the operations and, after the variable's, of the shadows.
    """

    @signatures.keeping(
        "decay, num_updates=None, zero_debias=False, name='ExponentialMovingAverage'"
    )
    def __init__(self):
        self._averages = {}  # key -> (variable or tensor, its average)
        self._counts = {}  # key of a tensor -> (its biased average, updates)
        self._taken = {}  # eager shadows' names -> how many

    name = read_only("_name", "The name of this average.")

    def apply(self, var_list=None):
        """Moves the averages of the variables, by default of those that train."""
        if var_list is None:
            var_list = trainable_variables()
        for v in var_list:
            self._check(v)
        for v in var_list:
            if _key(v) not in self._averages:
                self._averages[_key(v)] = v, self._made(v)
        with tf.name_scope(self._name) as scope:
            decay = self._decay_now()
            updates = [self._moved(v, decay) for v in var_list]
        if not in_plain_graph():
            return None
        return tf.group(*updates, name=scope)

    @staticmethod
    def _check(v):
        if v.dtype.base_dtype not in _DTYPES:
            raise TypeError(f"The variables must be half, float, or double: {v.name}")
        if not is_variable(v) and not in_plain_graph():
            raise TypeError(
                "tf.train.ExponentialMovingAverage does not support non-Variable tensors "
                "when eager execution is enabled."
            )

    def _made(self, v):
        """A new shadow: begins at the variable's value, or at zero for tensors."""
        dtype = v.dtype.base_dtype
        with tf.init_scope():
            if not is_variable(v):
                return slot_variable(v, self._name, lambda: tf.zeros(v.shape, dtype), 0)
            base = f"{name_of(v)}/{self._name}"
            taken = self._taken.get(base, 0)
            self._taken[base] = taken + 1
            if not in_plain_graph():
                return slot_variable(v, self._name, v.read_value, taken)
            v.graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, v)
            begin = getattr(v, "initialized_value", None)
            value = begin() if begin else v.initial_value
            return slot_variable(v, self._name, value, taken)

    def _decay_now(self):
        decay = tf.convert_to_tensor(self._decay, tf.float32, name="decay")
        if self._num_updates is None:
            return decay
        count = self._num_updates
        if hasattr(count, "_reference"):
            count = count.read_value()
        count = tf.cast(count, tf.float32)
        return tf.minimum(decay, (1.0 + count) / (10.0 + count))

    def _moved(self, v, decay):
        average = self._averages[_key(v)][1]
        dtype = v.dtype.base_dtype
        with tf.name_scope("AssignMovingAvg") as scope:
            rest = tf.cast(1.0 - decay, dtype)
            if is_variable(v) or not self._zero_debias:
                if not hasattr(average, "_reference"):
                    return average.assign_sub((average - v) * rest)
                # As it is behind the control dependencies here, such as the step.
                value = v.read_value() if hasattr(v, "_reference") else v
                return average.assign_sub((average - value) * rest, name=scope)
            if _key(v) not in self._counts:
                self._counts[_key(v)] = _counters(average, dtype)
            biased, steps = self._counts[_key(v)]
            moved = biased.assign_sub((biased - v) * rest)
            counted = steps.assign_add(tf.ones([], dtype))
            with tf.control_dependencies([moved, counted]):
                seen = 1.0 - tf.pow(tf.cast(decay, dtype), steps.read_value())
                return average.assign(biased.read_value() / seen)

    def average(self, var):
        """The shadow of a variable or tensor; None where it was not averaged."""
        found = self._averages.get(_key(var))
        return None if found is None else found[1]

    def average_name(self, var):
        """What the shadow is called, in checkpoints too."""
        found = self.average(var)
        if found is not None:
            return name_of(found)
        name, graph = f"{name_of(var)}/{self._name}", stack.current()
        return graph.unique_name(name, mark_as_used=False) if graph else name

    def variables_to_restore(self, moving_avg_variables=None):
        """What a Saver restores to have averages in the variables' places.

        Names of shadows by the variables (those given, or those that train and those
        that are averaged), further variables by their own names.
        """
        graph = stack.current()
        averaged = moving_avg_variables
        if averaged is None:
            averaged = trainable_variables()
            if graph is not None:
                key = GraphKeys.MOVING_AVERAGE_VARIABLES
                averaged = averaged + graph.get_collection(key)
        found = {self.average_name(v): v for v in averaged}
        held = {_key(v) for v in averaged}
        held |= {_key(self.average(v)) for v in averaged if self.average(v) is not None}
        if graph is not None:
            for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
                if _key(v) not in held and name_of(v) not in found:
                    found[name_of(v)] = v
        return found


def _counters(average, dtype):
    """The average that began at zero, and the number of its updates."""
    scope = variable_scope(name_of(average), auxiliary_name_scope=False)
    with scope, tf.compat.v1.colocate_with(average):
        make = tf.compat.v1.get_variable
        zeros = tf.zeros_initializer()
        biased = make("biased", average.shape, dtype, zeros, trainable=False)
        return biased, make("local_step", [], dtype, zeros, trainable=False)


def _key(v):
    if isinstance(v, _headrace.VariableBase):
        return v.handle._id
    return v.ref() if hasattr(v, "ref") else id(v)
