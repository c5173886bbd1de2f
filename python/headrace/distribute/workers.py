"""Strategies of several workers, and what coordinates them."""

from headrace.context import errors
from headrace.distribute import mirrored, strategy
from headrace.distribute.multi_worker import CollectiveAllReduceExtended
from headrace.distribute.resolver.tf_config import TFConfigClusterResolver
from headrace.distribute.options import CommunicationImplementation, Options, ReduceOp


def no_transport(what):
    """The error for what needs other processes."""
    return errors.UnimplementedError._of(
        f"{what}: the transport between processes is not there yet"
    )


class MultiWorkerMirroredStrategy(strategy.Strategy):
    """Trains on several workers, whose variables are copies of each other: each runs the
    same program, begins with the first one's values, and gradients are summed. A worker
    trains on its first device.

    Where one fails or ends, the others' next sums are an UnavailableError.

    Args:
      cluster_resolver: a ClusterResolver; what TF_CONFIG says by default.
      communication_options: CommunicationOptions.

    Raises:
      ValueError: for other options, and where the resolver does not say which worker this
        is.
      UnimplementedError: for NCCL between several workers.
      errors.OpError: where this worker cannot listen at its address.
    """

    def __init__(self, cluster_resolver=None, communication_options=None):
        options = Options() if communication_options is None else communication_options
        if not isinstance(options, Options):
            raise ValueError(
                "communication_options must be an instance of "
                "tf.distribute.experimental.CommunicationOptions"
            )
        super().__init__(CollectiveAllReduceExtended(self, cluster_resolver, options))

    @classmethod
    def _from_local_devices(cls, devices, communication_options=None):
        """The strategy of a worker that is alone, on several of its devices."""
        made = cls(communication_options=communication_options)
        options = made._extended._communication_options
        made._extended = CollectiveAllReduceExtended(made, None, options, devices)
        return made


def _options_of(communication):
    if not isinstance(communication, CommunicationImplementation):
        raise ValueError(
            "Argument `implementation` must be instance of "
            "`tf.distribute.experimental.CommunicationImplementation`."
        )
    return Options(implementation=communication)


class ExperimentalMultiWorkerMirroredStrategy(MultiWorkerMirroredStrategy):
    """MultiWorkerMirroredStrategy with its older parameters: `communication`, a
    CommunicationImplementation, and the ClusterResolver."""

    def __init__(
        self, communication=CommunicationImplementation.AUTO, cluster_resolver=None
    ):
        super().__init__(cluster_resolver, _options_of(communication))


class MultiWorkerMirroredStrategyV1(strategy.StrategyV1):
    """The MultiWorkerMirroredStrategy of TensorFlow 1."""

    def __init__(
        self, communication=CommunicationImplementation.AUTO, cluster_resolver=None
    ):
        options = _options_of(communication)
        super().__init__(CollectiveAllReduceExtended(self, cluster_resolver, options))


class ParameterServerStrategy(strategy.Strategy):
    """Variables lie on servers, and workers train when a ClusterCoordinator tells them.

    Args:
      cluster_resolver: a ClusterResolver whose cluster has workers and servers, "ps".
      variable_partitioner: a Partitioner of variables, or None.

    Raises:
      ValueError: for a cluster that lacks one of these, or has two chiefs.
      UnimplementedError: else.
    """

    def __init__(self, cluster_resolver, variable_partitioner=None):
        del variable_partitioner
        spec = cluster_resolver.cluster_spec()
        if not spec:
            raise ValueError(
                "Cluster spec must be non-empty in "
                "`tf.distribute.cluster_resolver.ClusterResolver`."
            )
        counts = {job: spec.num_tasks(job) for job in spec.jobs}
        if counts.get("chief", 0) > 1:
            raise ValueError("There must be at most one 'chief' job.")
        for job in ("worker", "ps"):
            if not counts.get(job):
                raise ValueError(f"There must be at least one {job}.")
        raise no_transport("ParameterServerStrategy")


class ParameterServerStrategyV1(strategy.StrategyV1):
    """The ParameterServerStrategy of TensorFlow 1: of a process that is alone, variables
    lie on its first CPU. UnimplementedError for a cluster of several tasks."""

    def __init__(self, cluster_resolver=None):
        resolver = cluster_resolver or TFConfigClusterResolver()
        spec = resolver.cluster_spec()
        if sum(map(spec.num_tasks, spec.jobs)) > 1:
            raise no_transport("ParameterServerStrategy")
        devices = strategy.all_devices()[:1]
        super().__init__(mirrored.CentralStorageExtended(self, devices, "/cpu:0"))


class RemoteValue:
    """What a function that a coordinator has scheduled will give."""

    def fetch(self):
        """The value, waited for, as NumPy has it."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def get(self):
        """The value, waited for: a tensor."""
        raise NotImplementedError("Must be implemented in subclasses.")


class PerWorkerValue:
    """A RemoteValue for each worker. AssertionError for other values."""

    def __init__(self, values):
        for value in values:
            if not isinstance(value, RemoteValue):
                raise AssertionError(
                    "`PerWorkerValues` should only take `RemoteValue`s."
                )
        self._values = tuple(values)


class ClusterCoordinator:
    """Schedules functions on the workers of a ParameterServerStrategy.

    Raises:
      AttributeError: for another strategy.
      UnimplementedError: else.
    """

    def __init__(self, strategy):
        strategy._cluster_coordinator  # noqa: B018  (others have none)
        raise no_transport("ClusterCoordinator")


def experimental_get_current_worker_index():
    """The number of the worker that runs this. RuntimeError where no worker does."""
    raise RuntimeError(
        "Cannot retrieve the worker index. `get_worker_idx_and_num_workers` should be "
        "called from within a tf.function being executed on a worker. This method should "
        "only be called from either a dataset_fn that is passed into "
        "`ClusterCoordinator.create_per_worker_dataset`, or a tf.function that is passed "
        "into `ClusterCoordinator.schedule`."
    )


def get_loss_reduction():
    """How losses of replicas become one: by their sum, a ReduceOp."""
    return ReduceOp.SUM
