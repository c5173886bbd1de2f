"""Datasets and iterators on each worker."""

import itertools
import weakref

from headrace import _api as tf
from headrace._load import _headrace, raw
from headrace.context import strategies
from headrace.context.properties import read_only
from headrace.data.dataset import Dataset
from headrace.data.functions import flat
from headrace.data.iterator import IteratorSpec, OwnedIterator
from headrace.distribute.remote.closures import PerWorkerValue, RemoteValue
from headrace.distribute.remote.tasks import CONTAINER, constant

_numbers = itertools.count()
_NOT_IN_FUNCTIONS = (
    "__iter__() is not supported inside of tf.function or in graph mode."
)
_NO_ITERATING = (
    "Iterating over an `AsyncDistributedIterator` is not supported right now."
)


class _WorkersIterator(RemoteValue):
    """The iterator of one worker: made when a function first uses it there, and anew in
    each life of the worker. It takes the place of an earlier one of the same dataset that
    is gone, if there is one, so that graphs do not grow."""

    def __init__(self, dataset, key):
        self._dataset, self._key, self._number = dataset, key, next(_numbers)
        self._type_spec = IteratorSpec(dataset.element_spec)

    def _on(self, task):
        """The iterator as functions on a task take it."""
        handle, begin = task.resource(self._key, lambda: self._made(task))
        if task.users.get(self._key) != self._number:
            task.run([], [begin])
            task.users[self._key] = self._number
        return OwnedIterator(element_spec=self._dataset.element_spec, resource=handle)

    def _made(self, task):
        handle = raw.IteratorV2(
            shared_name=self._key,
            container=CONTAINER,
            **flat(self._dataset.element_spec),
        )
        done = raw.MakeIterator(self._dataset._variant_on(task), handle)
        return handle, done._node


class PerWorkerDistributedIterator(PerWorkerValue):
    """An iterator for each worker, an argument of scheduled functions: of which each
    takes elements of its worker's."""

    def __init__(self, dataset, workers):
        key = dataset._take_key()
        super().__init__([_WorkersIterator(dataset, key) for _ in workers])
        self._give_place = weakref.finalize(self, dataset._free.append, key)

    def _keep_place(self):
        self._give_place.detach()

    _type_spec = property(lambda self: self._values[0]._type_spec)

    def __iter__(self):
        return self

    def __next__(self):
        """NotImplementedError: functions of workers take elements."""
        return self.get_next()

    def get_next(self, name=None):
        """NotImplementedError: functions of workers take elements."""
        raise NotImplementedError(_NO_ITERATING)


class PerWorkerDataset:
    """What ClusterCoordinator.create_per_worker_dataset gives: iter() makes an iterator
    for each worker."""

    def __init__(self, element_spec, workers):
        self._element_spec, self._workers = element_spec, workers
        self._free = []  # names of iterators on workers that nobody uses
        tasks = [worker.task for worker in workers]
        self._keys = []
        weakref.finalize(self, _leave, self._keys, tasks)

    def _take_key(self):
        if not self._free:
            self._keys.append(f"per_worker_iterator_{next(_numbers)}")
            self._free.append(self._keys[-1])
        return self._free.pop()

    element_spec = read_only(
        "_element_spec", "The nested structure of specs that an element has."
    )

    def __iter__(self):
        if not _headrace.is_eager() or tf.inside_function():
            raise RuntimeError(_NOT_IN_FUNCTIONS)
        return PerWorkerDistributedIterator(self, self._workers)


class PerWorkerDatasetFromDatasetFunction(PerWorkerDataset):
    """Datasets that a traced function makes on each worker."""

    def __init__(self, concrete, workers):
        self._concrete = concrete
        super().__init__(concrete.structured_outputs.element_spec, workers)

    def _variant_on(self, task):
        return task.outputs(self._concrete)[0]


class PerWorkerDatasetFromDataset(PerWorkerDataset):
    """Copies of a dataset of the coordinator's, which are sent as graphs."""

    def __init__(self, dataset, workers):
        self._graph = raw.DatasetToGraphV2(dataset._variant_tensor)
        super().__init__(dataset.element_spec, workers)

    def _variant_on(self, task):
        return raw.DatasetFromGraph(constant(self._graph))


def _leave(keys, tasks):
    for task in tasks:
        for key in keys:
            task.leave(key)


def per_worker(dataset_fn, workers, strategy):
    """The PerWorkerDataset of a function or a Dataset. ValueError for others."""
    if isinstance(dataset_fn, Dataset):
        return PerWorkerDatasetFromDataset(dataset_fn, workers)
    if not callable(dataset_fn):
        raise ValueError("Unexpected dataset type!")
    function = dataset_fn
    if not isinstance(function, _headrace.FunctionBase):
        function = tf.function(dataset_fn)
    with strategy.scope(), strategies.for_worker(workers[0].index):
        concrete = function.get_concrete_function()
    return PerWorkerDatasetFromDatasetFunction(concrete, workers)
