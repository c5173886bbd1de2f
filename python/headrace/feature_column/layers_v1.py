"""tf.compat.v1.feature_column.input_layer and linear_model, and v1.keras' layer."""

import contextlib

from headrace import _api as tf
from headrace.feature_column import base, feature_layers, shared
from headrace.feature_column.base import (
    CategoricalColumn,
    DenseColumn,
    FeatureTransformationCache,
)
from headrace.train.saver_graph import parts_of

_KEYS = tf.compat.v1.GraphKeys


class DenseFeatures(feature_layers.DenseFeatures):
    """tf.keras.layers.DenseFeatures with a `partitioner`, for which, as nothing is
    partitioned, NotImplementedError is raised."""

    def __init__(
        self, feature_columns, trainable=True, name=None, partitioner=None, **kwargs
    ):
        if partitioner is not None:
            raise NotImplementedError("DenseFeatures: partitioner is not supported")
        super().__init__(feature_columns, trainable, name, **kwargs)


class _Scoped:
    """Makes columns' variables in the variable scope that is in force."""

    def __init__(self, collections, trainable):
        self._collections = list(collections or [])
        for key in (_KEYS.GLOBAL_VARIABLES, _KEYS.MODEL_VARIABLES):
            if key not in self._collections:
                self._collections.append(key)
        self._trainable = trainable
        self.made = []  # the variables, in order
        self.state = base.VariablesByColumn(self._of_column)

    def variable(self, name, shape, initializer, trainable=True, dtype=tf.float32):
        variable = tf.compat.v1.get_variable(
            name=name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            trainable=self._trainable and trainable,
            collections=self._collections,
        )
        self.made.append(variable)
        return variable

    def _of_column(
        self, column, name, shape, dtype, trainable, use_resource, initializer
    ):
        return self.variable(name, shape, initializer, trainable, dtype)

    def since(self, count):
        """A list of the variables after the first `count`, cut ones in their parts."""
        return [v for whole in self.made[count:] for v in parts_of(whole)]


def _check_columns(columns):
    columns = base.sorted_columns(columns, "_FeatureColumn")
    for column in columns:
        if isinstance(column, shared.SharedEmbeddingColumn):
            raise ValueError(
                "SharedEmbeddingColumns are not supported in `linear_model` or "
                "`input_layer`. Please use `DenseFeatures` or `LinearModel` instead."
            )
    return columns


@contextlib.contextmanager
def _scope_of(column):
    name = getattr(column, "scope_name", column.name)
    with tf.compat.v1.variable_scope(None, default_name=name):
        yield


def _flat(column, tensor):
    """[batch, elements] of what a dense column gave."""
    count = column.variable_shape.num_elements()
    return tf.reshape(tensor, [tf.shape(tensor)[0], count])


def input_layer(
    features,
    feature_columns,
    weight_collections=None,
    trainable=True,
    cols_to_vars=None,
    cols_to_output_tensors=None,
):
    """A float32 matrix, [batch, width], of what dense columns give, side by side in
    the order of their names.

    `features` are tensors by name. Variables lie in the scope "input_layer" and are
    also put into `weight_collections`; the dicts `cols_to_vars` and
    `cols_to_output_tensors` get each column's. ValueError for columns that are not
    dense, no columns, and features that do not fit each other.
    """
    columns = _check_columns(feature_columns)
    how = weight_collections, trainable, cols_to_vars, cols_to_output_tensors
    return dense_input(features, columns, *how)


def dense_input(
    features,
    feature_columns,
    weight_collections=None,
    trainable=True,
    cols_to_vars=None,
    cols_to_output_tensors=None,
):
    """What input_layer gives; columns that share an embedding may be among them."""
    columns = base.sorted_columns(feature_columns)
    base.check_dense(columns, DenseColumn, "_DenseColumn")
    made = _Scoped(weight_collections, trainable)
    cache = FeatureTransformationCache(features)

    def output(column):
        column.create_state(made.state)
        return _flat(column, column.get_dense_tensor(cache, made.state))

    with tf.compat.v1.variable_scope(
        None, default_name="input_layer", values=list(features.values())
    ):
        outputs = _of_each(columns, made, cols_to_vars, output)
        if cols_to_output_tensors is not None:
            cols_to_output_tensors.update(zip(columns, outputs))
        return tf.concat(outputs, 1)


def _of_each(columns, made, cols_to_vars, compute):
    """A list of what `compute` gives for each column, in the scope of the column."""
    found = []
    for column in columns:
        with _scope_of(column):
            count = len(made.made)
            found.append(compute(column))
            if cols_to_vars is not None:
                cols_to_vars[column] = made.since(count)
    base.check_batch_sizes(found, columns)
    return found


def _zeros():
    return tf.compat.v1.zeros_initializer()


def _weighted_categories(column, cache, made, units, combiner):
    shape = (column.num_buckets, units)
    weight = made.variable("weights", shape, _zeros())
    ids, weights = column.get_sparse_tensors(cache, made.state)
    rows = ids.dense_shape[0]
    ids = tf.sparse.reshape(ids, tf.stack([rows, tf.reduce_prod(ids.dense_shape[1:])]))
    if weights is not None:
        weights = tf.sparse.reshape(weights, ids.dense_shape)
    return tf.compat.v1.nn.safe_embedding_lookup_sparse(
        weight, ids, weights, combiner=combiner, name="weighted_sum"
    )


def _weighted(column, cache, made, units, combiner):
    if isinstance(column, CategoricalColumn):
        return _weighted_categories(column, cache, made, units, combiner)
    count = column.variable_shape.num_elements()
    weight = made.variable("weights", [count, units], _zeros())
    column.create_state(made.state)
    tensor = _flat(column, column.get_dense_tensor(cache, made.state))
    return tf.matmul(tensor, weight, name="weighted_sum")


def linear_model(
    features,
    feature_columns,
    units=1,
    sparse_combiner="sum",
    weight_collections=None,
    trainable=True,
    cols_to_vars=None,
):
    """[batch, units]: sums of columns' values by weights, which begin with zeros, and
    a bias.

    Categorical columns have a weight for each category; `sparse_combiner` ("sum",
    "mean", "sqrtn") says how those of one example are combined. Variables lie in the
    scope "linear_model" and are also put into `weight_collections`; the dict
    `cols_to_vars` gets each column's, and the bias as "bias". ValueError for no
    columns and for those that are neither dense nor categorical.
    """
    columns = _check_columns(feature_columns)
    for column in columns:
        if not isinstance(column, (DenseColumn, CategoricalColumn)):
            raise ValueError(
                "Items of feature_columns must be either a _DenseColumn or "
                f"_CategoricalColumn. Given: {column}"
            )
    made = _Scoped(weight_collections, trainable)
    cache = FeatureTransformationCache(features)

    def weighted(column):
        return _weighted(column, cache, made, units, sparse_combiner)

    with tf.compat.v1.variable_scope(
        None, default_name="linear_model", values=list(features.values())
    ):
        sums = _of_each(columns, made, cols_to_vars, weighted)
        total = tf.add_n(sums, name="weighted_sum_no_bias")
        bias = made.variable("bias_weights", [units], _zeros())
        if cols_to_vars is not None:
            cols_to_vars["bias"] = parts_of(bias)
        return tf.nn.bias_add(total, bias, name="weighted_sum")
