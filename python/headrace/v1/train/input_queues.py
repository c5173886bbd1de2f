"""tf.compat.v1.train's queues that are filled with rows, again and again."""

from headrace import _api as tf
from headrace.framework.support import signatures
from headrace.ops.io import queue_ops
from headrace.v1.train import queue_runner
from headrace.v1.train.batches import refuse_eager


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
    refuse_eager()
    with tf.compat.v1.name_scope(name, "input_producer", [input_tensor]):
        rows = tf.convert_to_tensor(input_tensor, name="input_tensor")
        shape = rows.shape.with_rank_at_least(1)[1:].merge_with(element_shape)
        if not shape.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or "
                "`element_shape` must be specified"
            )
        if shuffle:
            rows = tf.random.shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = queue_ops.FIFOQueue(
            capacity, [rows.dtype], [shape], shared_name=shared_name, name=name
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
    refuse_eager()
    text = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, tf.Tensor) and not len(string_tensor):
        raise ValueError(text)
    with tf.compat.v1.name_scope(name, "input_producer") as scope:
        strings = tf.convert_to_tensor(string_tensor, tf.string)
        some = tf.debugging.Assert(tf.greater(tf.size(strings), 0), [text])
        with tf.control_dependencies([] if some is None else [some]):
            strings = tf.identity(strings)
        return _of_scalars(strings, cancel_op=cancel_op, name=scope, **given)


@_produced
def range_input_producer(limit, name=None, **given):
    """A queue of the integers below `limit`."""
    refuse_eager()
    with tf.compat.v1.name_scope(name, "input_producer") as scope:
        return _of_scalars(tf.range(limit), name=scope, **given)


@_produced
def slice_input_producer(tensor_list, name=None, **given):
    """The rows of all tensors, one after another, as tensors."""
    refuse_eager()
    if not tensor_list:
        raise ValueError("Expected at least one tensor in slice_input_producer().")
    with tf.compat.v1.name_scope(name, "input_producer") as scope:
        tensors = [tf.convert_to_tensor(t) for t in tensor_list]
        limit = tf.shape(tensors[0])[0]
        index = range_input_producer(limit, **given).dequeue()
        return [tf.gather(t, index) for t in tensors]
