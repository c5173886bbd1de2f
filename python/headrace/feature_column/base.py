"""What columns are: their interfaces, and what keeps transformed features."""

import abc
import collections

from headrace import _api as tf
from headrace.framework.support import signatures


class FeatureColumn(metaclass=abc.ABCMeta):
    """How one input of a model is made of raw features.

    A column has values that never change: columns of equal arguments are equal, and
    sort by their descriptions.
    """

    @property
    @abc.abstractmethod
    def name(self):
        """The column's name, which variables made for it carry."""

    def __lt__(self, other):
        return str(self) < str(other)

    def __gt__(self, other):
        return str(self) > str(other)

    @abc.abstractmethod
    def transform_feature(self, transformation_cache, state_manager):
        """What is computed of the raw features, once for all that need it: a tensor,
        a sparse tensor or several of them."""

    @property
    @abc.abstractmethod
    def parse_example_spec(self):
        """{feature: configuration} for tf.io.parse_example."""

    def create_state(self, state_manager):  # noqa: B027  (most columns have none)
        """Makes the column's variables by `state_manager`."""

    @property
    @abc.abstractmethod
    def _is_v2_column(self):
        """True: the column keeps its variables in a StateManager."""

    @property
    @abc.abstractmethod
    def parents(self):
        """The columns, and the names of raw features, that this one reads: a list."""

    def get_config(self):
        """The arguments as a dict that JSON can hold, for from_config()."""
        raise NotImplementedError("Must be implemented in subclasses.")

    @classmethod
    def from_config(cls, config, custom_objects=None, columns_by_name=None):
        """A column of what get_config() gave.

        `custom_objects` are functions by name, `columns_by_name` the columns that were
        made so far, which are used again.
        """
        raise NotImplementedError("Must be implemented in subclasses.")


class DenseColumn(FeatureColumn):
    """A column that gives a dense tensor of a fixed shape for each example."""

    @property
    @abc.abstractmethod
    def variable_shape(self):
        """The TensorShape of one example's values."""

    @abc.abstractmethod
    def get_dense_tensor(self, transformation_cache, state_manager):
        """A tensor of shape [batch, ...]."""


class CategoricalColumn(FeatureColumn):
    """A column that gives numbers of categories."""

    IdWeightPair = collections.namedtuple(
        "IdWeightPair", ("id_tensor", "weight_tensor")
    )

    @property
    @abc.abstractmethod
    def num_buckets(self):
        """How many categories there are; numbers go from 0 to num_buckets - 1."""

    @abc.abstractmethod
    def get_sparse_tensors(self, transformation_cache, state_manager):
        """An IdWeightPair of sparse tensors; weights may be None."""


class SequenceDenseColumn(FeatureColumn):
    """A column that gives a dense tensor for each step of a sequence."""

    TensorSequenceLengthPair = collections.namedtuple(
        "TensorSequenceLengthPair", ("dense_tensor", "sequence_length")
    )

    @abc.abstractmethod
    def get_sequence_dense_tensor(self, transformation_cache, state_manager):
        """A TensorSequenceLengthPair: [batch, steps, ...], and [batch] int64."""


class StateManager:
    """Where columns keep variables and tables. Subclasses say where that is."""

    def create_variable(
        self,
        feature_column,
        name,
        shape,
        dtype=None,
        trainable=True,
        use_resource=True,
        initializer=None,
    ):
        """A new variable of a column."""
        raise NotImplementedError("StateManager.create_variable")

    def add_variable(self, feature_column, var):
        """Keeps a variable that was made elsewhere."""
        raise NotImplementedError("StateManager.add_variable")

    def get_variable(self, feature_column, name):
        """The variable that create_variable made."""
        raise NotImplementedError("StateManager.get_variable")

    def add_resource(self, feature_column, name, resource):
        """Keeps an object, such as a table, of a column."""
        raise NotImplementedError("StateManager.add_resource")

    def has_resource(self, feature_column, name):
        """Whether add_resource was called."""
        raise NotImplementedError("StateManager.has_resource")

    def get_resource(self, feature_column, name):
        """What add_resource was given."""
        raise NotImplementedError("StateManager.get_resource")


