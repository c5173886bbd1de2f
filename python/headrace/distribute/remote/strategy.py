"""tf.distribute.ParameterServerStrategy: variables on servers, steps on workers."""

import collections
import contextlib
import functools
import itertools

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.distribute import contexts, strategy, values
from headrace.distribute.options import InputContext
from headrace.distribute.remote import tasks
from headrace.distribute.remote.coordinator import ClusterCoordinator
from headrace.distribute.remote.per_worker import PerWorkerVariable
from headrace.distribute.remote.sharded import partitioned
from headrace.distribute.remote.variables import RemoteVariable
from headrace.framework.variables import first_values_to

_JOBS = ("chief", "worker", "evaluator", "ps")
_AHEAD = 3  # steps a worker that are scheduled and have not run
_NONE = tf.VariableSynchronization.NONE
_COORDINATOR = "/job:chief/replica:0/task:0/device:CPU:0"


class ParameterServerExtended(strategy.StrategyExtended):
    """One replica a function that a worker runs; variables go to servers in turn."""

    def __init__(self, container_strategy, cluster_resolver, partitioner):
        super().__init__(container_strategy)
        self._cluster_resolver = cluster_resolver
        self._partitioner = partitioner
        self._cluster = tasks.Cluster(cluster_resolver.cluster_spec())
        self._devices = ("/device:CPU:0",)  # of the worker that a function runs on
        self._turn = itertools.count()
        self._ahead = collections.deque()  # results of steps of Keras
        self._beside = []  # servers of variables that others are to be made beside

    _num_workers = property(lambda self: len(self._cluster.workers))
    _num_ps = property(lambda self: len(self._cluster.servers))

    # The device that works on behalf of all variables.
    _own_parameter_devices = (_COORDINATOR,)

    @property
    def worker_devices_by_replica(self):
        """A list of devices a replica: those of the one that no worker has."""
        return [[_COORDINATOR]]

    # --- variables ---

    def _create_variable(self, next_creator, **kwargs):
        if kwargs.get("per_worker_variable"):
            mine = self._container_strategy()
            kwargs["per_worker_variable"] = functools.partial(PerWorkerVariable, mine)
            with stack.init_scope(), contexts.entering(mine, None, 0):
                return next_creator(**kwargs)
        # A variable has one copy, whatever keeps copies together.
        if kwargs.get("synchronization") == _NONE:
            kwargs["synchronization"] = tf.VariableSynchronization.AUTO
        kwargs = self._checked(kwargs)
        if self._partitioner is not None and not self._beside:
            made = partitioned(self._partitioner, kwargs, self._make, next_creator)
            if made is not None:
                return made
        return self._make(next_creator, kwargs)

    def _make(self, next_creator, kwargs):
        """A variable on the server whose turn it is."""
        if self._beside:
            server = self._beside[-1]
        else:
            servers = self._cluster.servers
            server = servers[next(self._turn) % len(servers)]
        first = []
        mine = self._container_strategy()
        with stack.init_scope(), contexts.entering(mine, None, 0):
            with first_values_to(first.append):
                local = next_creator(**kwargs)
            value = first[0] if first else local._read()
            local._runner = self._cluster.call
            return RemoteVariable(mine, server, local, value)

    @contextlib.contextmanager
    def _near(self, variable):
        self._beside.append(variable._store.home)
        try:
            yield
        finally:
            self._beside.pop()

    def colocate_vars_with(self, colocate_with_variable):
        """A context whose variables go to the server of that one. ValueError for a
        variable of another scope."""
        contexts.require_cross_replica(self._container_strategy())
        self._check_own(colocate_with_variable)
        return self._near(colocate_with_variable)

    # --- updates: of the variable itself, wherever the code runs ---

    def update(self, var, fn, args=(), kwargs=None, group=True):
        """Runs fn(var, ...); in functions of workers on the variable's server."""
        contexts.require_scope_or_none(self._container_strategy())
        device = None if _headrace.is_eager() else var.device
        with self._updating(0, device):
            part = values.select(0, (tuple(args), dict(kwargs or {})))
            result = fn(var, *part[0], **part[1])
        return self._grouped([result], group)

    def _update_all(self, fn, *args):
        with self._updating(0, None):
            return fn(*values.select(0, args))

    def _grouped(self, results, group):
        return results[0] if group else tuple(results)

    # --- Keras ---

    def _schedule(self, function, data):
        """Has a worker run a step of a batch; not many are ahead of those that run, as
        they hold their batches. A RemoteValue."""
        coordinator = ClusterCoordinator(self._container_strategy())
        if len(self._ahead) >= _AHEAD * self._num_workers:
            self._ahead.popleft()._settled.wait()
        self._ahead.append(coordinator.schedule(function, (data,)))
        return self._ahead[-1]

    def _join(self):
        """Waits until all steps have run."""
        self._ahead.clear()
        ClusterCoordinator(self._container_strategy()).join()

    # --- datasets ---

    def _distribute_dataset(self, dataset, options):
        del options
        return dataset

    def _distribute_from_function(self, dataset_fn, options):
        del options
        return dataset_fn(InputContext(1, 0, 1))


class ParameterServerStrategy(strategy.Strategy):
    """Variables lie on parameter servers, and workers run the functions that a
    ClusterCoordinator schedules.

    Workers and servers run tf.distribute.Server(...).join(); this process is none of
    them. In the scope variables are made on the servers in turn.

    Args:
      cluster_resolver: a ClusterResolver whose cluster has tasks "worker" and "ps".
      variable_partitioner: a Partitioner of tf.distribute.experimental.partitioners, or a
        function of a shape and a dtype that gives numbers of parts, by which variables
        become ShardedVariables. None for whole variables.

    Raises:
      ValueError: for a cluster without workers or servers, with two chiefs, or with
        other jobs than these and "evaluator".
    """

    def __init__(self, cluster_resolver, variable_partitioner=None):
        _check_cluster(cluster_resolver.cluster_spec())
        self._cluster_coordinator = None
        super().__init__(
            ParameterServerExtended(self, cluster_resolver, variable_partitioner)
        )

    _cluster = read_only("_extended._cluster")


def _check_cluster(spec):
    if not spec:
        raise ValueError(
            "Cluster spec must be non-empty in "
            "`tf.distribute.cluster_resolver.ClusterResolver`."
        )
    counts = {job: spec.num_tasks(job) for job in spec.jobs}
    if set(counts) - set(_JOBS):
        raise ValueError(
            "Disallowed task type found in cluster spec. Allowed types are "
            f"{(*_JOBS, None)} and the cluster spec is {spec}."
        )
    if counts.get("chief", 0) > 1:
        raise ValueError("There must be at most one 'chief' job.")
    for job in ("worker", "ps"):
        if not counts.get(job):
            raise ValueError(f"There must be at least one {job}.")
