"""tf.tpu.experimental.embedding: tables of embeddings, looked up where there is no TPU."""

from headrace import _api as tf
from headrace.context import late, strategies
from headrace.distribute.tpu_tables import FeatureConfig, _Optimizer
from headrace.framework import dtypes, nest
from headrace.framework.sparse_tensor import SparseTensor
from headrace.framework.tensor import Tensor
from headrace.framework.trackable import AutoTrackable
from headrace.framework.variables import Variable
from headrace.ops import math_ops
from headrace.ragged.ragged_tensor import RaggedTensor


def _tables_of(features):
    """The tables of features, each once, in order; names are made for those without.

    ValueError where two have one name.
    """
    tables = []
    for feature in features:
        if not any(feature.table is t for t in tables):
            tables.append(feature.table)
    names = []
    for i, table in enumerate(tables):
        if table.name is None:
            table.name = f"table_{i}"
        if table.name in names:
            raise ValueError(
                "Tables must have a unique name. Multiple tables with name "
                f"{table.name} found."
            )
        names.append(table.name)
    return tables


class _Tables(AutoTrackable):
    """The variables of the tables that features are looked up in, made when they are
    first asked for: of each table its parameters and the slots of its optimizer."""

    def __init__(self, feature_config, optimizer):
        self._feature_config = self._no_dependency(feature_config)
        self._flat_features = self._no_dependency(nest.flatten(feature_config))
        for feature in self._flat_features:
            if not isinstance(feature, FeatureConfig):
                raise ValueError(
                    "feature_config is a structure of "
                    "tf.tpu.experimental.embedding.FeatureConfig. Received: "
                    f"{feature!r}"
                )
        self._table_config = self._no_dependency(_tables_of(self._flat_features))
        for table in self._table_config:
            if table.optimizer is None:
                table.optimizer = optimizer
            own = table.optimizer
            if not (own is None or isinstance(own, _Optimizer)):
                raise ValueError(
                    f"{type(own)} is an unsupported optimizer class. Please pass an "
                    "instance of one of the optimizer classes under "
                    "tf.tpu.experimental.embedding."
                )
        self._built = False

    def build(self):
        """Makes the variables, unless they are there."""
        if self._built:
            return
        self._variables = {t.name: self._new_table(t) for t in self._table_config}
        self._built = True

    def _new_table(self, table):
        shape = (table.vocabulary_size, table.dim)
        dtype = dtypes.as_dtype(table.dtype)
        first = lambda: table.initializer(shape, dtype=dtype)
        parameters = Variable(first, name=table.name, dtype=dtype, shape=shape)
        optimizer, slots = table.optimizer, {}
        if optimizer is not None:
            names = optimizer._slot_names()
            make = optimizer.slot_variable_creation_fn or _new_slots
            slots = make(parameters, names, optimizer._slot_initializers())
        return {**slots, "parameters": parameters}

    @property
    def embedding_tables(self):
        """{TableConfig: its variable, [vocabulary_size, dim]}."""
        self.build()
        return {t: self._variables[t.name]["parameters"] for t in self._table_config}


def _new_slots(table, names, initializers):
    """The variables of a table's slots: {name: variable of the table's shape}."""
    sizes = table.shape.as_list()
    return {
        name: Variable(
            make(sizes, dtype=table.dtype),
            trainable=False,
            name=f"{table.name.removesuffix(':0')}/{name}",
        )
        for name, make in zip(names, initializers)
    }


class TPUEmbeddingForServing(_Tables):
    """Looks features up on CPUs, in the tables of a model that may have been trained
    elsewhere.

    Args:
      feature_config: a structure of FeatureConfigs.
      optimizer: of all tables that have none of their own: its slots are made, so that
        checkpoints of training are read.
      experimental_sparsecore_restore_info: of checkpoints of TPUs alone: None.

    Raises:
      ValueError: two tables have one name.
      NotImplementedError: experimental_sparsecore_restore_info is given.
    """

    def __init__(
        self, feature_config, optimizer, experimental_sparsecore_restore_info=None
    ):
        if experimental_sparsecore_restore_info is not None:
            raise NotImplementedError(
                "experimental_sparsecore_restore_info: there are no TPUs, so their "
                "layouts of tables are not read"
            )
        super().__init__(feature_config, optimizer)

    @property
    def variables(self):
        """{table's name: {"parameters" or a slot's name: variable}}."""
        self.build()
        return self._variables

    def embedding_lookup(self, features, weights=None):
        """What serving_embedding_lookup() gives for the tables here."""
        self.build()
        return serving_embedding_lookup(
            features, weights, self.embedding_tables, self._feature_config
        )

    __call__ = embedding_lookup


def _needs_tpu(name):
    """The error of what is created under a strategy of TPUs alone."""
    found = strategies.strategy() or late.default_strategy()
    return RuntimeError(
        f"{name} should be created under TPUStrategy but found {found!r}: "
        "there are no TPUs. On CPUs use TPUEmbeddingForServing."
    )


class TPUEmbeddingV0(_Tables):
    """Would train tables on the cores of TPUs; RuntimeError: there are none."""

    def __init__(self, feature_config, optimizer):
        del feature_config, optimizer
        raise _needs_tpu("TPUEmbeddingV0")


