"""Resolvers that ask a service: Kubernetes, Google Compute Engine, TPUs."""

import enum

from headrace.context import errors
from headrace.distribute.resolver.base import WithLayer
from headrace.distribute.resolver.cluster_spec import ClusterSpec


class ExecutableLocation(enum.Enum):
    """Where a program runs: in the Kubernetes cluster or outside of it."""

    WITHIN_CLUSTER = 0
    OFF_CLUSTER = 1


_NO_KUBERNETES = (
    "The Kubernetes Python client must be installed before using the Kubernetes Cluster "
    "Resolver. To install the Kubernetes Python client, run `pip install kubernetes` on "
    "your command line."
)


class KubernetesClusterResolver(WithLayer):
    """Makes a cluster of the pods that Kubernetes knows by labels.

    Args:
      job_to_label_mapping: {job: selectors of labels};
        {"worker": ["job-name=tensorflow"]} by default.
      tf_server_port: the port of every pod.
      rpc_layer: the protocol that addresses begin with.
      override_client: an object with list_pod_for_all_namespaces(label_selector=...), as
        the CoreV1Api of Kubernetes' client has it; it is needed.
      executable_location: an ExecutableLocation.

    Raises:
      ImportError: without a client.
      ValueError: for another location.
    """

    def __init__(
        self,
        job_to_label_mapping=None,
        tf_server_port=8470,
        rpc_layer="grpc",
        override_client=None,
        executable_location=ExecutableLocation.WITHIN_CLUSTER,
    ):
        if override_client is None:
            if not isinstance(executable_location, ExecutableLocation):
                raise ValueError(
                    "executable_location must be a KubernetesExecutableLocation"
                )
            raise ImportError(_NO_KUBERNETES)
        self._labels = job_to_label_mapping or {"worker": ["job-name=tensorflow"]}
        self._port = tf_server_port
        self._rpc_layer = rpc_layer
        self._client = override_client

    def cluster_spec(self):
        """The ClusterSpec of the pods now, in the order of their names; RuntimeError where
        one does not run."""
        cluster = {}
        for job, selectors in self._labels.items():
            addresses = []
            for selector in selectors:
                found = self._client.list_pod_for_all_namespaces(
                    label_selector=selector
                )
                for pod in sorted(found.items, key=lambda pod: pod.metadata.name):
                    if pod.status.phase != "Running":
                        raise RuntimeError(
                            f'Pod "{pod.metadata.name}" is not running; phase: '
                            f'"{pod.status.phase}"'
                        )
                    addresses.append(f"{pod.status.host_ip}:{self._port}")
            cluster[job] = addresses
        return ClusterSpec(cluster)

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The address of a task, "" where none is named and none was set."""
        return self._address(task_type, task_id, rpc_layer) or ""


class GCEClusterResolver(WithLayer):
    """Makes a cluster of the instances of a group in Google Compute Engine.

    Args:
      project: the project.
      zone: the zone.
      instance_group: the group.
      port: the port of every instance.
      task_type: the job that the instances are; it cannot be set later.
      task_id: the number of this process.
      rpc_layer: the protocol that addresses begin with.
      credentials: kept for a service that is made; there is none here.
      service: an object of the Compute API, as googleapiclient builds it; it is needed.

    Raises:
      ImportError: without a service.
    """

    def __init__(
        self,
        project,
        zone,
        instance_group,
        port,
        task_type="worker",
        task_id=0,
        rpc_layer="grpc",
        credentials="default",
        service=None,
    ):
        if service is None:
            raise ImportError(
                "googleapiclient must be installed before using the GCE cluster resolver"
            )
        self._of = {"project": project, "zone": zone}
        self._instance_group = instance_group
        self._port = port
        self._task_type, self._task_id = task_type, task_id
        self._rpc_layer = rpc_layer
        self._credentials = credentials
        self._service = service

    def _instances(self):
        """The names of the instances that run, sorted."""
        groups = self._service.instanceGroups()
        asked = groups.listInstances(
            instanceGroups=self._instance_group,
            body={"instanceState": "RUNNING"},
            orderBy="name",
            **self._of,
        )
        names = []
        while asked is not None:
            answer = asked.execute()
            names += [i["instance"].split("/")[-1] for i in answer.get("items", ())]
            asked = groups.listInstances_next(
                previous_request=asked, previous_response=answer
            )
        return sorted(names)

    def cluster_spec(self):
        """The ClusterSpec of the instances that run now."""
        addresses = []
        for name in self._instances():
            found = self._service.instances().get(instance=name, **self._of).execute()
            address = found["networkInterfaces"][0]["networkIP"]
            addresses.append(f"{address}:{self._port}")
        return ClusterSpec({self._task_type: addresses})

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The address of a task, of this process's where none is named."""
        return self._address(task_type, task_id, rpc_layer) or ""

    @property
    def task_type(self):
        """The job of the instances; it cannot be set (RuntimeError)."""
        return self._task_type

    @task_type.setter
    def task_type(self, task_type):
        raise RuntimeError(
            "You cannot reset the task_type of the GCEClusterResolver after it has been "
            "created."
        )


class TPUClusterResolver(WithLayer):
    """Would find a TPU: there are none, so that making one is an error: ValueError without
    a name, UnimplementedError with one."""

    def __init__(
        self,
        tpu=None,
        zone=None,
        project=None,
        job_name="worker",
        coordinator_name=None,
        coordinator_address=None,
        credentials="default",
        service=None,
        discovery_url=None,
    ):
        del zone, project, job_name, coordinator_name, coordinator_address
        del credentials, service, discovery_url
        if not tpu:
            raise ValueError("Please provide a TPU Name to connect to.")
        raise errors.UnimplementedError._of(
            f"TPUClusterResolver: there are no TPUs, so {tpu!r} cannot be connected to"
        )

    def cluster_spec(self):
        """Of no TPU."""
        raise NotImplementedError("there are no TPUs")

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """Of no TPU."""
        raise NotImplementedError("there are no TPUs")
