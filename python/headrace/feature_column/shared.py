"""Columns that look up in one embedding, which they share."""

import collections

from headrace import _api as tf
from headrace.feature_column.combined import WeightedCategoricalColumn
from headrace.feature_column.dense import LooksUp, check_embedding, load_first_value
from headrace.feature_column.sequence import SequenceCategoricalColumn
from headrace.framework import execution
from headrace.framework.support.properties import read_only


def _innermost(column):
    while isinstance(column, (WeightedCategoricalColumn, SequenceCategoricalColumn)):
        column = column.categorical_column
    return column


def _check_alike(columns):
    """ValueError for columns of several kinds or numbers of buckets."""
    first = columns[0]
    kind, buckets = type(_innermost(first)), first.num_buckets
    for column in columns[1:]:
        inner = _innermost(column)
        if not isinstance(inner, kind):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the "
                "same type, or be weighted_categorical_column or sequence column of the "
                f"same type. Given column: {_innermost(first)} of type: {kind} does not "
                f"match given column: {inner} of type: {type(inner)}"
            )
        if column.num_buckets != buckets:
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the "
                f"same number of buckets. Given column: {first} with buckets: {buckets} "
                f"does  not match column: {column} with buckets: {column.num_buckets}"
            )


def _prepared(columns, dimension, initializer, checkpoint, tensor_name, name):
    """(columns in order, initializer, name of the embedding) for both factories."""
    execution.only_in_graphs(
        "shared_embedding_columns are not supported when eager execution is enabled."
    )
    ordered = sorted(columns, key=lambda c: c.name)
    initializer = check_embedding(
        dimension, initializer, checkpoint, tensor_name, f"Columns: {columns}"
    )
    _check_alike(ordered)
    if not name:
        name = "_".join(c.name for c in ordered) + "_shared_embedding"
    return initializer, name


def shared_embeddings(
    categorical_columns,
    dimension,
    combiner="mean",
    initializer=None,
    shared_embedding_collection_name=None,
    ckpt_to_load_from=None,
    tensor_name_in_ckpt=None,
    max_norm=None,
    trainable=True,
    use_safe_embedding_lookup=True,
):
    """A list of columns like embedding_column(), in the order of the categorical ones,
    that share one variable.

    For graphs: RuntimeError where operations run at once. ValueError for columns of
    several kinds or numbers of buckets. `shared_embedding_collection_name` names the
    variable.
    """
    initializer, name = _prepared(
        *(categorical_columns, dimension, initializer),
        *(ckpt_to_load_from, tensor_name_in_ckpt, shared_embedding_collection_name),
    )
    creator = SharedEmbeddingColumnCreator(
        *(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt),
        *(categorical_columns[0].num_buckets, trainable, name),
        use_safe_embedding_lookup,
    )
    return [
        creator(column, combiner=combiner, max_norm=max_norm)
        for column in categorical_columns
    ]


class SharedEmbeddingColumnCreator(tf.Module):
    """Has the variable of columns that share it: one in each graph."""

    def __init__(
        self,
        dimension,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        num_buckets,
        trainable,
        name="shared_embedding_column_creator",
        use_safe_embedding_lookup=True,
    ):
        self._dimension = dimension
        self._initializer = initializer
        self._first_value = (ckpt_to_load_from, tensor_name_in_ckpt)
        self._num_buckets = num_buckets
        self._trainable = trainable
        self._variable_name = name
        self._safe = use_safe_embedding_lookup
        object.__setattr__(self, "_embedding_weights", {})  # {graph: variable}

    def __call__(self, categorical_column, combiner, max_norm):
        return SharedEmbeddingColumn(
            categorical_column, self, combiner, max_norm, self._safe
        )

    name = read_only("_variable_name", "The variable's name.")
    dimension = read_only("_dimension", "The length of the embedding's rows.")

    @property
    def embedding_weights(self):
        """The variable of the current graph, made when first asked for."""
        graph = tf.compat.v1.get_default_graph()
        if graph not in self._embedding_weights:
            variable = tf.compat.v1.get_variable(
                self._variable_name,
                shape=(self._num_buckets, self._dimension),
                dtype=tf.float32,
                initializer=self._initializer,
                trainable=self._trainable,
            )
            load_first_value(variable, *self._first_value)
            self._embedding_weights[graph] = variable
        return self._embedding_weights[graph]


