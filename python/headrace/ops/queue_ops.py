"""tf.queue: queues of tuples of tensors."""

from headrace._load import _headrace
from headrace.framework import conversion, dtypes, tensor_shape


def _raw(op, **arguments):
    return _headrace.raw_op(op)(**arguments)


class QueueBase:
    """A queue by its handle: what can be put in and taken out."""

    def __init__(self, dtypes_, shapes, names, queue_ref, name):
        self._dtypes = dtypes_
        self._shapes = shapes
        self._names = names
        self._queue_ref = queue_ref
        self._name = name

    queue_ref = property(lambda self: self._queue_ref)
    name = property(lambda self: self._name)
    dtypes = property(lambda self: self._dtypes)
    shapes = property(lambda self: self._shapes)
    names = property(lambda self: self._names)

    def _components(self, vals, many):
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if set(vals) != set(self._names):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of Queue.  "
                    f"Dictionary: {sorted(vals)}, Queue: {sorted(self._names)}"
                )
            vals = [vals[n] for n in self._names]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        elif not isinstance(vals, (list, tuple)):
            vals = [vals]
        out = []
        for value, dtype, shape in zip(vals, self._dtypes, self._shapes):
            tensor = conversion.convert_to_tensor(value, dtype)
            have = tensor.shape[1:] if many else tensor.shape
            have.assert_is_compatible_with(shape)
            out.append(tensor)
        return out

    def enqueue(self, vals, name=None):
        """Adds one tuple, when there is room."""
        return _raw(
            "QueueEnqueueV2",
            handle=self._queue_ref,
            components=self._components(vals, many=False),
            name=name,
        )

    def enqueue_many(self, vals, name=None):
        """Adds the rows of a tuple, one after another."""
        return _raw(
            "QueueEnqueueManyV2",
            handle=self._queue_ref,
            components=self._components(vals, many=True),
            name=name,
        )

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
        n = conversion.convert_to_tensor(n, dtypes.int32)
        return self._take("QueueDequeueManyV2", name, "DequeueMany", n=n)

    def dequeue_up_to(self, n, name=None):
        """Takes `n` tuples, or fewer once the queue is closed."""
        n = conversion.convert_to_tensor(n, dtypes.int32)
        return self._take("QueueDequeueUpToV2", name, "DequeueUpTo", n=n)

    def close(self, cancel_pending_enqueues=False, name=None):
        """Ends enqueuing."""
        return _raw(
            "QueueCloseV2",
            handle=self._queue_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name,
        )

    def is_closed(self, name=None):
        """Whether the queue is closed."""
        return _raw("QueueIsClosedV2", handle=self._queue_ref, name=name)

    def size(self, name=None):
        """The number of tuples."""
        return _raw("QueueSizeV2", handle=self._queue_ref, name=name)


class FIFOQueue(QueueBase):
    """First in, first out."""

    def __init__(
        self,
        capacity,
        dtypes,
        shapes=None,
        names=None,
        shared_name=None,
        name="fifo_queue",
    ):
        types = _types(dtypes)
        known, shapes = _shapes(shapes, len(types))
        handle = _raw(
            "FIFOQueueV2",
            component_types=types,
            shapes=known,
            capacity=capacity,
            shared_name=shared_name or "",
            name=name,
        )
        shown = "Empty" if _headrace.is_eager() else handle.op.name.split("/")[-1]
        super().__init__(types, shapes, _names(names, types), handle, shown)


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
            f"Queue shapes must have the same length as dtypes, received {len(shapes)} "
            f"shapes, {count} dtypes"
        )
    return shapes, shapes


def _names(given, types):
    if given is None:
        return None
    given = given if isinstance(given, (list, tuple)) else [given]
    if len(given) != len(types):
        raise ValueError(
            f"List of queue names must have the same length as the list of dtypes, "
            f"received {len(given)} names,{len(types)} dtypes"
        )
    return list(given)
