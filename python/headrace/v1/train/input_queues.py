"""tf.compat.v1.train's input pipelines of queues: producers and batches."""

import functools

from headrace import _api as tf
from headrace.framework import execution
from headrace.framework.support import signatures
from headrace.ops.io import queue_ops
from headrace.v1.train import queue_runner

_GRAPH_ONLY = (
    "Input pipelines based on Queues are not supported when eager execution is enabled. "
    "Please use tf.data to ingest data into your model instead."
)


def _refuse_eager():
    execution.only_in_graphs(_GRAPH_ONLY)


def limit_epochs(tensor, num_epochs=None, name=None):
    """The tensor, so many times; OutOfRange after that."""
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with tf.name_scope(name or "limit_epochs"):
        tensor = tf.convert_to_tensor(tensor)
        epochs = tf.compat.v1.Variable(
            tf.constant(0, tf.int64),
            trainable=False,
            name="epochs",
            collections=[tf.compat.v1.GraphKeys.LOCAL_VARIABLES],
            use_resource=True,
        )
        counted = tf.raw_ops.ResourceCountUpTo(
            resource=epochs.handle, limit=num_epochs, T=tf.int64
        )
        with tf.control_dependencies([counted]):
            return tf.identity(tensor)


def input_producer(
    input_tensor,
    element_shape=None,
    num_epochs=None,
    shuffle=True,
    seed=None,
    capacity=32,
    shared_name=None,
    summary_name=None,
    name=None,
    cancel_op=None,
):
    """A queue that a runner fills with the rows of a tensor, again and again."""
    _refuse_eager()
    with tf.name_scope(name or "input_producer"):
        rows = tf.convert_to_tensor(input_tensor)
        shape = rows.shape[1:].merge_with(element_shape)
        if not shape.is_fully_defined():
            raise ValueError(
                "element_shape must be fully defined, either by the shape of "
                "input_tensor or by the argument"
            )
        if shuffle:
            rows = tf.random.shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = queue_ops.FIFOQueue(
            capacity, [rows.dtype], [shape], shared_name=shared_name
        )
        fill = queue.enqueue_many([rows])
        runner = queue_runner.QueueRunner(queue, [fill], cancel_op=cancel_op)
        queue_runner.add_queue_runner(runner)
        if summary_name is not None:
            part = tf.cast(queue.size(), tf.float32) * (1.0 / capacity)
            tf.compat.v1.summary.scalar(summary_name, part)
        return queue


_produced = signatures.taking(
    signatures.from_text(
        "num_epochs=None, shuffle=True, seed=None, capacity=32, shared_name=None"
    ),
    before="name",
)


def _of_scalars(tensor, capacity, **given):
    """The queue of a vector's elements, which tells how full it is."""
    summary = f"fraction_of_{capacity}_full"
    return input_producer(tensor, [], capacity=capacity, summary_name=summary, **given)


@_produced
def string_input_producer(string_tensor, name=None, cancel_op=None, **given):
    """A queue of strings, usually names of files."""
    _refuse_eager()
    if not isinstance(string_tensor, tf.Tensor) and not len(string_tensor):
        raise ValueError("string_input_producer requires a non-null input tensor")
    with tf.name_scope(name or "input_producer"):
        strings = tf.convert_to_tensor(string_tensor, tf.string)
        return _of_scalars(strings, cancel_op=cancel_op, **given)


@_produced
def range_input_producer(limit, name=None, **given):
    """A queue of the integers below `limit`."""
    _refuse_eager()
    with tf.name_scope(name or "input_producer"):
        return _of_scalars(tf.range(limit), **given)


@_produced
def slice_input_producer(tensor_list, name=None, **given):
    """The rows of all tensors, one after another, as tensors."""
    _refuse_eager()
    if not tensor_list:
        raise ValueError("Expected at least one tensor in slice_input_producer().")
    with tf.name_scope(name or "input_producer"):
        tensors = [tf.convert_to_tensor(t) for t in tensor_list]
        limit = tf.shape(tensors[0])[0]
        index = range_input_producer(limit, **given).dequeue()
        return [tf.gather(t, index) for t in tensors]


def _flat(tensors):
    """(a list of tensors, how to give lists of results their structure)."""
    if isinstance(tensors, dict):
        names = sorted(tensors)
        pack = lambda found: dict(zip(names, found))
        return [tf.convert_to_tensor(tensors[n]) for n in names], pack
    if isinstance(tensors, (list, tuple)):
        pack = lambda found: found[0] if len(found) == 1 else list(found)
        return [tf.convert_to_tensor(t) for t in tensors], pack
    return [tf.convert_to_tensor(tensors)], lambda found: found[0]


