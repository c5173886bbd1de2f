"""Values of sparse and ragged tensors as models in graphs take them: by rows.

Sessions give and take named tuples of arrays, which tf.nest would take apart. These
stand for one each, as an array does, with a shape and rows.
"""

import copy

import numpy as np

from headrace import _api as tf
from headrace._load import _headrace
from headrace.context import stack
from headrace.framework.sparse_tensor import SparseTensorValue
from headrace.ragged.ragged_value import RaggedTensorValue


class _Rows:
    """A value of several arrays.

    Attributes:
      value: it, as sessions give and take it.
      shape: a tuple of sizes, None for ragged dimensions.
    """

    ndim = property(lambda self: len(self.shape), doc="How many dimensions it has.")
    dtype = property(lambda self: self.value.values.dtype, doc="That of its values.")

    def __len__(self):
        return self.shape[0]

    def __array__(self, *args, **kwargs):
        raise ValueError(
            f"{type(self.value).__name__} is no array: the value of a sparse or ragged "
            "tensor goes to an Input with sparse=True or ragged=True"
        )


class SparseRows(_Rows):
    """A SparseTensorValue."""

    def __init__(self, value):
        self.value = SparseTensorValue(*map(np.asarray, value))
        self.shape = tuple(int(n) for n in self.value.dense_shape)

    def __getitem__(self, rows):
        """Those rows, by a slice or an array of indices, in that order."""
        indices, values, dense_shape = self.value
        wanted = np.arange(len(self))[rows]
        order = np.argsort(indices[:, 0], kind="stable")
        starts = np.searchsorted(indices[order, 0], [wanted, wanted + 1])
        places = [order[a:b] for a, b in zip(*starts)]
        found = np.concatenate([*places, np.empty(0, np.int64)]).astype(np.int64)
        taken = indices[found]
        taken[:, 0] = np.repeat(np.arange(len(wanted)), [len(p) for p in places])
        shape = [len(wanted), *dense_shape[1:]]
        return SparseRows((taken, values[found], np.array(shape, dense_shape.dtype)))

    def fits(self, tensor):
        """Whether a run may feed it in place of a tensor of a graph."""
        return isinstance(tensor, tf.SparseTensor)


class RaggedRows(_Rows):
    """A RaggedTensorValue."""

    def __init__(self, value):
        self.value = value
        self.shape = tuple(value.shape)

    dtype = property(lambda self: self.value.flat_values.dtype, doc="Of its values.")

    def __getitem__(self, rows):
        """Those rows, by a slice or an array of indices, in that order."""
        return RaggedRows(_taken(self.value, np.arange(len(self))[rows]))

    def fits(self, tensor):
        """Whether a run may feed it in place of a tensor of a graph."""
        if not isinstance(tensor, tf.RaggedTensor):
            return False
        return tensor.ragged_rank == self.value.ragged_rank


def _taken(value, wanted):
    if not isinstance(value, RaggedTensorValue):
        return value[wanted]
    splits = value.row_splits
    parts = [np.arange(splits[i], splits[i + 1]) for i in wanted]
    inner = np.concatenate([*parts, np.empty(0, np.int64)]).astype(np.int64)
    lengths = [len(p) for p in parts]
    made = np.concatenate([[0], np.cumsum(lengths)]).astype(splits.dtype)
    return RaggedTensorValue(_taken(value.values, inner), made)


KINDS = (SparseRows, RaggedRows)


