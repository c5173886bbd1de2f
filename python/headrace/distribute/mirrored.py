"""Strategies of one process: OneDevice, Mirrored, CentralStorage."""

from headrace import _api as tf
from headrace.context import strategies
from headrace.context.properties import read_only
from headrace.distribute import strategy
from headrace.distribute.options import ValueContext
from headrace.distribute.variables import MirroredVariable


class OneDeviceExtended(strategy.StrategyExtended):
    """Everything lies on one device: plain variables, one replica."""

    def __init__(self, container_strategy, device):
        super().__init__(container_strategy)
        self._devices = (strategy.canonical(device),)
        self._parameter_device = self._devices[0]

    def _create_variable(self, next_creator, **kwargs):
        kwargs = self._checked(kwargs)
        mode = strategies.Mode(self._container_strategy(), None, 0)
        with strategies.entering(mode), tf.device(self._devices[0]):
            made = next_creator(**kwargs)
        made._distribute_strategy = self._container_strategy()
        return made

    def _reduce_to(self, op, value, destinations):
        return value

    def _distribute_values(self, value_fn):
        return value_fn(ValueContext())

    def _check_input_of_each_replica(self):
        raise NotImplementedError(
            "InputReplicationMode.PER_REPLICA is only supported in "
            "`experimental_distribute_datasets_from_function` of "
            "tf.distribute.MirroredStrategy"
        )


class MirroredExtended(strategy.StrategyExtended):
    """A copy of each variable on each device, a replica on each."""

    _isolates_sessions = True

    def __init__(self, container_strategy, devices=None, cross_device_ops=None):
        super().__init__(container_strategy)
        names = [strategy.canonical(d) for d in devices or strategy.all_devices()]
        if len(set(names)) != len(names):
            raise AssertionError(
                f"No duplicates allowed in `devices` argument: {tuple(names)}"
            )
        self._devices = tuple(names)
        if cross_device_ops is not None:
            self._cross_device = cross_device_ops

    def _create_variable(self, next_creator, **kwargs):
        return self._mirrored(next_creator, kwargs)


_NO_AGGREGATION = (
    "You must specify an aggregation method to update a AggregatingVariable in Replica "
    "Context. You can do so by passing an explicit value for argument `aggregation` to "
    "tf.Variable(..), e.g. `tf.Variable(..., aggregation=tf.VariableAggregation.SUM)`: "
    "the values of replicas become one value of the variable that they share. Else update "
    "it in a merge_call() of tf.distribute.get_replica_context()."
)


class CentralStorageVariable(MirroredVariable):
    """A variable on one device, which all replicas read; writes in replicas go by its
    aggregation."""

    _is_shared = True  # replicas that are given it get it itself

    synchronization = read_only(
        "_primary.synchronization", "The VariableSynchronization it was made with."
    )

    def _which(self):
        mode = strategies.mode()
        inside = mode is not None and mode.strategy is self._distribute_strategy
        return 0 if inside and mode.copy is not None else None

    def _write_in_replica(self, copy, method, value, kwargs):
        if self._aggregation == tf.VariableAggregation.NONE:
            # Each replica would write the one variable again.
            raise ValueError(_NO_AGGREGATION)
        return super()._write_in_replica(copy, method, value, kwargs)


class CentralStorageExtended(strategy.StrategyExtended):
    """Variables lie on one device, replicas run on several."""

    _isolates_sessions = True

    def __init__(self, container_strategy, compute_devices, parameter_device):
        super().__init__(container_strategy)
        given = compute_devices or strategy.all_devices()
        self._devices = tuple(map(strategy.canonical, given))
        self._parameter_device = strategy.canonical(parameter_device or "/cpu:0")

    def _create_variable(self, next_creator, **kwargs):
        kwargs = self._checked(kwargs)
        mode = strategies.Mode(self._container_strategy(), None, 0)
        with strategies.entering(mode), self._place():
            copy = next_creator(**kwargs)
        if len(self._devices) == 1:
            copy._distribute_strategy = self._container_strategy()
            return copy
        aggregation = kwargs["aggregation"]
        own = self._container_strategy()
        made = CentralStorageVariable(own, [copy], aggregation)
        return strategy.collected(made, [copy])

    def _place(self):
        """A context in which a variable is made where it is to lie."""
        return tf.device(self._parameter_device)


class OneDeviceStrategy(strategy.Strategy):
    """Runs on one device, as other strategies would: for programs that take any.

    Args:
      device: its name.
    """

    def __init__(self, device):
        super().__init__(OneDeviceExtended(self, device))


class OneDeviceStrategyV1(strategy.StrategyV1):
    """The OneDeviceStrategy of TensorFlow 1."""

    def __init__(self, device):
        super().__init__(OneDeviceExtended(self, device))


class MirroredStrategy(strategy.Strategy):
    """Trains on several devices of this machine: each has a copy of every variable, and
    gradients are summed.

    Args:
      devices: their names; all GPUs by default, else all CPUs.
      cross_device_ops: the CrossDeviceOps that sum; None for a plain sum.

    Raises:
      AssertionError: for a device that is given twice.
      ValueError: for what is no name of a device.
    """

    def __init__(self, devices=None, cross_device_ops=None):
        super().__init__(MirroredExtended(self, devices, cross_device_ops))


class MirroredStrategyV1(strategy.StrategyV1):
    """The MirroredStrategy of TensorFlow 1."""

    def __init__(self, devices=None, cross_device_ops=None):
        super().__init__(MirroredExtended(self, devices, cross_device_ops))


class CentralStorageStrategy(strategy.Strategy):
    """Variables lie on one device, and several compute.

    Args:
      compute_devices: the names of the devices that compute; all GPUs by default, else
        all CPUs.
      parameter_device: the name of the device of variables; the first CPU by default.
    """

    def __init__(self, compute_devices=None, parameter_device=None):
        super().__init__(
            CentralStorageExtended(self, compute_devices, parameter_device)
        )

    @classmethod
    def _from_num_gpus(cls, num_gpus):
        """The strategy over the first `num_gpus` GPUs, or without any over a CPU."""
        devices = [f"/device:GPU:{i}" for i in range(num_gpus)] or ["/device:CPU:0"]
        return cls(devices)


class CentralStorageStrategyV1(strategy.StrategyV1):
    """The CentralStorageStrategy of TensorFlow 1."""

    def __init__(self, compute_devices=None, parameter_device=None):
        super().__init__(
            CentralStorageExtended(self, compute_devices, parameter_device)
        )
