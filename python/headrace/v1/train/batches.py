"""tf.compat.v1.train's batches of what queues hold: in order, padded or shuffled."""

from headrace import _api as tf
from headrace._load import raw
from headrace.framework import execution
from headrace.framework.support import signatures
from headrace.ops.io import queue_ops
from headrace.v1.train import queue_runner

GRAPH_ONLY = (
    "Input pipelines based on Queues are not supported when eager execution is enabled. "
    "Please use tf.data to ingest data into your model instead."
)


def refuse_eager():
    """RuntimeError where operations run at once."""
    execution.only_in_graphs(GRAPH_ONLY)


# --- what producers give: lists or dicts, the same each ---


def _converted(value):
    if isinstance(value, tf.RaggedTensor):
        raise ValueError("RaggedTensors are not supported: use to_sparse()")
    return tf.compat.v1.convert_to_tensor_or_sparse_tensor(value)


def _lists(rows, what):
    """(a list of tensors of each producer, what gives results their structure)."""
    if not rows:
        raise ValueError("Expected at least one set of tensors")
    if not isinstance(rows[0], dict):
        rows = [[_converted(value) for value in row] for row in rows]
        if not rows[0]:
            raise ValueError(f"Expected at least one tensor in {what}().")
        return rows, lambda found: found[0] if len(found) == 1 else list(found)
    names = sorted(rows[0])
    if not names:
        raise ValueError(f"Expected at least one tensor in {what}().")
    if any(sorted(row) != names for row in rows[1:]):
        raise ValueError("All dictionaries in tensors_list must have the same keys")
    rows = [[_converted(row[name]) for name in names] for row in rows]
    return rows, lambda found: dict(zip(names, found))


def _dtypes(rows):
    dtypes = [tensor.dtype for tensor in rows[0]]
    for row in rows[1:]:
        for mine, other in zip(dtypes, row):
            if mine != other.dtype:
                raise TypeError(
                    "Expected types to be consistent: "
                    f"{mine.name} vs. {other.dtype.name}."
                )
    return dtypes


def _shapes(rows, given, many):
    """The shapes of the elements of a queue of the rows."""
    if given is not None:
        return given
    shapes = []
    for column in zip(*rows):
        for tensor in column:
            if tensor.shape.rank is None:
                raise ValueError(f"Cannot infer Tensor's rank: {tensor}")
        known = [t.shape.with_rank_at_least(1)[1:] if many else t.shape for t in column]
        shape = known[0]
        for other in known[1:]:
            shape = shape.most_specific_compatible_shape(other)
        shapes.append(shape)
    return shapes


# --- which rows are kept ---


def _keeping(keep_input, many):
    """The argument, checked: a Python bool where it is known, else a tensor."""
    keep = tf.convert_to_tensor(keep_input)
    if keep.shape.rank is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if keep.shape.rank > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    if keep.shape.rank == 1 and not many:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    known = tf.get_static_value(keep) if keep.shape.rank == 0 else None
    return tf.cast(keep, tf.bool) if known is None else bool(known)


def _of_rows(keep):
    return not isinstance(keep, bool) and keep.shape.rank == 1


def _if_kept(keep, yes, no):
    """yes() or no(), decided in the run if it has to be."""
    if isinstance(keep, bool):
        return (yes if keep else no)()
    return tf.cond(keep, yes, no)


# --- sparse tensors: queues hold handles of them ---


class _Sparse:
    """A column of sparse tensors, which a map of the session holds."""

    def __init__(self, column, keep, many):
        for tensor in column:
            if not isinstance(tensor, tf.SparseTensor):
                raise ValueError(
                    f"Inconsistent SparseTensors list: {column[:1]} vs. {column[1:]}"
                )
        self.dtype = column[0].dtype
        rank = column[0].dense_shape.shape[0]
        self._rank = None if rank is None else rank - many + 1
        self._keep, self._many = keep, many
        self._map = None  # its name, that of the first operation that fills it
        self.handles = [self._stored(tensor) for tensor in column]

    def _stored(self, tensor):
        if _of_rows(self._keep):
            kept = tf.gather(self._keep, tensor.indices[:, 0])
            return self._added(tf.sparse.retain(tensor, kept))
        return _if_kept(
            self._keep, lambda: self._added(tensor), lambda: self._none(tensor)
        )

    def _added(self, tensor):
        add = raw.AddManySparseToTensorsMap if self._many else raw.AddSparseToTensorsMap
        parts = (tensor.indices, tensor.values, tensor.dense_shape)
        handle = add(*parts, container="", shared_name=self._map or "")
        if self._map is None:
            self._map = handle.op.name
        return handle

    def _none(self, tensor):
        handle = tf.constant(-1, tf.int64)
        return tf.fill(tensor.dense_shape[:1], handle) if self._many else handle

    def taken(self, handles):
        """The sparse tensor of a batch of handles."""
        found = raw.TakeManySparseFromTensorsMap(
            tf.reshape(handles, [-1]) if handles.shape.rank != 1 else handles,
            dtype=self.dtype,
            shared_name=self._map,
        )
        indices, values, shape = found
        indices.set_shape([None, self._rank])
        shape.set_shape([self._rank])
        return tf.SparseTensor(indices, values, shape)


