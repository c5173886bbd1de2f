"""tf.queue: queues of tuples of tensors."""

import contextlib

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.context.properties import read_only
from headrace.framework import conversion, devices, dtypes, name_scopes, tensor_shape
from headrace.framework import tensor as tensors
from headrace.framework.settings import random_seed
from headrace.framework.support import signatures
from headrace.ops import array_ops


def _raw(op, **arguments):
    return _headrace.raw_op(op)(**arguments)


def effect(op, **arguments):
    """Calls an op without results: the operation, where it is of a graph."""
    _raw(op, **arguments)
    return stack.last_operation()


def _name_of(handle):
    """The name of a handle's operation; "Empty" where it has none."""
    return handle.op.name if tensors.is_symbolic_tensor(handle) else "Empty"


class QueueBase:
    """A queue by its handle: what can be put in and taken out."""

    @signatures.keeping("dtypes, shapes, names, queue_ref")
    def __init__(self):
        # The last part of the name: what the names of its operations begin with.
        self._name = self.name.split("/")[-1]

    queue_ref = read_only("_queue_ref", "The handle of the queue: a scalar tensor.")

    @property
    def name(self):
        """The name of the queue's operation: a str."""
        return _name_of(self._queue_ref)

    dtypes = read_only("_dtypes", "A list of the dtypes of an element's components.")
    shapes = read_only(
        "_shapes", "A list of the static shapes of an element's components."
    )
    names = read_only(
        "_names",
        "A list of the components' names; without names elements are no dicts.",
    )

    def _components(self, vals, many):
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if set(vals) != set(self._names):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of Queue.  "
                    f"Dictionary: {sorted(vals)},Queue: {sorted(self._names)}"
                )
            vals = [vals[n] for n in self._names]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        elif not isinstance(vals, (list, tuple)):
            vals = [vals]
        if len(vals) != len(self._dtypes):
            raise ValueError(
                f"Expected {len(self._dtypes)} components, one a dtype of the queue, "
                f"but got {len(vals)}"
            )
        out = [
            conversion.convert_to_tensor(value, dtype, name=f"component_{i}")
            for i, (value, dtype) in enumerate(zip(vals, self._dtypes))
        ]
        rows = tensor_shape.Dimension(None)
        for tensor, shape in zip(out, self._shapes):
            have = tensor.shape
            if many:
                dims = have.with_rank_at_least(1).dims
                rows = rows.merge_with(dims[0]) if dims else rows
                have = have[1:]
            have.assert_is_compatible_with(shape)
        return out

    def _put(self, op, suffix, vals, many, name):
        with name_scopes.name_scope(name or f"{self._name}_{suffix}") as scope:
            return effect(
                op,
                handle=self._queue_ref,
                components=self._components(vals, many),
                name=scope,
            )

    def enqueue(self, vals, name=None):
        """Adds one tuple, when there is room."""
        return self._put("QueueEnqueueV2", "enqueue", vals, False, name)

    def enqueue_many(self, vals, name=None):
        """Adds the rows of a tuple, one after another."""
        return self._put("QueueEnqueueManyV2", "EnqueueMany", vals, True, name)

    def _result(self, tensors):
        if self._names:
            return dict(zip(self._names, tensors))
        return tensors[0] if len(tensors) == 1 else list(tensors)

    def _take(self, op, name, suffix, **arguments):
        tensors = _raw(
            op,
            handle=self._queue_ref,
            component_types=self._dtypes,
            name=f"{self._name}_{suffix}" if name is None else name,
            **arguments,
        )
        return self._result(tensors)

    def dequeue(self, name=None):
        """Takes one tuple, when there is one."""
        return self._take("QueueDequeueV2", name, "Dequeue")

    def dequeue_many(self, n, name=None):
        """Takes `n` tuples, stacked."""
        return self._take("QueueDequeueManyV2", name, "DequeueMany", n=n)

    def dequeue_up_to(self, n, name=None):
        """Takes `n` tuples, or fewer once the queue is closed."""
        return self._take("QueueDequeueUpToV2", name, "DequeueUpTo", n=n)

    def close(self, cancel_pending_enqueues=False, name=None):
        """Ends enqueuing."""
        return effect(
            "QueueCloseV2",
            handle=self._queue_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._name}_Close",
        )

    def is_closed(self, name=None):
        """Whether the queue is closed."""
        name = name or f"{self._name}_Is_Closed"
        return raw.QueueIsClosedV2(self._queue_ref, name=name)

    def size(self, name=None):
        """The number of tuples."""
        name = name or f"{self._name}_Size"
        return raw.QueueSizeV2(self._queue_ref, name=name)

    @staticmethod
    def from_list(index, queues):
        """The queue of a list that `index` names."""
        if not queues or not all(isinstance(q, QueueBase) for q in queues):
            raise TypeError("A list of queues expected")
        first = queues[0]
        if any(q.dtypes != first.dtypes for q in queues):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(q.names != first.names for q in queues):
            raise TypeError("Queues do not have matching component names.")
        shapes = [
            tensor_shape.TensorShape(None) if any(s != row[0] for s in row) else row[0]
            for row in zip(*(q.shapes for q in queues))
        ]
        ref = array_ops.gather(array_ops.stack([q.queue_ref for q in queues]), index)
        return QueueBase(first.dtypes, shapes, first.names, ref)


