"""Columns that look up in one embedding, which they share."""

import collections

from headrace import _api as tf
from headrace.context.properties import read_only
from headrace.feature_column.combined import WeightedCategoricalColumn
from headrace.feature_column.dense import (
    EMBEDDING,
    LooksUp,
    check_embedding,
    embedding_fields,
    load_first_value,
)
from headrace.feature_column.sequence import SequenceCategoricalColumn
from headrace.framework import execution
from headrace.framework.support import signatures

_SHARED = list(EMBEDDING)
_SHARED.insert(2, signatures.parameter("shared_embedding_collection_name", None))


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


def _prepare(columns, dimension, given):
    """Puts the initializer and the name into what an embedding is made with."""
    execution.only_in_graphs(
        "shared_embedding_columns are not supported when eager execution is enabled."
    )
    ordered = sorted(columns, key=lambda c: c.name)
    check_embedding(dimension, given, f"Columns: {columns}")
    _check_alike(ordered)
    if not given["shared_embedding_collection_name"]:
        name = "_".join(c.name for c in ordered) + "_shared_embedding"
        given["shared_embedding_collection_name"] = name


@signatures.taking(_SHARED)
def shared_embeddings(categorical_columns, dimension, **given):
    """A list of columns like embedding_column(), in the order of the categorical ones,
    that share one variable.

    For graphs: RuntimeError where operations run at once. ValueError for columns of
    several kinds or numbers of buckets. `shared_embedding_collection_name` names the
    variable.
    """
    _prepare(categorical_columns, dimension, given)
    buckets = categorical_columns[0].num_buckets
    creator = SharedEmbeddingColumnCreator(dimension, buckets, given)
    how = [given[field] for field in SharedEmbeddingColumn._fields[2:]]
    return [SharedEmbeddingColumn(c, creator, *how) for c in categorical_columns]


class SharedEmbeddingColumnCreator(tf.Module):
    """Has the variable of columns that share it: one in each graph."""

    def __init__(self, dimension, num_buckets, given):
        """`given` are the arguments of shared_embeddings()."""
        self._dimension = dimension
        self._num_buckets = num_buckets
        self._variable_name = given["shared_embedding_collection_name"]
        object.__setattr__(self, "_given", given)  # not tracked
        object.__setattr__(self, "_embedding_weights", {})  # {graph: variable}

    name = read_only("_variable_name", "The variable's name.")
    dimension = read_only("_dimension", "The length of the embedding's rows.")

    @property
    def embedding_weights(self):
        """The variable of the current graph, made when first asked for."""
        graph = tf.compat.v1.get_default_graph()
        if graph not in self._embedding_weights:
            given = self._given
            variable = tf.compat.v1.get_variable(
                self._variable_name,
                shape=(self._num_buckets, self._dimension),
                dtype=tf.float32,
                initializer=given["initializer"],
                trainable=given["trainable"],
            )
            load_first_value(
                variable, given["ckpt_to_load_from"], given["tensor_name_in_ckpt"]
            )
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


@signatures.taking(_SHARED)
def shared_embedding_columns_v1(categorical_columns, dimension, **given):
    """shared_embeddings() for tf.compat.v1.feature_column.input_layer and linear_model.

    The variable is made in the scope of the first of the columns, and kept in a
    collection of its name.
    """
    _prepare(categorical_columns, dimension, given)
    return [
        ScopedSharedEmbeddingColumn(c, dimension, **given) for c in categorical_columns
    ]


class ScopedSharedEmbeddingColumn(
    LooksUp,
    collections.namedtuple("ScopedSharedEmbeddingColumn", embedding_fields(_SHARED)),
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
