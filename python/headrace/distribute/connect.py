"""tf.config.experimental_connect_to_host and what goes with it: eager operations on the
tasks of a cluster."""

import socket

from headrace import _api as tf
from headrace.distribute.resolver.base import ClusterResolver, SimpleClusterResolver
from headrace.distribute.resolver.cluster_spec import ClusterSpec
from headrace.framework.settings import cluster
from headrace.framework.support import protos


class ClusterDeviceFilters:
    """Which devices each task of a cluster sees: those of its own and, where it has
    filters, those that one of them stands for; all without filters."""

    def __init__(self):
        self._filters = {}

    def set_device_filters(self, job_name, task_index, device_filters):
        """A task's filters: names of devices, in part, such as "/job:ps". AssertionError
        for what is no list of names."""
        assert all(isinstance(f, str) for f in device_filters)
        self._filters.setdefault(job_name, {})[task_index] = list(device_filters)

    def _as_cluster_device_filters(self):
        """The ClusterDeviceFilters proto."""
        made = protos.ClusterDeviceFilters()
        for job, tasks in sorted(self._filters.items()):
            added = made.jobs.add(name=job)
            for index, filters in sorted(tasks.items()):
                added.tasks[index].device_filters.extend(filters)
        return made


def experimental_connect_to_host(remote_host=None, job_name="worker"):
    """Connects to the tasks at one or more addresses, "host:port" or "grpc://host:port",
    as job `job_name`: tf.device then places operations on them.

    Raises:
      ValueError: without an address.
      errors.OpError: where they do not answer, or are of another version.
    """
    if not remote_host:
        raise ValueError("Must provide at least one remote_host")
    hosts = remote_host if isinstance(remote_host, (list, tuple)) else [remote_host]
    addresses = [host.removeprefix("grpc://") for host in hosts]
    experimental_connect_to_cluster(ClusterSpec({job_name: addresses}))


def experimental_connect_to_cluster(
    cluster_spec_or_resolver,
    job_name="localhost",
    task_index=0,
    protocol=None,
    make_master_device_default=True,
    cluster_device_filters=None,
):
    """Connects to all tasks of a cluster: tf.device then places operations on them.

    Results lie on their task, and their values come here with them; variables and other
    resources lie on the task alone. What they lie on runs what uses them.

    Args:
      cluster_spec_or_resolver: a ClusterSpec or a ClusterResolver.
      job_name, task_index: what this process is in the cluster, to which it is added
        where the cluster does not have it.
      protocol: "grpc", which alone is known.
      make_master_device_default: whether operations go to the resolver's master, where it
        names one of the tasks, unless tf.device says otherwise.
      cluster_device_filters: ClusterDeviceFilters, or None.

    Raises:
      ValueError: for what is none of these.
      errors.OpError: where a task does not answer in ten minutes, or is of another
        version.
    """
    resolver = cluster_spec_or_resolver
    if isinstance(resolver, ClusterSpec):
        resolver = SimpleClusterResolver(resolver)
    if not isinstance(resolver, ClusterResolver):
        raise ValueError(
            "`cluster_spec_or_resolver` must be a `ClusterSpec` or a `ClusterResolver`."
        )
    filters = cluster_device_filters
    if filters is not None and not isinstance(filters, ClusterDeviceFilters):
        raise ValueError(
            "`cluster_device_filters` must be an instance of "
            "`tf.train.experimental.ClusterDeviceFilters`."
        )
    if protocol not in (None, "grpc"):
        raise ValueError(f"The protocol {protocol!r} is not supported, only 'grpc' is.")
    spec = resolver.cluster_spec()
    cluster.connect(_server_def(spec, job_name, task_index, filters))
    if make_master_device_default:
        _enter_master(resolver, spec)


def _server_def(spec, job_name, task_index, filters):
    made = protos.ServerDef(
        cluster=spec.as_cluster_def(),
        job_name=job_name,
        task_index=task_index,
        protocol="grpc",
    )
    jobs = {job.name: job for job in made.cluster.job}
    own = jobs[job_name] if job_name in jobs else made.cluster.job.add(name=job_name)
    if task_index not in own.tasks:
        own.tasks[task_index] = f"localhost:{_free_port()}"
    if filters is not None:
        made.cluster_device_filters.CopyFrom(filters._as_cluster_device_filters())
    return made


def _free_port():
    """A port that nobody listens at yet."""
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def _enter_master(resolver, spec):
    """Operations go to the task that is the resolver's master, where there is one."""
    master = resolver.master() or ""
    address = master.rpartition("://")[2]
    for job in spec.jobs:
        for index in spec.task_indices(job):
            if address and spec.task_address(job, index) == address:
                tf.device(f"/job:{job}/replica:0/task:{index}").__enter__()
                return