class _Queue(QueueBase):
    """A queue that an op of its own makes."""

    def _make(self, op, given, shapes, names, shared_name, name, **further):
        types = _types(given)
        known, shapes = _shapes(shapes, len(types))
        self._check_shapes(known)
        with self._place():
            handle = _raw(
                op,
                component_types=types,
                shapes=known,
                shared_name=shared_name or "",
                name=name,
                **further,
            )
        if op == "PriorityQueueV2":
            types = [dtypes.int64] + types
            shapes = [tensor_shape.TensorShape([])] + shapes
        super().__init__(types, shapes, _names(names, types), handle)

    @staticmethod
    def _place():
        """Where the op that makes the queue goes."""
        return contextlib.nullcontext()

    def _check_shapes(self, shapes):
        if not all(s.is_fully_defined() for s in shapes):
            raise ValueError(f"All shapes must be fully defined: {shapes}")


def _takes(op, text):
    """A constructor of those parameters for queues of an op."""

    def begin(self, shapes, names, shared_name, name, **given):
        components = given.pop("types" if "types" in given else "dtypes")
        self._make(op, components, shapes, names, shared_name, name, **given)

    return signatures.constructor(text, begin)


class FIFOQueue(_Queue):
    """First in, first out. One that a traced function makes is made once, outside of it:
    no other kind is, as in TensorFlow."""

    __init__ = _takes(
        "FIFOQueueV2",
        "capacity, dtypes, shapes=None, names=None, shared_name=None, name='fifo_queue'",
    )

    @staticmethod
    @contextlib.contextmanager
    def _place():
        with stack.init_scope(), devices.device("CPU"):
            yield


class PaddingFIFOQueue(_Queue):
    """First in, first out; tensors taken out together are filled up with zeros."""

    __init__ = _takes(
        "PaddingFIFOQueueV2",
        "capacity, dtypes, shapes, names=None, shared_name=None, "
        "name='padding_fifo_queue'",
    )

    def _make(self, op, given, shapes, *names, **further):
        if shapes is None or any(s is None for s in shapes):
            raise ValueError(
                "When providing partial shapes, a list of shapes must be provided."
            )
        if len(shapes) != len(_types(given)):
            raise ValueError(
                "Shapes must be provided for all components, but received "
                f"{len(_types(given))} dtypes and {len(shapes)} shapes."
            )
        super()._make(op, given, shapes, *names, **further)

    def _check_shapes(self, shapes):
        if any(s.rank is None for s in shapes):
            raise ValueError(f"All shapes must have a defined rank: {shapes}")


class RandomShuffleQueue(_Queue):
    """Gives tuples in random order, of at least `min_after_dequeue` others."""

    __init__ = _takes(
        "RandomShuffleQueueV2",
        "capacity, min_after_dequeue, dtypes, shapes=None, names=None, seed=None, "
        "shared_name=None, name='random_shuffle_queue'",
    )

    def _make(self, op, *given, seed, **further):
        seed, seed2 = (s or 0 for s in random_seed.get_seed(seed))
        super()._make(op, *given, seed=seed, seed2=seed2, **further)


class PriorityQueue(_Queue):
    """Gives the tuple with the least priority, an integer before its components."""

    __init__ = _takes(
        "PriorityQueueV2",
        "capacity, types, shapes=None, names=None, shared_name=None, "
        "name='priority_queue'",
    )


def _types(given):
    given = given if isinstance(given, (list, tuple)) else [given]
    return [dtypes.as_dtype(d) for d in given]


def _shapes(given, count):
    """(the op's attribute, a shape a component)."""
    if given is None:
        return [], [tensor_shape.TensorShape(None)] * count
    kinds = (list, tuple, tensor_shape.TensorShape)
    one = isinstance(given, tensor_shape.TensorShape) or not given
    if one or not isinstance(given[0], kinds):
        given = [given]
    shapes = [tensor_shape.TensorShape(s) for s in given]
    if len(shapes) != count:
        raise ValueError(
            f"Queue shapes must have the same length as dtypes, received "
            f"len(shapes)={len(shapes)}, len(dtypes)={count}"
        )
    return shapes, shapes


def _names(given, types):
    if given is None:
        return None
    given = given if isinstance(given, (list, tuple)) else [given]
    if len(given) != len(types):
        raise ValueError(
            f"List of names must have the same length as the list of dtypes, "
            f"received len(names)={len(given)},len(dtypes)={len(types)}"
        )
    return list(given)
