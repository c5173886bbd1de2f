"""What tf.compat.v1 keeps for programs that are older than most of it."""

import contextlib

from headrace import _api as tf
from headrace.framework.support import signatures
from headrace.v1 import variable_scope


@contextlib.contextmanager
def op_scope(values, name, default_name=None):
    """name_scope with its arguments in another order."""
    with tf.compat.v1.name_scope(
        name, default_name=default_name, values=values
    ) as scope:
        yield scope


def no_regularizer(_):
    """A regularizer that adds nothing, also where scopes have another."""


@signatures.having(
    "shape, slicing, initializer, dtype=float32, trainable=True, collections=None, "
    "name=None, reuse=None",
    float32=tf.float32,
)
def create_partitioned_variables(shape, slicing, initializer, name, reuse, **given):
    """Variables that are parts of one of `shape`, as a list.

    `slicing` says into how many parts each dimension is cut; only one may be more than
    1. `initializer` is a function of a part's shape, or the value of the whole.
    """
    if len(shape) != len(slicing):
        raise ValueError(
            "The 'shape' and 'slicing' of a partitioned Variable must have the length: "
            f"shape: {shape}, slicing: {slicing}"
        )
    if len(shape) < 1:
        raise ValueError(
            f"A partitioned Variable must have rank at least 1: shape: {shape}"
        )
    value = None if callable(initializer) else tf.convert_to_tensor(initializer)
    shape = tf.TensorShape(shape)
    with variable_scope.variable_scope(
        name, "PartitionedVariable", reuse=reuse
    ) as scope:
        parts = variable_scope._get(
            scope.name,
            shape=shape if value is None else None,
            initializer=initializer if value is None else value,
            partitioner=lambda **unused: list(slicing),
            **given,
        )
    return list(parts)


def sparse_merge(sp_ids, sp_values, vocab_size, name=None, already_sorted=False):
    """A sparse tensor of the values, at the ids of the same places in its last dimension.

    `sp_ids` is a SparseTensor of integers below `vocab_size`, or a list of them, with a
    list of sizes, of which each adds a dimension. `already_sorted` says that the ids of
    each row rise.
    """
    if isinstance(sp_ids, (tf.SparseTensor, tf.compat.v1.SparseTensorValue)):
        if isinstance(vocab_size, (list, tuple)):
            raise TypeError(
                f"vocab_size has to be a Tensor or Python int. Found {type(vocab_size)}"
            )
        sp_ids, vocab_size = [sp_ids], [vocab_size]
    elif not isinstance(sp_ids, (list, tuple)):
        raise TypeError(
            f"sp_ids has to be a SparseTensor or list thereof. Found {type(sp_ids)}"
        )
    elif not isinstance(vocab_size, (list, tuple)):
        raise TypeError(
            f"vocab_size has to be a list of Tensors or Python ints. Found "
            f"{type(vocab_size)}"
        )
    if len(sp_ids) != len(vocab_size):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    sp_values = _sparse(sp_values)
    with tf.name_scope(name or "SparseMerge"):
        places = [_ids(ids) for ids in sp_ids]
        sizes = [tf.reshape(tf.cast(size, tf.int64), [1]) for size in vocab_size]
        indices = tf.concat([sp_values.indices[:, :-1], *places], 1)
        shape = tf.concat([sp_values.dense_shape[:-1], *sizes], 0)
        merged = tf.SparseTensor(indices, sp_values.values, shape)
        return merged if already_sorted else tf.sparse.reorder(merged)


def _sparse(value):
    if isinstance(value, tf.compat.v1.SparseTensorValue):
        value = tf.SparseTensor.from_value(value)
    if not isinstance(value, tf.SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return value


def _ids(ids):
    return tf.expand_dims(tf.cast(_sparse(ids).values, tf.int64), 1)