def wrapped(structure):
    """A structure with values of sparse and ragged tensors and matrices of SciPy as one
    each of the above."""
    if isinstance(structure, SparseTensorValue):
        return SparseRows(structure)
    if isinstance(structure, RaggedTensorValue):
        return RaggedRows(structure)
    if isinstance(structure, dict):
        made = copy.copy(structure)  # of its class, whatever that is made with
        made.update((k, wrapped(v)) for k, v in structure.items())
        return made
    if type(structure) in (list, tuple):
        if structure and isinstance(structure[0], (int, float, str, bytes)):
            return structure
        return type(structure)(map(wrapped, structure))
    if _is_of_scipy(structure):
        return _of_scipy(structure)
    if isinstance(structure, (tf.SparseTensor, tf.RaggedTensor)):
        parts = structure._components()
        is_eager = not any(isinstance(x, _headrace.SymbolicTensor) for x in parts)
        if is_eager and stack.plain_graph() is not None:
            return wrapped(structure._value_of([x.numpy() for x in parts]))
    return structure


def _is_of_scipy(x):
    return type(x).__module__.startswith("scipy.sparse") and hasattr(x, "tocoo")


def _of_scipy(matrix):
    """The rows of a matrix, in the order that SciPy has its elements in."""
    coo = matrix.tocoo()
    indices = np.stack([coo.row, coo.col], 1).astype(np.int64)
    return SparseRows((indices, coo.data, np.array(coo.shape, np.int64)))


def fetched(x):
    """What a step gave, as programs get it: an array of a tensor."""
    return x.numpy() if isinstance(x, tf.Tensor) else x


def joined(results):
    """What steps gave for batches, one behind the other, in its structure: arrays, or as
    they are sparse or ragged."""
    if len(results) == 1:
        return tf.nest.map_structure(fetched, results[0])
    results = [wrapped(r) for r in results]
    leaves = zip(*[tf.nest.flatten(r) for r in results])
    return tf.nest.pack_sequence_as(results[0], [_in_line(c) for c in leaves])


def joined_of_all(strategy, results):
    """The same of what all workers of a strategy that predict together gave: batch by
    batch, each in the order of workers. Sparse and ragged ones are each worker's own."""
    own = joined(results)
    workers = getattr(getattr(strategy, "extended", None), "_predict_together", None)
    leaves = tf.nest.flatten(own)
    if workers is None or not all(isinstance(x, np.ndarray) for x in leaves):
        return own

    def of_all(array):
        return workers.rows(tf.convert_to_tensor(array)).numpy()

    batches = [len(fetched(tf.nest.flatten(r)[0])) for r in results]
    steps, sizes = of_all(np.array([len(batches)])), of_all(np.array(batches))
    # Rows come worker by worker; their batches are sorted by the step.
    step = np.concatenate([np.arange(n) for n in steps])
    order = np.argsort(np.repeat(step, sizes), kind="stable")
    return tf.nest.pack_sequence_as(own, [of_all(x)[order] for x in leaves])


def _in_line(batches):
    """Batches of one output, one behind the other."""
    if isinstance(batches[0], tf.SparseTensor):
        return tf.sparse.concat(0, batches)
    if isinstance(batches[0], tf.RaggedTensor):
        return tf.concat(batches, 0)
    if isinstance(batches[0], SparseRows):
        return _joined_sparse([b.value for b in batches])
    if isinstance(batches[0], RaggedRows):
        return _joined_ragged([b.value for b in batches])
    return np.concatenate([fetched(x) for x in batches])


def _joined_sparse(batches):
    sizes = [int(b.dense_shape[0]) for b in batches]
    indices = []
    for start, batch in zip(np.cumsum([0, *sizes]), batches):
        moved = np.array(batch.indices)
        moved[:, 0] += start
        indices.append(moved)
    widest = np.max([b.dense_shape for b in batches], axis=0)
    shape = np.array([sum(sizes), *widest[1:]], np.int64)
    values = np.concatenate([b.values for b in batches])
    return SparseTensorValue(np.concatenate(indices), values, shape)


def _joined_ragged(batches):
    if not isinstance(batches[0], RaggedTensorValue):
        return np.concatenate(batches)
    splits = [batches[0].row_splits[:1]]
    for batch in batches:
        splits.append(batch.row_splits[1:] + splits[-1][-1])
    inner = _joined_ragged([b.values for b in batches])
    return RaggedTensorValue(inner, np.concatenate(splits))
