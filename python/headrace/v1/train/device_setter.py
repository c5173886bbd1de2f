"""tf.compat.v1.train.replica_device_setter: variables on servers of parameters."""

import itertools

from headrace.distribute.resolver.cluster_spec import ClusterSpec
from headrace.framework.devices import DeviceSpec
from headrace.framework.settings import logging
from headrace.framework.tensor_shape import TensorShape

_STATEFUL = """Variable VariableV2 AutoReloadVariable VarHandleOp MutableHashTable
MutableHashTableV2 MutableHashTableOfTensors MutableHashTableOfTensorsV2
MutableDenseHashTable MutableDenseHashTableV2 ResourceConditionalAccumulator
DecisionTreeResource BoostedTreesEnsembleResourceHandleOp
BoostedTreesQuantileStreamResourceHandleOp""".split()


class GreedyLoadBalancingStrategy:
    """A ps_strategy: each operation goes to the task that has the least so far.

    Args:
      num_tasks: how many tasks there are.
      load_fn: a function of an operation that gives its load, a number.
    """

    def __init__(self, num_tasks, load_fn):
        self._loads = [0.0] * num_tasks
        self._load_fn = load_fn

    def __call__(self, op):
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op):
    """The bytes of an operation's only output: a load_fn. ValueError where it has several
    outputs, or no shape that is known."""
    if len(op.outputs) != 1:
        raise ValueError(f"Op {op} must have a single output")
    shape = op.outputs[0].shape
    if op.type == "VarHandleOp":
        shape = TensorShape(op.get_attr("shape"))
    shape.assert_is_fully_defined()
    size = op.get_attr("dtype").size if "dtype" in op.node_def.attr else 1
    return shape.num_elements() * size


class _Chooser:
    """Says of operations whether they lie with servers or with the worker."""

    def __init__(self, on_servers, server, worker, merge, strategy):
        self._on_servers, self._strategy, self._merge = on_servers, strategy, merge
        self._server = DeviceSpec.from_string(server or "")
        self._worker = DeviceSpec.from_string(worker or "")
        self._has_servers = bool(server)

    def device_function(self, op):
        """The device of an operation, a string."""
        if not self._merge and op.device:
            return op.device
        asked = DeviceSpec.from_string(op.device or "")
        device = self._worker
        if self._has_servers and op.type in self._on_servers:
            device = self._server
            if device.job and asked.job in (None, device.job):
                device = device.replace(task=self._strategy(op))
        return device.make_merged_spec(asked).to_string()


def replica_device_setter(
    ps_tasks=0,
    ps_device="/job:ps",
    worker_device="/job:worker",
    merge_devices=True,
    cluster=None,
    ps_ops=None,
    ps_strategy=None,
):
    """A function for tf.compat.v1.device that places variables in turn on the tasks of
    parameters' servers, all else on the worker; None where there is no such task.

    Args:
      ps_tasks: how many tasks there are, if there is no `cluster`.
      ps_device: the servers' device; its job is looked for in the cluster.
      worker_device: the device of all other operations.
      merge_devices: whether devices of operations are filled up; else those that have
        one keep it.
      cluster: {job: addresses}, a ClusterDef, or a ClusterSpec.
      ps_ops: the names of ops that lie with servers; those with state by default.
      ps_strategy: a function of an operation that gives its task's number.

    Raises:
      TypeError: for a cluster of another type, or a strategy that cannot be called.
    """
    if cluster is not None:
        jobs = ClusterSpec(cluster).as_dict()
        ps_tasks = len(jobs.get(DeviceSpec.from_string(ps_device or "").job, ()))
    if ps_tasks == 0:
        return None
    if ps_strategy is None:
        turns = itertools.cycle(range(ps_tasks))
        ps_strategy = lambda op: next(turns)  # noqa: E731
    if not callable(ps_strategy):
        raise TypeError("ps_strategy must be callable")
    if not merge_devices:
        logging.warn(
            "DEPRECATION: It is recommended to set merge_devices=true in "
            "replica_device_setter"
        )
    ops = _STATEFUL if ps_ops is None else ps_ops
    chooser = _Chooser(ops, ps_device, worker_device, merge_devices, ps_strategy)
    return chooser.device_function