class VariablesByColumn(StateManager):
    """A StateManager whose variables are made by a function."""

    def __init__(self, make_variable):
        self._make_variable = make_variable
        self._variables = {}  # {(column, name): variable}
        self._resources = {}  # {(column, name, graph): object}

    @signatures.taking(signatures.parameters_of(StateManager.create_variable))
    def create_variable(self, feature_column, name, shape, dtype=None, **given):
        if (feature_column, name) in self._variables:
            raise ValueError("Variable already exists.")
        dtype = tf.float32 if dtype is None else dtype
        made = self._make_variable(feature_column, name, shape, dtype, **given)
        self._variables[feature_column, name] = made
        return made

    def add_variable(self, feature_column, var):
        self._variables[feature_column, var.name] = var

    def get_variable(self, feature_column, name):
        if (feature_column, name) not in self._variables:
            raise ValueError("Variable does not exist.")
        return self._variables[feature_column, name]

    @staticmethod
    def _place():
        """None for objects that live eagerly, the graph for those of a plain graph."""
        with tf.init_scope():
            return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()

    def add_resource(self, feature_column, name, resource):
        self._resources[feature_column, name, self._place()] = resource

    def has_resource(self, feature_column, name):
        return (feature_column, name, self._place()) in self._resources

    def get_resource(self, feature_column, name):
        if not self.has_resource(feature_column, name):
            raise ValueError("Resource does not exist.")
        return self._resources[feature_column, name, self._place()]


def resource(state_manager, column, name, make):
    """The object of that name that `state_manager` keeps for a column, made when it is
    first asked for; outside of traced functions, so that all of them may use it."""
    if state_manager is not None and state_manager.has_resource(column, name):
        return state_manager.get_resource(column, name)
    with tf.init_scope():
        made = make()
    if state_manager is not None:
        state_manager.add_resource(column, name, made)
    return made


class FeatureTransformationCache:
    """The raw features, and what columns computed of them: each once.

    Features are tensors, sparse or ragged tensors, or what becomes a tensor. Ragged
    ones are seen as sparse ones; those of rank 1 get a second dimension.
    """

    def __init__(self, features):
        self._features = features.copy()
        self._feature_tensors = {}

    def get(self, key, state_manager, training=None):
        """The feature of a name, or what a column makes of the features.

        ValueError for a name that there is no feature of and for a column that gives
        nothing, TypeError for a key of another type.
        """
        if key in self._feature_tensors:
            return self._feature_tensors[key]
        if key in self._features:
            found = _as_feature(key, self._features[key])
        elif isinstance(key, str):
            raise ValueError(f"Feature {key} is not in features dictionary.")
        elif not isinstance(key, FeatureColumn):
            raise TypeError(
                f'"key" must be either a "str" or "FeatureColumn". Provided: {key}'
            )
        else:
            found = key.transform_feature(self, state_manager)
            if found is None:
                raise ValueError(f"Column {key.name} is not supported.")
        self._feature_tensors[key] = found
        return found


def _as_feature(key, raw):
    if isinstance(raw, tf.RaggedTensor):
        return raw.to_sparse()
    if isinstance(raw, tf.compat.v1.SparseTensorValue):
        raw = tf.SparseTensor.from_value(raw)
    if isinstance(raw, tf.SparseTensor):
        if raw.shape.rank == 0:
            raise ValueError(f"Feature (key: {key}) cannot have rank 0. Given: {raw}")
        if raw.shape.rank is None:
            # Of one dimension or more: a size of 1 is put behind the former.
            extra = tf.ones([tf.cast(tf.rank(raw) < 2, tf.int32)], tf.int64)
            shape = tf.concat([raw.dense_shape, extra], axis=0)
            return tf.sparse.reshape(raw, shape)
        if raw.shape.rank > 1:
            return raw
        return tf.sparse.reshape(raw, tf.stack([raw.dense_shape[0], 1]))
    tensor = tf.convert_to_tensor(raw)
    rank = tensor.shape.rank
    if rank == 0:
        raise ValueError(f"Feature (key: {key}) cannot have rank 0. Given: {raw}")
    if rank is None:
        checked = tf.debugging.assert_positive(
            tf.rank(tensor),
            message=f"Feature (key: {key}) cannot have rank 0. Given: {tensor}",
        )
        with tf.control_dependencies([checked] if checked is not None else []):
            return tf.cond(
                tf.equal(1, tf.rank(tensor)),
                lambda: tf.expand_dims(tensor, -1),
                lambda: tf.identity(tensor),
            )
    return tf.expand_dims(tensor, -1) if rank == 1 else tensor


