"""The resolver of a Slurm step."""

import os
import re

from headrace.distribute.resolver.base import WithLayer
from headrace.distribute.resolver.cluster_spec import ClusterSpec

_MOST = 1 << 20  # tasks or hosts of a list: more are a mistake


def _of_environment(name):
    value = os.environ.get("SLURM_" + name)
    if value is None:
        raise RuntimeError(
            f"SLURM_{name} not found in environment. Not running inside a SLURM step?"
        )
    return value


def _bad_hosts(text, part):
    return ValueError(f'Invalid hostlist format "{text}": Invalid part: {part}')


def expand_hostlist(hostlist):
    """The hosts of a list such as "n[1-2,07],m". ValueError for another text."""
    hosts = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", hostlist):
        found = re.fullmatch(r"([^\[\]]*)\[([\d,-]+)\]", part)
        if not found:
            if "[" in part or "]" in part:
                raise _bad_hosts(hostlist, part)
            hosts.append(part)
            continue
        prefix, numbers = found.groups()
        for piece in numbers.split(","):
            ends = re.fullmatch(r"(\d+)(?:-(\d+))?", piece)
            if not ends:
                raise _bad_hosts(hostlist, part)
            first, last = ends[1], ends[2] or ends[1]
            if not 0 <= int(last) - int(first) < _MOST:
                raise _bad_hosts(hostlist, part)
            for number in range(int(first), int(last) + 1):
                hosts.append(f"{prefix}{number:0{len(first)}d}")
    return hosts


def expand_tasks_per_node(tasks_per_node):
    """The numbers of a list such as "3(x2),1". ValueError for another text."""
    counts = []
    for part in tasks_per_node.split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if not found or int(found[2] or 1) > _MOST:
            raise ValueError(f'Invalid tasks-per-node list format "{tasks_per_node}"')
        counts += [int(found[1])] * int(found[2] or 1)
    return counts


def _visible_gpus():
    """How many GPUs CUDA_VISIBLE_DEVICES names."""
    return len([g for g in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if g])


class SlurmClusterResolver(WithLayer):
    """Makes a cluster of the tasks of the Slurm step that the program runs in.

    Args:
      jobs: {job: how many tasks}; {"worker": all tasks} by default.
      port_base: the port of a node's first task; each further one has the next.
      gpus_per_node: how many GPUs a node has; those of CUDA_VISIBLE_DEVICES by default.
      gpus_per_task: how many a task uses; an equal share by default.
      tasks_per_node: how many tasks run on each node; what Slurm says by default.
      auto_set_gpu: whether cluster_spec() sets CUDA_VISIBLE_DEVICES to the task's GPUs.
      rpc_layer: the protocol that addresses begin with.

    Raises:
      RuntimeError: outside of a Slurm step, or where jobs do not fit what Slurm gave.
      ValueError: for lists of Slurm's that cannot be read.
    """

    def __init__(
        self,
        jobs=None,
        port_base=8888,
        gpus_per_node=None,
        gpus_per_task=None,
        tasks_per_node=None,
        auto_set_gpu=True,
        rpc_layer="grpc",
    ):
        self._rank = int(_of_environment("PROCID"))
        if jobs is None:
            jobs = {"worker": int(_of_environment("STEP_NUM_TASKS"))}
        self._jobs = dict(jobs)
        self._port_base = port_base
        hosts = expand_hostlist(_of_environment("STEP_NODELIST"))
        if tasks_per_node is None:
            counts = expand_tasks_per_node(_of_environment("STEP_TASKS_PER_NODE"))
        else:
            counts = [int(tasks_per_node)] * len(hosts)
        self._tasks_of = dict(zip(hosts, counts))
        self._auto_set_gpu = auto_set_gpu
        self._rpc_layer = rpc_layer
        self._share_gpus(gpus_per_node, gpus_per_task)
        asked, given = sum(self._jobs.values()), sum(self._tasks_of.values())
        if asked != given:
            raise RuntimeError(
                f"Requested {asked} tasks but only {given} were assigned."
            )

    def _share_gpus(self, per_node, per_task):
        most = max(self._tasks_of.values(), default=0)
        self._gpus_per_node = _visible_gpus() if per_node is None else per_node
        if per_task is None:
            per_task = self._gpus_per_node // most if most else 0
        self._gpus_per_task = per_task
        if per_task * most > self._gpus_per_node:
            raise RuntimeError("Requested more GPUs per node than available.")

    def _places(self):
        """(host, port, GPUs) of every task in turn."""
        gpus = self._gpus_per_task
        return [
            (host, self._port_base + i, range(i * gpus, (i + 1) * gpus))
            for host, count in self._tasks_of.items()
            for i in range(count)
        ]

    def cluster_spec(self):
        """The ClusterSpec of the step; also finds out which task this process is."""
        places = self._places()
        cluster, at = {}, 0
        for job, count in self._jobs.items():
            own = places[at : at + count]
            cluster[job] = [f"{host}:{port}" for host, port, _ in own]
            if at <= self._rank < at + count:
                self._task_type, self._task_id = job, self._rank - at
            at += count
        if self._auto_set_gpu and self._rank < len(places) and self._gpus_per_task:
            shown = ",".join(map(str, places[self._rank][2]))
            os.environ["CUDA_VISIBLE_DEVICES"] = shown
        return ClusterSpec(cluster)

    def get_task_info(self):
        """(job, number) of this process, (None, None) before cluster_spec() was called."""
        return self._task_type, self._task_id

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The address of a task, of this process's where none is named, "" where that is
        not known yet."""
        return self._address(task_type, task_id, rpc_layer) or ""

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """{"GPU": how many} of each task."""
        del task_type, task_id, config_proto
        return {"GPU": self._gpus_per_task}
