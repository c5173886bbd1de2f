"""tf.test.create_local_cluster: the tasks of a cluster within this process."""

import contextlib
import socket

from headrace.distribute.server import Server


def _free_ports(count):
    """Ports of this machine that were free at the same time."""
    with contextlib.ExitStack() as open_sockets:
        ports = []
        for _ in range(count):
            s = open_sockets.enter_context(socket.socket())
            s.bind(("localhost", 0))
            ports.append(s.getsockname()[1])
    return ports


def create_local_cluster(
    num_workers, num_ps, protocol="grpc", worker_config=None, ps_config=None
):
    """Servers of the jobs "worker" and "ps" in this process, started at ports that are
    free.

    Args:
      num_workers, num_ps: how many tasks each job has.
      protocol: as tf.distribute.Server takes it.
      worker_config, ps_config: the ConfigProto of a job's servers, or None.

    Returns:
      Two lists of tf.distribute.Server: the workers and the parameter servers.

    Raises:
      errors.OpError: as tf.distribute.Server does.
    """
    jobs = {"worker": (num_workers, worker_config), "ps": (num_ps, ps_config)}
    ports = iter(_free_ports(num_workers + num_ps))
    cluster = {
        job: [f"localhost:{next(ports)}" for _ in range(count)]
        for job, (count, _) in jobs.items()
    }
    servers = {
        job: [Server(cluster, job, i, protocol, config) for i in range(count)]
        for job, (count, config) in jobs.items()
    }
    return servers["worker"], servers["ps"]
