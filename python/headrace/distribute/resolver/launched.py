"""The resolver of processes that a launcher started together, and what programs get that
name no resolver."""

from headrace.distribute.resolver import meeting, places, slurm, tf_config
from headrace.distribute.resolver.base import WithLayer
from headrace.distribute.resolver.cluster_spec import ClusterSpec

_met = {}  # addresses of all processes, by place: they meet once


class LaunchedClusterResolver(WithLayer):
    """Makes a cluster of the processes that torchrun, mpirun or another launcher started
    together, whose variables say numbers and no addresses: they meet once, when
    cluster_spec() is first called, at an address of the first process (docs/clusters.md).

    This is Headrace's own; TensorFlow has no such resolver.

    Args:
      jobs: {job: how many processes}, in the order of their numbers; {"worker": all} by
        default.
      rpc_layer: the protocol that addresses begin with.
      timeout_seconds: how long others are waited for.

    Raises:
      RuntimeError: where no launcher's variables say a place, they contradict each other,
        or jobs are not as many as the processes.
    """

    def __init__(self, jobs=None, rpc_layer="grpc", timeout_seconds=600.0):
        place = places.place()
        if place is None:
            raise RuntimeError(
                "RANK and WORLD_SIZE, OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE, or "
                "PMI_RANK and PMI_SIZE not found in environment"
            )
        self._place, self._rpc_layer = place, rpc_layer
        self._timeout_seconds = timeout_seconds
        self._jobs = {"worker": place.size} if jobs is None else dict(jobs)
        if sum(self._jobs.values()) != place.size:
            raise RuntimeError(
                f"Requested {sum(self._jobs.values())} tasks but {place.said_by} say that "
                f"there are {place.size} processes."
            )
        at = 0
        for job, count in self._jobs.items():
            if at <= place.rank < at + count:
                self._task_type, self._task_id = job, place.rank - at
            at += count

    def cluster_spec(self):
        """The ClusterSpec of all processes, once they met.

        Raises:
          errors.DeadlineExceededError: where some did not come; it names them.
          errors.FailedPreconditionError: for processes of one number, or other versions.
          OSError: where the first one cannot listen.
        """
        if self._place.size == 1:
            found = ["localhost:0"]
        elif (found := _met.get(self._place)) is None:
            found = meeting.addresses(self._place, self._timeout_seconds)
            _met[self._place] = found
        rest = iter(found)
        return ClusterSpec(
            {job: [next(rest) for _ in range(n)] for job, n in self._jobs.items()}
        )

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The address of a task, of this process's where none is named."""
        return self._address(task_type, task_id, rpc_layer) or ""


def default_resolver():
    """The resolver of what the environment says: TF_CONFIG's, else that of a launcher
    (places.py has their order), else TF_CONFIG's of a process that is alone.

    RuntimeError where variables contradict each other.
    """
    cluster = tf_config.read().get("cluster")
    if cluster:
        places.require_as_many(sum(map(len, cluster.values())))
        return tf_config.TFConfigClusterResolver()
    if places.place() is not None:
        return LaunchedClusterResolver()
    if places.in_slurm_step():
        return slurm.SlurmClusterResolver()
    return tf_config.TFConfigClusterResolver()
