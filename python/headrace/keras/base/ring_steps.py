"""Steps and data of models whose workers meet in TensorFlow's order: in rings, of which
some workers may be TensorFlow's."""

import itertools

from headrace import _api as tf
from headrace.context import errors
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
    question whether there is a batch. What metrics give is summed over workers."""

    def __init__(self, model, kind, eager):
        super().__init__(model, kind, eager)
        if model._steps_together() > 1:
            raise errors.UnimplementedError._of(
                f"steps_per_execution={model._steps_together()} in a group of workers by "
                "CommunicationImplementation.RING of HEADRACE_TENSORFLOW_PEERS=1"
            )
        self._strategy = strategy = model._keras.strategy
        self._schedule = None
        counter = model._keras.counters.of_kind[kind]
        of_batch, together = self._step, _TOGETHER[kind]

        def step(iterator):
            outputs = of_batch(iterator._of_this_worker(iterator.get_next()))
            counter.assign_add(1, read_value=False)
            return tf.nest.map_structure(lambda x: together(strategy, x), outputs)

        step.__name__ = kind + "_function"
        self._step = step
        self._exact = None if eager else tf.function(step)

    def __call__(self, data):
        if not hasattr(data, "_of_this_worker"):  # one batch
            data = iter(_divided(self._strategy, tf.data.Dataset.from_tensors(data)))
        return (self._exact or self._step)(data)


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

    def __init__(self, strategy, given):
        self._given, self._data = given, given.divided(strategy, _divided)
        self._iterator = None
        self.steps, self.ran_out = given.steps, False

    def begin(self):
        """The next epoch starts at the first batch again."""
        self._iterator = None
        self._given.begin()

    def epoch(self):
        """The iterator, once for each batch of an epoch."""
        if self._iterator is None or self._given.starts_anew():
            self._iterator = iter(self._data)
        known = self.steps is not None
        for _ in range(self.steps) if known else itertools.count():
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
