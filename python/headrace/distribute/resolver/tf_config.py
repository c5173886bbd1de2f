"""The resolver of what the environment variable TF_CONFIG says."""

import json
import os

from headrace.distribute.resolver.base import WithLayer, address_of
from headrace.distribute.resolver.cluster_spec import ClusterSpec

_VARIABLE = "TF_CONFIG"


def read():
    """The JSON of TF_CONFIG: a dict, empty where it is not set."""
    return json.loads(os.environ.get(_VARIABLE) or "{}")


class TFConfigClusterResolver(WithLayer):
    """Reads {"cluster": {job: addresses}, "task": {"type": job, "index": number},
    "rpc_layer": protocol} from TF_CONFIG each time that it is asked.

    What the arguments say, or what was set, is told in the place of TF_CONFIG's.
    json.JSONDecodeError where that is no JSON.
    """

    def __init__(self, task_type=None, task_id=None, rpc_layer=None, environment=None):
        self._task_type = task_type
        self._task_id = task_id
        self._rpc_layer = rpc_layer
        self._environment = environment

    @property
    def task_type(self):
        """The job of this process, or None: what was set, else TF_CONFIG's."""
        if self._task_type is not None:
            return self._task_type
        kind = read().get("task", {}).get("type")
        return None if kind is None else str(kind)

    @task_type.setter
    def task_type(self, task_type):
        self._task_type = task_type

    @property
    def task_id(self):
        """The number of this process, or None: what was set, else TF_CONFIG's."""
        if self._task_id is not None:
            return self._task_id
        index = read().get("task", {}).get("index")
        return None if index is None else int(index)

    @task_id.setter
    def task_id(self, task_id):
        self._task_id = task_id

    @property
    def environment(self):
        """What the constructor was told, or None."""
        return self._environment

    @property
    def rpc_layer(self):
        """The protocol of addresses, or None: what was set, else TF_CONFIG's."""
        if self._rpc_layer is not None:
            return self._rpc_layer
        return read().get("rpc_layer")

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer):
        self._rpc_layer = rpc_layer

    def cluster_spec(self):
        """The ClusterSpec that TF_CONFIG says; empty where it says none."""
        return ClusterSpec(read().get("cluster") or {})

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The address of a task, of this process's where none is named; "" where the
        cluster has at most one task, and what TF_CONFIG says as session_master."""
        told = read().get("session_master")
        if told is not None:
            return told
        spec = self.cluster_spec()
        if not spec or spec.jobs and sum(map(spec.num_tasks, spec.jobs)) == 1:
            return ""
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        address = spec.task_address(task_type, task_id)
        return address_of(address, rpc_layer or self.rpc_layer)
