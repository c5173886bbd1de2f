"""Strategies of TPUs: classes that programs ask for with isinstance, of which none is made."""

import enum
import typing

from headrace.context import errors
from headrace.distribute import strategy
from headrace.distribute.resolver.services import TPUClusterResolver


def _no_tpu(resolver):
    """The error of a strategy on the TPU that a resolver found, or without one."""
    if resolver is None:
        TPUClusterResolver()  # raises: nobody gave the name of a TPU
    return errors.UnimplementedError._of(
        f"TPUStrategy: there are no TPUs, so {type(resolver).__name__} finds none"
    )


class TPUStrategy(strategy.Strategy):
    """Would train on TPUs. There are none: making one is an error, as it is upstream on a
    machine without them, and no strategy is an instance.

    Args:
      tpu_cluster_resolver: what would find the TPU.
      experimental_device_assignment, experimental_spmd_xla_partitioning: which of its cores
        would run what.

    Raises:
      ValueError: without a resolver.
      UnimplementedError: with one.
    """

    def __init__(
        self,
        tpu_cluster_resolver=None,
        experimental_device_assignment=None,
        experimental_spmd_xla_partitioning=False,
    ):
        del experimental_device_assignment, experimental_spmd_xla_partitioning
        raise _no_tpu(tpu_cluster_resolver)


class ExperimentalTPUStrategy(strategy.Strategy):
    """The TPUStrategy of before 2.3, with `device_assignment`: an error, too."""

    def __init__(self, tpu_cluster_resolver=None, device_assignment=None):
        del device_assignment
        raise _no_tpu(tpu_cluster_resolver)


class TPUStrategyV1(strategy.StrategyV1):
    """The TPUStrategy of TensorFlow 1, with `steps_per_run`: an error, too."""

    def __init__(
        self, tpu_cluster_resolver=None, steps_per_run=None, device_assignment=None
    ):
        del steps_per_run, device_assignment
        raise _no_tpu(tpu_cluster_resolver)


class XLAOptions(typing.NamedTuple):
    """How a program for TPUs would be compiled: a description."""

    use_spmd_for_xla_partitioning: bool = True
    enable_xla_dynamic_padder: bool = True
    use_shardy_partitioner: bool = False


class HardwareFeature:
    """What TPUs have, by a message whose `embedding_feature` is 0, 1 or 2."""

    class EmbeddingFeature(enum.Enum):
        """How a TPU trains tables of embeddings: not at all, or by an interface."""

        UNSUPPORTED = "UNSUPPORTED"
        V1 = "V1"
        V2 = "V2"

    def __init__(self, tpu_hardware_feature_proto):
        self.tpu_hardware_feature_proto = tpu_hardware_feature_proto

    @property
    def embedding_feature(self):
        """The EmbeddingFeature of the message."""
        kinds = list(HardwareFeature.EmbeddingFeature)
        return kinds[self.tpu_hardware_feature_proto.embedding_feature]


def initialize_tpu_system(cluster_resolver=None):
    """Would start the TPUs that a resolver finds: ValueError without one,
    UnimplementedError with one: there are none."""
    raise _no_tpu(cluster_resolver)


def shutdown_tpu_system(cluster_resolver=None):
    """Would end the TPUs that a resolver finds: as initialize_tpu_system()."""
    raise _no_tpu(cluster_resolver)
