"""Small values of tf.distribute: ways to reduce, options, contexts of inputs."""

import enum

from headrace.context.properties import read_only
from headrace.framework import variables
from headrace.framework.support import signatures


class ReduceOp(enum.Enum):
    """How values of replicas become one: their sum, or their mean."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation):
        """The ReduceOp of a VariableAggregation. ValueError where there is none."""
        found = {
            variables.VariableAggregation.SUM: ReduceOp.SUM,
            variables.VariableAggregation.MEAN: ReduceOp.MEAN,
        }.get(aggregation)
        if found is None:
            raise ValueError(
                "Could not convert from `tf.VariableAggregation` "
                f"{aggregation} to`tf.distribute.ReduceOp` type"
            )
        return found


def reduce_op_of(given):
    """A ReduceOp, which may be given as its name. ValueError for another."""
    return ReduceOp(given.upper()) if isinstance(given, str) else given


class InputReplicationMode(enum.Enum):
    """Whether a worker has one pipeline for its replicas, or each replica its own."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class InputContext:
    """What a function that makes datasets is told: of how many pipelines it makes which,
    and how many replicas there are."""

    __slots__ = ("_num_input_pipelines", "_input_pipeline_id", "_num_replicas_in_sync")

    def __init__(
        self, num_input_pipelines=1, input_pipeline_id=0, num_replicas_in_sync=1
    ):
        self._num_input_pipelines = num_input_pipelines
        self._input_pipeline_id = input_pipeline_id
        self._num_replicas_in_sync = num_replicas_in_sync

    num_replicas_in_sync = read_only(
        "_num_replicas_in_sync", "How many replicas compute a step."
    )
    input_pipeline_id = read_only("_input_pipeline_id", "Which pipeline this is.")
    num_input_pipelines = read_only(
        "_num_input_pipelines", "How many pipelines there are."
    )

    def get_per_replica_batch_size(self, global_batch_size):
        """A replica's share of a global batch. ValueError where it cannot be divided."""
        if global_batch_size % self._num_replicas_in_sync != 0:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size!r} is not divisible by "
                f"`num_replicas_in_sync` {self._num_replicas_in_sync!r} "
            )
        return global_batch_size // self._num_replicas_in_sync

    def __str__(self):
        return (
            f"tf.distribute.InputContext(input pipeline id {self._input_pipeline_id}, "
            f"total: {self._num_input_pipelines})"
        )


class ValueContext:
    """What a function that makes values of replicas is told: for which replica, and how
    many there are."""

    __slots__ = ("_replica_id_in_sync_group", "_num_replicas_in_sync")

    def __init__(self, replica_id_in_sync_group=0, num_replicas_in_sync=1):
        self._replica_id_in_sync_group = replica_id_in_sync_group
        self._num_replicas_in_sync = num_replicas_in_sync

    num_replicas_in_sync = read_only(
        "_num_replicas_in_sync", "How many replicas compute a step."
    )
    replica_id_in_sync_group = read_only(
        "_replica_id_in_sync_group", "The number of the replica."
    )

    def __str__(self):
        return (
            f"tf.distribute.ValueContext(replica id {self._replica_id_in_sync_group},  "
            f"total replicas in sync: {self._num_replicas_in_sync})"
        )


class RunOptions(
    signatures.tuple_of(
        "RunOptions",
        "experimental_enable_dynamic_batch_size=True, "
        "experimental_bucketizing_dynamic_shape=False, experimental_xla_options=None",
    )
):
    """Options of Strategy.run, all of TPUs and XLA: they are kept, and change nothing."""


class InputOptions(
    signatures.tuple_of(
        "InputOptions",
        "experimental_fetch_to_device=None, "
        "experimental_replication_mode=PER_WORKER, "
        "experimental_place_dataset_on_device=False, "
        "experimental_per_replica_buffer_size=1",
        PER_WORKER=InputReplicationMode.PER_WORKER,
    )
):
    """How datasets are distributed. All devices share this machine's memory, so that
    fetching to devices and buffers there change nothing."""

    @classmethod
    def _check(cls, given):
        if given["experimental_fetch_to_device"] is None:
            given["experimental_fetch_to_device"] = True


class CommunicationImplementation(enum.Enum):
    """What carries collectives between workers."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class Options:
    """What collectives of several workers are told; of one process they change nothing.

    Args:
      bytes_per_pack: gradients are sent in packs of so many bytes; 0 leaves it open.
      timeout_seconds: how long a collective may take, None for no limit.
      implementation: a CommunicationImplementation, or its name.

    Raises:
      ValueError: for negative bytes, or another implementation.
    """

    def __init__(
        self,
        bytes_per_pack=0,
        timeout_seconds=None,
        implementation=CommunicationImplementation.AUTO,
    ):
        if bytes_per_pack < 0:
            raise ValueError(
                f"Argument `bytes_per_pack` must be >=0, Received {bytes_per_pack}."
            )
        if isinstance(implementation, str):
            implementation = CommunicationImplementation(implementation.upper())
        if not isinstance(implementation, CommunicationImplementation):
            raise ValueError(
                "`implementation` should be a "
                "`tf.distribute.experimental.CommunicationImplementation`."
            )
        self.bytes_per_pack = bytes_per_pack
        self.timeout_seconds = timeout_seconds
        self.implementation = implementation


class CommunicationOptions:
    """Makes the options of collectives; see their arguments."""

    def __new__(cls, *args, **kwargs):
        return Options(*args, **kwargs)


class CollectiveHints:
    """The options of collectives by their older name."""

    def __new__(cls, bytes_per_pack=0, timeout_seconds=None):
        return Options(bytes_per_pack, timeout_seconds)
