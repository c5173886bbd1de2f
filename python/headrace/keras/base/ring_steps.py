"""Steps and data of models whose workers meet in TensorFlow's order: in rings, of which
some workers may be TensorFlow's."""

import itertools

from headrace import _api as tf
from headrace.autograph import loops, variables
from headrace.keras.base.steps import Steps


class Counters:
    """How many batches a model has taken, by kinds of steps: variables that workers make
    in this order."""

    def __init__(self):
        self.of_kind = {
            kind: tf.Variable(
                0,
                dtype=tf.int64,
                trainable=False,
                aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            )
            for kind in ("train", "test", "predict")
        }


class RingSteps(Steps):
    """Calls a step with an iterator over the workers' batches, of which the step takes the
    next one itself: so the collectives of a step are one row, which begins with the
    question whether there is a batch. What metrics give is summed over workers.

    Of steps_per_execution that many are one call, a loop of the graph.
    """

    def __init__(self, model, kind, eager):
        super().__init__(model, kind, eager)
        self._strategy = strategy = model._keras.strategy
        self._schedule = self._source = None
        counter = model._keras.counters.of_kind[kind]
        of_batch, together = self._step, _TOGETHER[kind]

        def step(iterator):
            outputs = of_batch(iterator._of_this_worker(iterator.get_next()))
            counter.assign_add(1, read_value=False)
            return tf.nest.map_structure(lambda x: together(strategy, x), outputs)

        step.counts = False

        self._step = _several(step, kind) if model._steps_together() > 1 else step
        self._step.__name__ = kind + "_function"
        self._exact = None if eager else tf.function(self._step)

    def begin(self, source):
        """A walk over the data begins."""
        self._source = source

    @property
    def taken(self):
        """How many batches a call takes."""
        return 1 if self._source is None else self._source.at_once

    def __call__(self, data):
        if not hasattr(data, "_of_this_worker"):  # one batch
            data = iter(_divided(self._strategy, tf.data.Dataset.from_tensors(data)))
        given = (data,)
        if self._step.counts:
            given = (data, tf.constant(self.taken))
        return (self._exact or self._step)(*given)


def _several(step, kind):
    """The function of an iterator and a number of steps that takes these, and gives the
    outputs of the last one, of predictions those of all."""

    def steps(iterator, count):
        found = variables.Undefined("outputs")
        if kind == "predict":
            found, count = step(iterator), count - 1

        def get():
            return (found,)

        def set_(values):
            nonlocal found
            (found,) = values

        def turn(_):
            nonlocal found
            outputs = step(iterator)
            if kind == "predict":
                both = lambda a, b: tf.concat([a, b], 0)
                outputs = tf.nest.map_structure(both, found, outputs)
            found = outputs

        options = {}
        if kind == "predict":
            any_rows = lambda x: tf.TensorShape([None, *x.shape[1:]])
            shapes = tf.nest.map_structure(any_rows, found)
            options = {"shape_invariants": [(found, shapes)]}
        loops.for_stmt(tf.range(count), None, turn, get, set_, ("outputs",), options)
        return found

    steps.counts = True
    return steps


def _sum(strategy, output):
    return strategy.reduce("SUM", output, axis=None)


def _rows(strategy, output):
    """The rows of all workers; how many each has is told, too, as others want to know."""
    found = strategy.gather(output, axis=0)
    strategy.gather(tf.shape(output)[:1], axis=0)
    return found


_TOGETHER = {"train": _sum, "test": _sum, "predict": _rows}


class RingSource:
    """The batches of data that the workers of a ring divide: gives the iterator over them
    as often as there is one. That there is no more is found by the step that asks."""

    def __init__(self, strategy, given, together):
        self._given, self._data = given, given.divided(strategy, _divided)
        self._iterator, self._together, self.at_once = None, together, 1
        self.steps, self.ran_out = given.steps, False

    def begin(self):
        """The next epoch starts at the first batch again."""
        self._iterator = None
        self._given.begin()

    def of_epochs(self, count):
        """There are that many epochs."""
        self._given.of_epochs(count)

    def epoch(self):
        """The iterator, once for each call of a step, which takes `at_once` batches of an
        epoch."""
        if self._iterator is None or self._given.starts_anew():
            self._iterator = iter(self._data)
        self.at_once, together = self._together, self._together
        for taken in itertools.count(0, together):
            if self.steps is not None:
                self.at_once = min(together, self.steps - taken)
            if self.at_once <= 0:
                break
            yield self._iterator
        self._given.end_epoch()

    def ends(self):
        """Takes it that the iterator has come to its end: True."""
        if self.steps is None:
            self._given.end_epoch()
        else:
            self.ran_out = True
            self.warn_empty()
        return True

    def note_size(self, count):
        """Epochs from now on have as many batches as the first one."""
        if self.steps is None and count:
            self.steps = count

    def warn_empty(self):
        self._given.warn_empty()


def _divided(strategy, dataset):
    return strategy.experimental_distribute_dataset(dataset)
