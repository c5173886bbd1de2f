"""Resolvers of clusters: their base, one of a given cluster, and one of several."""

import abc
import collections

from headrace.distribute.resolver.cluster_spec import ClusterSpec
from headrace.framework.settings import config


def address_of(address, rpc_layer=None):
    """The address with the protocol before it, where there is one."""
    return f"{rpc_layer}://{address}" if rpc_layer else address


def accelerators():
    """{type: how many} of this process's devices that are no CPUs."""
    devices = config.list_logical_devices()
    return collections.Counter(d.device_type for d in devices if d.device_type != "CPU")


class ClusterResolver(abc.ABC):
    """Tells of a cluster's tasks, and which of them this process is.

    Subclasses have cluster_spec() and master(), and set `_task_type`, `_task_id` and
    `_rpc_layer`.
    """

    _task_type = None
    _task_id = None
    _rpc_layer = None

    @abc.abstractmethod
    def cluster_spec(self):
        """The ClusterSpec now: it may change from call to call."""
        raise NotImplementedError()

    @abc.abstractmethod
    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The address of a session's master; of a task where one is named."""
        raise NotImplementedError()

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """{type: how many} of a task's devices that are no CPUs: those of this process,
        whose devices are known."""
        del config_proto
        self.master(task_type, task_id)
        return collections.defaultdict(int, accelerators())

    @property
    def environment(self):
        """What the program runs in, such as "google"; "" where that is unknown."""
        return ""

    @property
    def task_type(self):
        """The job of this process, or None."""
        return self._task_type

    @task_type.setter
    def task_type(self, task_type):
        self._task_type = task_type

    @property
    def task_id(self):
        """The number of this process in its job, or None."""
        return self._task_id

    @task_id.setter
    def task_id(self, task_id):
        self._task_id = task_id

    def _address(self, task_type, task_id, rpc_layer):
        """The address of a task, of this process's where none is named; None where both
        are unknown."""
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        if task_type is None or task_id is None:
            return None
        address = self.cluster_spec().task_address(task_type, task_id)
        return address_of(address, rpc_layer or self._rpc_layer)


class WithLayer(ClusterResolver):
    """A resolver whose protocol can be read and set."""

    @property
    def rpc_layer(self):
        """The protocol that addresses begin with, or None."""
        return self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer):
        self._rpc_layer = rpc_layer


class SimpleClusterResolver(WithLayer):
    """The resolver of a ClusterSpec that is known.

    Args:
      cluster_spec: the ClusterSpec (TypeError for what is none).
      master: the address of sessions' master.
      task_type: the job of this process.
      task_id: its number in that.
      environment: what the program runs in.
      num_accelerators: {type: how many} of each task.
      rpc_layer: the protocol that addresses begin with.
    """

    def __init__(
        self,
        cluster_spec,
        master="",
        task_type=None,
        task_id=None,
        environment="",
        num_accelerators=None,
        rpc_layer=None,
    ):
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("cluster_spec must be a `tf.train.ClusterSpec`.")
        if not isinstance(master, str):
            raise TypeError("master must be a string.")
        self._cluster_spec = cluster_spec
        self._master = master
        self._task_type = task_type
        self._task_id = task_id
        self._environment = environment
        self._num_accelerators = num_accelerators
        self._rpc_layer = rpc_layer

    def cluster_spec(self):
        """The ClusterSpec that was given."""
        return self._cluster_spec

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The address of a task where both parts are given, else the master's."""
        if task_type is not None and task_id is not None:
            address = self.cluster_spec().task_address(task_type, task_id)
        else:
            address = self._master
        return address_of(address, rpc_layer or self._rpc_layer)

    @property
    def environment(self):
        """What the program runs in: what was given."""
        return self._environment

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """{type: how many} as was given: it is the same for all tasks."""
        del task_type, task_id, config_proto
        return self._num_accelerators or {}


def _joined(specs):
    """The ClusterSpec of several: jobs of one name are joined. KeyError where two tasks
    of a job have one number."""
    found = collections.defaultdict(list)
    for spec in specs:
        for job, tasks in spec.as_dict().items():
            found[job].append(tasks)
    merged = {}
    for job, parts in found.items():
        if all(isinstance(tasks, list) for tasks in parts):
            merged[job] = [address for tasks in parts for address in tasks]
            continue
        merged[job] = {}
        for tasks in parts:
            tasks = dict(enumerate(tasks)) if isinstance(tasks, list) else tasks
            twice = set(tasks) & set(merged[job])
            if twice:
                raise KeyError(
                    f"Duplicate keys detected when merging two ClusterSpecs: {twice!r}"
                )
            merged[job].update(tasks)
    return ClusterSpec(merged)


class UnionClusterResolver(WithLayer):
    """The resolver of several clusters as one; the first one says what this process is.

    Args:
      *args: the resolvers.
      **kwargs: rpc_layer, task_type, task_id in the place of the first one's.

    Raises:
      ValueError: without a resolver, or for another name.
      TypeError: for what is no resolver.
    """

    def __init__(self, *args, **kwargs):
        super().__init__()
        for name in ("rpc_layer", "task_type", "task_id"):
            setattr(self, "_" + name, kwargs.pop(name, None))
        if kwargs:
            raise ValueError(f"Unexpected kwargs provided {kwargs!r}")
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        for resolver in args:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(
                    "All arguments must be a sub-class of `ClusterResolver.`"
                )
        self._cluster_resolvers = args

    def cluster_spec(self):
        """The joined ClusterSpec. KeyError where two tasks of a job have one number."""
        return _joined([r.cluster_spec() for r in self._cluster_resolvers])

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The address of a task where both parts are given, else the first one's."""
        if task_type is not None and task_id is not None:
            address = self.cluster_spec().task_address(task_type, task_id)
            return address_of(address, rpc_layer or self._rpc_layer)
        return self._cluster_resolvers[0].master(rpc_layer=rpc_layer)

    environment = property(
        lambda self: self._cluster_resolvers[0].environment,
        doc="What the first resolver's program runs in.",
    )

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """{type: how many} as the first resolver has it."""
        return self._cluster_resolvers[0].num_accelerators(
            task_type, task_id, config_proto
        )

    def _own_or_first(self, name):
        own = getattr(self, "_" + name)
        return getattr(self._cluster_resolvers[0], name) if own is None else own


def _of_union(name, doc):
    def set_it(self, value):
        setattr(self, "_" + name, value)

    return property(lambda self: self._own_or_first(name), set_it, doc=doc)


for _name, _doc in {
    "task_type": "The job of this process: what was set, else the first one's.",
    "task_id": "The number of this process: what was set, else the first one's.",
    "rpc_layer": "The protocol of addresses: what was set, else the first one's.",
}.items():
    setattr(UnionClusterResolver, _name, _of_union(_name, _doc))
