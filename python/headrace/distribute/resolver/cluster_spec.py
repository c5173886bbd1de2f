"""tf.train.ClusterSpec: the tasks of a cluster and their addresses."""

from headrace.framework.support import protos

_NO_CLUSTER = (
    "`cluster` must be a dictionary mapping one or more job names to lists of network "
    "addresses, or a `ClusterDef` protocol buffer"
)


def _text(value, what):
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError(f"{what} {value!r} must be bytes or unicode")
    return value


def _tasks_of(job, tasks):
    """{index: address} of a job's list or dict."""
    if isinstance(tasks, (list, tuple)):
        tasks = dict(enumerate(tasks))
    elif not isinstance(tasks, dict):
        raise TypeError(
            f"The tasks for job {job!r} must be a list or a dictionary from integers to "
            "strings."
        )
    return {int(i): _text(address, "Task address") for i, address in tasks.items()}


def _jobs_of(cluster):
    """{job: {index: address}} of all that a ClusterSpec is made of."""
    if isinstance(cluster, ClusterSpec):
        return cluster._jobs
    if isinstance(cluster, protos.ClusterDef):
        return {job.name: dict(job.tasks) for job in cluster.job}
    if not isinstance(cluster, dict):
        raise TypeError(_NO_CLUSTER)
    return {_text(job, "Job name"): _tasks_of(job, t) for job, t in cluster.items()}


class ClusterSpec:
    """The jobs of a cluster, each of tasks that have a number and an address.

    Args:
      cluster: {job: addresses, a list or {number: address}}, a ClusterDef, or another
        ClusterSpec.

    Raises:
      TypeError: for another cluster, job, or address.
      ValueError: for a task's number that is no number.
    """

    def __init__(self, cluster):
        self._jobs = {
            job: dict(sorted(tasks.items())) for job, tasks in _jobs_of(cluster).items()
        }

    def as_dict(self):
        """{job: addresses}: a list where tasks are numbered from 0 without holes, else
        {number: address}."""
        return {
            job: list(tasks.values())
            if tasks and list(tasks) == list(range(len(tasks)))
            else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self):
        """The ClusterDef of the cluster: a message of its own."""
        proto = protos.ClusterDef()
        for name, tasks in sorted(self._jobs.items()):
            job = proto.job.add(name=name)
            for index, address in tasks.items():
                job.tasks[index] = address
        return proto

    @property
    def jobs(self):
        """The names of the jobs."""
        return list(self._jobs)

    def _tasks(self, job_name):
        if job_name not in self._jobs:
            raise ValueError(f"No such job in cluster: {job_name!r}")
        return self._jobs[job_name]

    def num_tasks(self, job_name):
        """How many tasks a job has. ValueError for an unknown job."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name):
        """The numbers of a job's tasks, sorted. ValueError for an unknown job."""
        return list(self._tasks(job_name))

    def task_address(self, job_name, task_index):
        """The address of a task. ValueError for an unknown job or task."""
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name):
        """The addresses of a job by number, None where there is no such task.
        ValueError for an unknown job."""
        tasks = self._tasks(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]

    def __bool__(self):
        return bool(self._jobs)

    def __eq__(self, other):
        return self._jobs == (other._jobs if isinstance(other, ClusterSpec) else other)

    __hash__ = None

    def __repr__(self):
        return f"ClusterSpec({dict(sorted(self.as_dict().items()))!r})"
