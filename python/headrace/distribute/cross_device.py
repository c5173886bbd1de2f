"""Ways to bring the values of replicas together: one process has them all in memory."""

from headrace import _api as tf
from headrace.context import errors
from headrace.distribute import values
from headrace.distribute.options import ReduceOp, reduce_op_of
from headrace.framework.settings import config

_BAD_DESTINATION = (
    "destinations must be one of a `DistributedValues` object, a tf.Variable object, or a "
    "device string."
)


def check_destinations(destinations):
    """Whether it says where values go: a distributed value, a variable, or a device."""
    return isinstance(destinations, (str, tf.Variable, tf.Tensor)) or (
        values.is_distributed(destinations)
    )


def _copies_at(value, destinations):
    """A value where it is wanted: for each replica, or once."""
    if not values.is_distributed(destinations):
        return value
    count = len(values.values_of(destinations))
    # Each replica has a tensor of its own, so that results of replicas stay several.
    return values.Mirrored([value, *(_copied(value) for _ in range(count - 1))])


def _copied(value):
    if isinstance(value, tf.IndexedSlices):
        return tf.IndexedSlices(value.values, value.indices, value.dense_shape)
    return tf.identity(value)


def of_plain_value(op, value, destinations, replicas):
    """What all replicas gave alike, reduced. ValueError where that is not known."""
    if isinstance(value, (int, float)) and value == 0:
        return value
    if value is None:
        if op == ReduceOp.MEAN:
            return None
    elif op == ReduceOp.MEAN or replicas == 1:
        return _copies_at(value, destinations)
    raise ValueError(
        f"A non-DistributedValues value {value!s} cannot be reduced with the given reduce "
        f"op {op}."
    )


def _total(parts):
    """The sum, in the order of replicas."""
    if all(isinstance(p, tf.IndexedSlices) for p in parts):
        if len(parts) == 1:
            return parts[0]
        return tf.IndexedSlices(
            tf.concat([p.values for p in parts], 0),
            tf.concat([tf.convert_to_tensor(p.indices) for p in parts], 0),
            parts[0].dense_shape,
        )
    return tf.add_n([tf.convert_to_tensor(p) for p in parts])


def _divided(total, count):
    if isinstance(total, tf.IndexedSlices):
        return tf.IndexedSlices(total.values / count, total.indices, total.dense_shape)
    return total / tf.cast(count, total.dtype)


class CrossDeviceOps:
    """Base of the ways: subclasses have reduce_implementation, batch_reduce_implementation
    and broadcast_implementation."""

    def __init__(self):
        pass

    @property
    def _num_between_graph_workers(self):
        return 1

    @staticmethod
    def _check(op, destinations):
        if not check_destinations(destinations):
            raise ValueError(_BAD_DESTINATION)
        if op not in (ReduceOp.SUM, ReduceOp.MEAN):
            raise ValueError("`reduce_op` must be Reduce.SUM or Reduce.MEAN.")

    def reduce(self, reduce_op, per_replica_value, destinations, options=None):
        """The sum or mean of a PerReplica value, where it is wanted.

        Args:
          reduce_op: a ReduceOp.
          per_replica_value: PerReplica, or a tensor for one replica.
          destinations: a distributed value, a variable, or a device.
          options: CommunicationOptions, or None.

        Raises:
          ValueError: for another ReduceOp or destination.
        """
        if not check_destinations(destinations):
            raise ValueError(_BAD_DESTINATION)
        if not values.is_distributed(per_replica_value):
            per_replica_value = values.PerReplica(
                [tf.convert_to_tensor(per_replica_value)]
            )
        self._check(reduce_op, destinations)
        return self.reduce_implementation(
            reduce_op, per_replica_value, destinations, options
        )

    def _reduce_any(self, op, value, destinations):
        return self.reduce(op, value, destinations)

    def batch_reduce(self, reduce_op, value_destination_pairs, options=None):
        """A list of what reduce() gives for each (value, destinations)."""
        pairs = list(value_destination_pairs)
        op = reduce_op_of(reduce_op)  # a name will do, as upstream
        for _, destinations in pairs:
            self._check(op, destinations)
        return self.batch_reduce_implementation(op, pairs, options)

    def broadcast(self, tensor, destinations):
        """The value where it is wanted: Mirrored for several replicas."""
        if not check_destinations(destinations):
            raise ValueError(_BAD_DESTINATION)
        return self.broadcast_implementation(tensor, destinations)

    def reduce_implementation(
        self, reduce_op, per_replica_value, destinations, options
    ):
        """What reduce() gives; subclasses define it."""
        raise NotImplementedError("_reduce method must be implemented in descendants.")

    def batch_reduce_implementation(self, reduce_op, value_destination_pairs, options):
        """What batch_reduce() gives; subclasses define it."""
        raise NotImplementedError(
            "batch_reduce_implementation method must be implemented in descendants."
        )

    def broadcast_implementation(self, tensor, destinations):
        """What broadcast() gives."""
        return _copies_at(tensor, destinations)

    def _gather(self, per_replica_value, destinations, axis):
        parts = values.values_of(per_replica_value)
        if any(isinstance(p, tf.IndexedSlices) for p in parts):
            raise NotImplementedError(
                "gather/all_gather does not support IndexedSlices"
            )
        parts = [tf.convert_to_tensor(p) for p in parts]
        rank = parts[0].shape.rank
        if rank is not None and not -rank <= axis < max(rank, 0):
            raise ValueError(
                f"gather: there is no axis {axis} in values of {rank} dimensions"
            )
        return _copies_at(tf.concat(parts, axis), destinations)