def _stored(rows, keep, many):
    """(the rows, handles in place of sparse tensors; {place: its _Sparse})."""
    columns, sparse = [list(column) for column in zip(*rows)], {}
    for i, column in enumerate(columns):
        if isinstance(column[0], tf.SparseTensor):
            sparse[i] = _Sparse(column, keep, many)
            columns[i] = sparse[i].handles
    return [list(row) for row in zip(*columns)], sparse


# --- batches ---


def _filling(queue, row, keep, many):
    """The operation that puts a producer's tensors, those that are kept, in a queue."""
    put = queue.enqueue_many if many else queue.enqueue
    if _of_rows(keep):
        which = tf.cast(keep, tf.int32)
        return put([tf.dynamic_partition(tensor, which, 2)[1] for tensor in row])
    if keep is True:
        return put(row)
    return _if_kept(keep, lambda: tf.group(put(row)), tf.no_op)


def _batches(rows, what, make_queue, summary, given):
    """Batches of what a queue is given by `rows`, one entry a producer."""
    refuse_eager()
    many = given["enqueue_many"]
    with tf.compat.v1.name_scope(given["name"], what, rows) as scope:
        rows, pack = _lists(rows, what)
        keep = _keeping(given["keep_input"], many)
        rows, sparse = _stored(rows, keep, many)
        kinds = _dtypes(rows)
        shapes = _shapes(rows, given["shapes"], many)
        queue = make_queue(kinds, shapes)
        fill = [_filling(queue, row, keep, many) for row in rows]
        fill *= given.get("num_threads", 1)
        queue_runner.add_queue_runner(queue_runner.QueueRunner(queue, fill))
        tf.compat.v1.summary.scalar(*summary(queue))
        smaller = given["allow_smaller_final_batch"]
        take = queue.dequeue_up_to if smaller else queue.dequeue_many
        found = take(given["batch_size"], name=scope)
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        for i, column in sparse.items():
            found[i] = column.taken(found[i])
        return pack(found)


def _in_order(rows, what, capacity, dynamic_pad, shared_name, **given):
    kind = queue_ops.PaddingFIFOQueue if dynamic_pad else queue_ops.FIFOQueue

    def make(kinds, shapes):
        return kind(capacity, kinds, shapes, shared_name=shared_name)

    def summary(queue):
        share = tf.cast(queue.size(), tf.float32) * (1.0 / capacity)
        return f"fraction_of_{capacity}_full", share

    return _batches(rows, what, make, summary, given)


def _shuffled(rows, what, capacity, min_after_dequeue, seed, shared_name, **given):
    def make(kinds, shapes):
        sizes = (capacity, min_after_dequeue)
        return queue_ops.RandomShuffleQueue(
            *sizes, kinds, shapes, seed=seed, shared_name=shared_name
        )

    def summary(queue):
        over = tf.maximum(0, queue.size() - min_after_dequeue)
        room = capacity - min_after_dequeue
        share = tf.cast(over, tf.float32) * (1.0 / room)
        return f"fraction_over_{min_after_dequeue}_of_{room}_full", share

    return _batches(rows, what, make, summary, given)


_DOC = """{what}.

    A runner of the graph's collection QUEUE_RUNNERS fills a queue{by}. `tensors` is a
    list, or a dict, of tensors and SparseTensors, with `enqueue_many` of rows of them;
    `shapes` are those of the elements. Batches have the structure of the tensors, a
    single one comes alone; they are of `batch_size`, at the end fewer if
    `allow_smaller_final_batch`. {further}RuntimeError when eager.
    """
_KEPT = (
    "Only what `keep_input` is true for comes, a boolean or with `enqueue_many` one for "
    "each row. "
)
_REST = "enqueue_many=False, shapes=None, {}allow_smaller_final_batch=False, "
_REST += "shared_name=None, name=None"


def _function(name, many, shuffled, kept):
    """The public function of a kind of batches."""
    first = "tensors_list" if many else "tensors"
    threads = "" if many else "num_threads=1, "
    if shuffled:
        keep = "keep_input, " if kept else ""
        text = f"{first}, batch_size, capacity, min_after_dequeue, {keep}{threads}"
        text += "seed=None, " + _REST.format("")
    else:
        keep = "keep_input, " if kept else ""
        text = f"{first}, {keep}batch_size, {threads}capacity=32, "
        text += _REST.format("dynamic_pad=False, ")
    make, what = (_shuffled if shuffled else _in_order), name.removeprefix("maybe_")

    def call(**given):
        given.setdefault("keep_input", True)
        rows = given.pop(first)
        return make(rows if many else [rows], what, **given)

    doc = _DOC.format(
        what="Batches in random order" if shuffled else "Batches in order",
        by=", a thread for each of several lists" if many else "",
        further=_KEPT if kept else "",
    )
    like = signatures.named(name, doc, __name__)
    return signatures.function_of(like, signatures.from_text(text), call)


batch = _function("batch", False, False, False)
maybe_batch = _function("maybe_batch", False, False, True)
batch_join = _function("batch_join", True, False, False)
maybe_batch_join = _function("maybe_batch_join", True, False, True)
shuffle_batch = _function("shuffle_batch", False, True, False)
maybe_shuffle_batch = _function("maybe_shuffle_batch", False, True, True)
shuffle_batch_join = _function("shuffle_batch_join", True, True, False)
maybe_shuffle_batch_join = _function("maybe_shuffle_batch_join", True, True, True)