class TPUEmbeddingV2(_Tables):
    """Would train tables on the sparse cores of TPUs; RuntimeError: there are none."""

    def __init__(
        self,
        feature_config,
        optimizer=None,
        pipeline_execution_with_tensor_core=False,
        sparse_core_embedding_config=None,
    ):
        del feature_config, optimizer, pipeline_execution_with_tensor_core
        del sparse_core_embedding_config
        raise _needs_tpu("TPUEmbeddingV2")


class TPUEmbedding(_Tables):
    """The tables of a model whose lookups run on TPUs: here they are made, saved and
    restored, and cpu_embedding_lookup() or serving_embedding_lookup() look features up.

    Args:
      feature_config, optimizer: as of TPUEmbeddingForServing.
      pipeline_execution_with_tensor_core: False: there are no TPUs.

    Raises:
      NotImplementedError: pipeline_execution_with_tensor_core is true.
    """

    def __init__(
        self, feature_config, optimizer, pipeline_execution_with_tensor_core=False
    ):
        if pipeline_execution_with_tensor_core:
            raise NotImplementedError(
                "pipeline_execution_with_tensor_core: there are no TPUs"
            )
        super().__init__(feature_config, optimizer)

    def build(self, per_replica_input_shapes=None, per_replica_batch_size=None):
        """Makes the variables, unless they are there; shapes are TPUs' concern."""
        del per_replica_input_shapes, per_replica_batch_size
        super().build()

    def enqueue(self, features, weights=None, training=True, name=None, device=None):
        """RuntimeError: there are no TPUs to take features."""
        del features, weights, training, name, device
        raise _not_valid("enqueue")

    def dequeue(self, name=None):
        """RuntimeError: there are no TPUs to give embeddings."""
        del name
        raise _not_valid("dequeue")

    def apply_gradients(self, gradients, name=None):
        """RuntimeError: there are no TPUs to take gradients."""
        del gradients, name
        raise _not_valid("apply_gradients")


def _not_valid(method):
    return RuntimeError(
        f"{method} is not valid when TPUEmbedding object is not created under a "
        "TPUStrategy."
    )


def _paths(structure):
    return {
        "/".join(map(str, path)): value
        for path, value in nest.flatten_with_paths(structure)
    }


def serving_embedding_lookup(inputs, weights, tables, feature_config):
    """Looks features up in tables, on CPUs.

    Args:
      inputs: a structure of ids: dense, sparse or ragged tensors of integers; that of
        feature_config or a part of it.
      weights: None or a structure like inputs of weights, each None or of the ids' kind.
      tables: {TableConfig: variable}.
      feature_config: a structure of FeatureConfigs.

    Returns:
      A structure like inputs: for dense ids their embeddings, [..., dim]; for sparse and
      ragged ones those of each row combined, [batch, dim], or of sequences
      [batch, max_sequence_length, dim], with zeros behind the last.

    Raises:
      ValueError: the structures differ, or an input or weight is of another kind.
    """
    if weights is not None:
        nest.assert_same_structure(inputs, weights)
    configs = _paths(feature_config)
    ids = _paths(inputs)
    given = dict.fromkeys(ids) if weights is None else _paths(weights)
    if not set(ids) <= set(configs):
        raise ValueError(
            f"Inputs are not a subset of feature_config. Inputs keys are {set(ids)}, but "
            f"feature_config keys are {configs.keys()}"
        )
    found = [
        _lookup(path, x, given[path], tables[configs[path].table], configs[path])
        for path, x in ids.items()
    ]
    return nest.pack_sequence_as(inputs, found)


def _lookup(path, ids, weight, table, feature):
    if isinstance(ids, Tensor):
        if weight is not None:
            raise ValueError(f"Weight specified for {path}, but input is dense.")
        if feature.max_sequence_length > 0:
            raise ValueError(
                f"Feature {path} is a sequence feature but a dense tensor was passed."
            )
        return tf.nn.embedding_lookup(table, ids)
    if not isinstance(ids, (SparseTensor, RaggedTensor)):
        raise ValueError(
            f"Input {path} is type {type(ids)}. Tensor, SparseTensor or RaggedTensor "
            "expected."
        )
    if feature.max_sequence_length > 0:
        if weight is not None:
            raise ValueError(
                f"Weight specified for {path}, but this is a sequence feature."
            )
        return _sequences(ids, table, feature)
    return _combined(ids, weight, table, feature)


def _sequences(ids, table, feature):
    """The first embeddings of each row: [batch, max_sequence_length, dim]."""
    length, dim = feature.max_sequence_length, feature.table.dim
    if isinstance(ids, SparseTensor):
        ids = RaggedTensor.from_sparse(ids)
    rows = tf.nn.embedding_lookup(table, ids[:, :length])
    return rows.to_tensor(shape=[None, length, dim])


def _combined(ids, weight, table, feature):
    combiner = feature.table.combiner
    is_sparse = isinstance(ids, SparseTensor)
    if not is_sparse:
        if ids.dtype not in (dtypes.int32, dtypes.int64):
            ids = math_ops.cast(ids, dtypes.int64)
        return tf.nn.embedding_lookup_sparse(table, ids, weight, combiner)
    ids = SparseTensor(ids.indices, math_ops.cast(ids.values, dtypes.int64), ids.shape)
    if not feature.validate_weights_and_indices:
        return tf.nn.embedding_lookup_sparse(table, ids, weight, combiner)
    return tf.nn.safe_embedding_lookup_sparse(
        table, ids, sparse_weights=weight, combiner=combiner
    )