class ReductionToOneDevice(CrossDeviceOps):
    """Adds up on one device, by `accumulation_fn`, a function of the list of values: their
    sum by default; then gives out copies. All devices share this machine's memory, so
    that `reduce_to_device` decides where additions run alone."""

    def __init__(self, reduce_to_device=None, accumulation_fn=None):
        self.reduce_to_device = reduce_to_device
        self.accumulation_fn = accumulation_fn or _total
        super().__init__()

    def reduce_implementation(
        self, reduce_op, per_replica_value, destinations, options=None
    ):
        """What reduce() gives."""
        parts = list(values.values_of(per_replica_value))
        with tf.device(self.reduce_to_device):
            total = self.accumulation_fn(parts)
            if reduce_op == ReduceOp.MEAN:
                total = _divided(total, len(parts))
        return _copies_at(total, destinations)

    def batch_reduce_implementation(self, reduce_op, value_destination_pairs, options):
        """What batch_reduce() gives."""
        return [
            self.reduce_implementation(reduce_op, v, d)
            for v, d in value_destination_pairs
        ]


class AllReduceCrossDeviceOps(ReductionToOneDevice):
    """Each device gets the sum. `num_packs` says how many pieces would travel between
    devices; here nothing travels."""

    _name = "all-reduce"

    def __init__(self, num_packs=1):
        if num_packs < 0:
            raise ValueError(
                f"{self._name} requires num_packs >= 0, but {num_packs} is specified"
            )
        self._num_packs = num_packs
        super().__init__()


class HierarchicalCopyAllReduce(AllReduceCrossDeviceOps):
    """Sums by copies in two steps on machines of several GPUs; on CPUs the plain sum."""

    _name = "HierarchicalCopy"

    def __init__(self, num_packs=1):
        super().__init__(num_packs)


class NcclAllReduce(AllReduceCrossDeviceOps):
    """Sums by NCCL, which is for GPUs: several values of devices without one are an
    InvalidArgumentError. In MirroredStrategy CPUs' values are summed plainly."""

    _name = "NCCL all-reduce"

    def __init__(self, num_packs=1):
        super().__init__(num_packs)

    def batch_reduce_implementation(self, reduce_op, value_destination_pairs, options):
        """What batch_reduce() gives."""
        several = any(len(values.values_of(v)) > 1 for v, _ in value_destination_pairs)
        if several and not config.list_logical_devices("GPU"):
            raise errors.InvalidArgumentError._of(
                "No OpKernel was registered to support Op 'NcclAllReduce': there is no GPU"
            )
        return super().batch_reduce_implementation(
            reduce_op, value_destination_pairs, options
        )
