"""Strategies of several workers, and what coordinates them."""

from headrace.context import errors
from headrace.distribute import strategy
from headrace.distribute.multi_worker import CollectiveAllReduceExtended
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
      cluster_resolver: a ClusterResolver; by default what TF_CONFIG, else a launcher's
        variables say.
      communication_options: CommunicationOptions.

    Raises:
      ValueError: for other options, and where the resolver does not say which worker this
        is.
      errors.OpError: where this worker cannot listen at its address.
    """

    _Extended = CollectiveAllReduceExtended

    def __init__(self, cluster_resolver=None, communication_options=None):
        options = Options() if communication_options is None else communication_options
        if not isinstance(options, Options):
            raise ValueError(
                "communication_options must be an instance of "
                "tf.distribute.experimental.CommunicationOptions"
            )
        given = [self._local_devices] if self._local_devices else []
        super().__init__(self._Extended(self, cluster_resolver, options, *given))

    _local_devices = None  # the first one

    @classmethod
    def _from_local_devices(cls, devices, communication_options=None):
        """The strategy of a worker on several of its devices."""
        made = cls.__new__(cls)
        made._local_devices = list(devices)
        made.__init__(communication_options=communication_options)
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


def get_loss_reduction():
    """How losses of replicas become one: by their sum, a ReduceOp."""
    return ReduceOp.SUM
