"""Variables of which each worker has its own."""

import itertools
import weakref

from headrace import _api as tf
from headrace._load import _headrace, raw
from headrace.context import errors
from headrace.distribute.remote.tasks import CONTAINER, constant, name_of
from headrace.framework.variables import ResourceVariable

_LOST = (
    errors.AbortedError,
    errors.DeadlineExceededError,
    errors.UnavailableError,
)
_numbers = itertools.count()


class PerWorkerVariable(ResourceVariable):
    """What tf.Variable(..., per_worker_variable=True) makes in the scope of a
    ParameterServerStrategy: functions that a coordinator schedules use the variable of
    the worker that runs them; elsewhere it is the coordinator's own, which checkpoints
    save. It is not trained. A worker that begins anew begins with its first value."""

    def __init__(self, strategy, **kwargs):
        super().__init__(**{**kwargs, "trainable": False})
        self._distribute_strategy = strategy
        self._cluster = strategy._cluster
        initial = kwargs["initial_value"]

        def first():
            value = initial() if callable(initial) else self._read()
            return tf.convert_to_tensor(value, self.dtype)

        workers = self._cluster.workers
        self._firsts = {name_of("worker", i): first() for i in workers}
        self._resource = f"per_worker_variable_{next(_numbers)}"
        self._users = []  # tasks that have a handle of it
        weakref.finalize(self, _leave, self._resource, self._users)

    def _on_task(self, task):
        """The resource in the graph of a worker, which has a value."""
        handle, has_value, begin, _ = self._nodes(task)
        if task.users.get(self._resource) is None:
            if not task.run([has_value])[0]:
                task.run([], [begin])
            task.users[self._resource] = True
        return handle

    def _nodes(self, task):
        """(the resource, whether it has a value, what gives it the first, its value) in
        the graph of a task."""
        if task.name not in self._firsts:
            raise errors.InvalidArgumentError._of(
                f"a function for {task.name} uses {self.name!r}, of which each worker has "
                "its own: functions that use it and variables of servers are to be "
                "scheduled"
            )
        return task.resource(self._resource, lambda: self._made(task))

    def _made(self, task):
        self._users.append(task)
        with tf.device(f"{task.name}/device:CPU:0"):
            handle = raw.VarHandleOp(
                dtype=self._stored_dtype,
                shape=self.shape,
                container=CONTAINER,
                shared_name=self._resource,
            )
            has_value = raw.VarIsInitializedOp(handle)
            begin = _headrace.raw_op("AssignVariableOp")(
                resource=handle, value=constant(self._firsts[task.name])
            )
            value = raw.ReadVariableOp(handle, dtype=self._stored_dtype)
        return handle, has_value, begin._node, value

    def read_all(self):
        """What the workers have now: a list of tensors, in the order of the workers.
        UnavailableError for a worker that is away."""
        return [self._read_on(i) for i in self._cluster.workers]

    def _read_on(self, index):
        task = self._cluster.reader(index)
        with task.lock:
            try:
                task.check()
            except _LOST:
                task.begin_anew()  # as the worker may have done
                _look_for(task)
            return self._value_on(task)

    def _value_on(self, task):
        task.collect()
        _, has_value, _, value = self._nodes(task)
        if not task.run([has_value])[0]:
            return self._firsts[task.name]
        return _headrace.make_tensor(task.run([value])[0], self._stored_dtype)


def _look_for(task):
    try:
        task.probe()
    except errors.OpError as e:
        raise errors.UnavailableError._of(f"{task.name} is away: {e.message}") from None


def _leave(resource, tasks):
    for task in tasks:
        task.leave(resource)