def _batches(rows, keep_input, batch_size, make_queue, default, given, threads=1):
    """Batches of what the queue is given by `rows`, one entry a producer, each with so
    many threads."""
    many = given["enqueue_many"]
    rows = [_shaped(given["shapes"], row, many) for row in rows]
    _refuse_eager()
    with tf.name_scope(given["name"] or default):
        flat, pack = _flat(rows[0])
        shapes = []
        for i, t in enumerate(flat):
            shape = t.shape[1:] if many else t.shape
            for other in rows[1:]:
                theirs = _flat(other)[0][i].shape
                shape = shape.merge_with(theirs[1:] if many else theirs)
            shapes.append(shape)
        known = all(s.is_fully_defined() for s in shapes)
        if not known and not given.get("dynamic_pad"):
            raise ValueError(f"All shapes must be fully defined: {shapes}")
        queue = make_queue([t.dtype for t in flat], shapes)
        put = queue.enqueue_many if many else queue.enqueue
        fill = [_kept(put, _flat(row)[0], keep_input) for row in rows]
        queue_runner.add_queue_runner(
            queue_runner.QueueRunner(queue, fill * (threads or 1))
        )
        smaller = given["allow_smaller_final_batch"]
        found = (queue.dequeue_up_to if smaller else queue.dequeue_many)(batch_size)
        return pack(list(found) if isinstance(found, (list, tuple)) else [found])


def _kept(put, tensors, keep_input):
    if keep_input is True:
        return put(tensors)
    keep = tf.convert_to_tensor(keep_input)
    if keep.shape.rank != 0:
        raise NotImplementedError(
            "maybe_batch and its like take a scalar keep_input: rows cannot be chosen "
            "one by one"
        )
    return tf.cond(keep, lambda: tf.group(put(tensors)), lambda: tf.no_op())


def _plain_queue(given):
    kind = queue_ops.PaddingFIFOQueue if given["dynamic_pad"] else queue_ops.FIFOQueue
    return functools.partial(kind, given["capacity"], shared_name=given["shared_name"])


def _shuffling_queue(capacity, kept, given):
    named = {name: given[name] for name in ("seed", "shared_name")}
    return functools.partial(queue_ops.RandomShuffleQueue, capacity, kept, **named)


def _shaped(shapes, tensors, enqueue_many):
    """The tensors with the shapes that the caller says they have."""
    if shapes is None:
        return tensors
    flat, pack = _flat(tensors)
    given = [tf.TensorShape(s) for s in shapes]
    if enqueue_many:
        given = [tf.TensorShape([None]).concatenate(s) for s in given]
    return pack([tf.ensure_shape(t, s) for t, s in zip(flat, given)])


_QUEUED = (
    "num_threads=1, capacity=32, seed=None, enqueue_many=False, shapes=None, "
    "dynamic_pad=False, allow_smaller_final_batch=False, shared_name=None, name=None"
)


def _queued(*without):
    """Gives a function of **kwargs the parameters of queues' batches but for those."""
    parameters = signatures.from_text(_QUEUED)
    return signatures.taking([p for p in parameters if p.name not in without])


@_queued("seed")
def maybe_batch(tensors, keep_input, batch_size, num_threads=1, **given):
    """Batches of tensors that come one by one, those that are to be kept."""
    how = (keep_input, batch_size, _plain_queue(given), "batch", given)
    return _batches([tensors], *how, threads=num_threads)


def batch(tensors, batch_size, *args, **kwargs):
    """Batches of tensors that come one by one; arguments as maybe_batch's."""
    return maybe_batch(tensors, True, batch_size, *args, **kwargs)


@_queued("seed", "num_threads")
def maybe_batch_join(tensors_list, keep_input, batch_size, **given):
    """Batches of what several producers give, a thread each."""
    how = (keep_input, batch_size, _plain_queue(given), "batch_join", given)
    return _batches(tensors_list, *how)


def batch_join(tensors_list, batch_size, *args, **kwargs):
    """Batches of what several producers give; arguments as maybe_batch_join's."""
    return maybe_batch_join(tensors_list, True, batch_size, *args, **kwargs)


@_queued("dynamic_pad")
def maybe_shuffle_batch(
    tensors, batch_size, capacity, min_after_dequeue, keep_input, num_threads=1, **given
):
    """Batches in random order of tensors that are to be kept."""
    queue = _shuffling_queue(capacity, min_after_dequeue, given)
    how = (keep_input, batch_size, queue, "shuffle_batch", given)
    return _batches([tensors], *how, threads=num_threads)


def shuffle_batch(tensors, batch_size, capacity, min_after_dequeue, *args, **kwargs):
    """Batches in random order; arguments as maybe_shuffle_batch's."""
    return maybe_shuffle_batch(
        tensors, batch_size, capacity, min_after_dequeue, True, *args, **kwargs
    )


@_queued("dynamic_pad", "num_threads")
def maybe_shuffle_batch_join(
    tensors_list, batch_size, capacity, min_after_dequeue, keep_input, **given
):
    """Batches in random order of what several producers give, a thread each."""
    queue = _shuffling_queue(capacity, min_after_dequeue, given)
    how = (keep_input, batch_size, queue, "shuffle_batch_join", given)
    return _batches(tensors_list, *how)


def shuffle_batch_join(
    tensors_list, batch_size, capacity, min_after_dequeue, *args, **kwargs
):
    """As shuffle_batch, of several producers."""
    return maybe_shuffle_batch_join(
        tensors_list, batch_size, capacity, min_after_dequeue, True, *args, **kwargs
    )