def to_sparse(tensor, ignore_value=None):
    """A sparse tensor of what is not `ignore_value`: by default what is not "", or for
    numbers -1 (integers) and 0 (others)."""
    if isinstance(tensor, tf.SparseTensor):
        return tensor
    tensor = tf.convert_to_tensor(tensor)
    if ignore_value is None:
        if tensor.dtype == tf.string:
            ignore_value = ""
        else:
            ignore_value = -1 if tensor.dtype.is_integer else 0
    ignored = tf.cast(ignore_value, tensor.dtype)
    indices = tf.where(tf.not_equal(tensor, ignored))
    return tf.SparseTensor(
        indices, tf.gather_nd(tensor, indices), tf.shape(tensor, out_type=tf.int64)
    )


def check_key(key):
    """ValueError for names of features that are not text."""
    if not isinstance(key, str):
        raise ValueError(
            f"key must be a string. Got: type {type(key)}. Given key: {key}."
        )


def check_string_or_integer(dtype, prefix):
    if dtype != tf.string and not dtype.is_integer:
        raise ValueError(f"{prefix} dtype must be string or integer. dtype: {dtype}.")


def check_values(column, dtype):
    """ValueError for values that are neither strings nor integers, and where a column
    of strings meets integers, or the other way."""
    check_string_or_integer(dtype, f"column_name: {column.key} input_tensor")
    if column.dtype.is_integer != dtype.is_integer:
        raise ValueError(
            "Column dtype and SparseTensors dtype must be compatible. "
            f"key: {column.key}, column dtype: {column.dtype}, tensor dtype: {dtype}"
        )


def sorted_columns(columns, kind=None):
    """Columns in the order of their names.

    ValueError for no columns, a dict, names that come twice and what is no `kind`.
    """
    if isinstance(columns, FeatureColumn):
        columns = [columns]
    if isinstance(columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    columns = list(columns)
    for column in columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                f"Items of feature_columns must be a {kind or 'FeatureColumn'}. Given "
                f"(type {type(column)}): {column}."
            )
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    by_name = {}
    for column in columns:
        if column.name in by_name:
            raise ValueError(
                "Duplicate feature column name found for columns: "
                f"{by_name[column.name]} and {column}. This usually means that these "
                "columns refer to same base feature. Either one must be discarded or a "
                "duplicated but renamed item must be inserted in features dict."
            )
        by_name[column.name] = column
    return sorted(columns, key=lambda c: c.name)


def check_dense(columns, kind, called):
    """ValueError for columns that are no `kind`, which messages call `called`."""
    for column in columns:
        if not isinstance(column, kind):
            raise ValueError(
                f"Items of feature_columns must be a {called}. You can wrap a "
                "categorical column with an embedding_column or indicator_column. "
                f"Given: {column}"
            )


def check_batch_sizes(tensors, columns):
    """ValueError where two tensors are known to be of other numbers of examples."""
    expected = None
    for index, tensor in enumerate(tensors):
        size = tensor.shape[0] if tensor.shape.rank else None
        if size is None:
            continue
        if expected is None:
            expected, first = size, index
        elif size != expected:
            raise ValueError(
                "Batch size (first dimension) of each feature must be same. Batch size "
                f"of columns ({columns[first].name}, {columns[index].name}): "
                f"({expected}, {size})"
            )


def features_dict(features):
    """ValueError for features that are no dict."""
    if not isinstance(features, dict):
        raise ValueError(
            "We expected a dictionary here. Instead we got: " + str(features)
        )
    return features