class SharedEmbeddingColumn(
    LooksUp,
    collections.namedtuple(
        "SharedEmbeddingColumn",
        "categorical_column shared_embedding_column_creator combiner "
        "max_norm use_safe_embedding_lookup",
    ),
):
    """See tf.feature_column.shared_embeddings."""

    _kind = "embedding_column"
    name = property(lambda self: f"{self.categorical_column.name}_shared_embedding")

    @property
    def variable_shape(self):
        return tf.TensorShape([self.shared_embedding_column_creator.dimension])

    def _weights(self, state_manager):
        # Of the creator, which makes the variable when it is first looked up in.
        return self.shared_embedding_column_creator.embedding_weights


def shared_embedding_columns_v1(
    categorical_columns,
    dimension,
    combiner="mean",
    initializer=None,
    shared_embedding_collection_name=None,
    ckpt_to_load_from=None,
    tensor_name_in_ckpt=None,
    max_norm=None,
    trainable=True,
    use_safe_embedding_lookup=True,
):
    """shared_embeddings() for tf.compat.v1.feature_column.input_layer and linear_model.

    The variable is made in the scope of the first of the columns, and kept in a
    collection of its name.
    """
    initializer, name = _prepared(
        *(categorical_columns, dimension, initializer),
        *(ckpt_to_load_from, tensor_name_in_ckpt, shared_embedding_collection_name),
    )
    fields = (dimension, combiner, initializer, name, ckpt_to_load_from)
    fields += (tensor_name_in_ckpt, max_norm, trainable, use_safe_embedding_lookup)
    return [ScopedSharedEmbeddingColumn(c, *fields) for c in categorical_columns]


class ScopedSharedEmbeddingColumn(
    LooksUp,
    collections.namedtuple(
        "ScopedSharedEmbeddingColumn",
        "categorical_column dimension combiner initializer "
        "shared_embedding_collection_name ckpt_to_load_from "
        "tensor_name_in_ckpt max_norm trainable "
        "use_safe_embedding_lookup",
    ),
):
    """See tf.compat.v1.feature_column.shared_embedding_columns."""

    _kind = "shared_embedding_column"
    name = property(lambda self: f"{self.categorical_column.name}_shared_embedding")
    variable_shape = property(lambda self: tf.TensorShape([self.dimension]))

    scope_name = read_only(
        "shared_embedding_collection_name",
        "The variable scope that input_layer opens for the column.",
    )

    def _found(self):
        """The variable of the graph's collection, or None."""
        key = self.shared_embedding_collection_name
        kept = tf.compat.v1.get_collection(key)
        if not kept:
            return None
        shape = (self.categorical_column.num_buckets, self.dimension)
        if len(kept) > 1:
            raise ValueError(
                f"Collection {kept} can only contain one variable. Suggested fix A: "
                "Choose a unique name for this collection. Suggested fix B: Do not add "
                "any variables to this collection. The feature_column library already "
                "adds a variable under the hood."
            )
        if kept[0].shape != shape:
            raise ValueError(
                "Shared embedding collection "
                f"{key} contains variable {kept[0].name} of unexpected shape "
                f"{kept[0].shape}. Expected shape is {shape}. Suggested fix A: Choose a "
                "unique name for this collection. Suggested fix B: Do not add any "
                "variables to this collection. The feature_column library already adds "
                "a variable under the hood."
            )
        return kept[0]

    def create_state(self, state_manager):
        if self._found() is not None:
            return
        variable = self._make_weights(state_manager)
        key = self.shared_embedding_collection_name
        tf.compat.v1.add_to_collection(key, variable)

    def _weights(self, state_manager):
        return self._found()
