"""Layers of feature columns: DenseFeatures and SequenceFeatures."""

from headrace import _api as tf
from headrace.feature_column import base, sequence, serialization
from headrace.framework.name_scopes import name_scope
from headrace.keras.base.base_layer import Layer


class _FeatureLayer(Layer):
    """Features by name in, what columns make of them out."""

    _expected = None  # the class of columns
    _config_names = ()

    def __init__(self, feature_columns, trainable=True, name=None, **kwargs):
        super().__init__(trainable=trainable, name=name, **kwargs)
        columns = base.sorted_columns(feature_columns)
        base.check_dense(columns, self._expected, str(self._expected))
        # Columns are values: nothing in them is tracked.
        object.__setattr__(self, "_feature_columns", columns)
        state = base.VariablesByColumn(self._make_variable)
        object.__setattr__(self, "_state_manager", state)

    def _make_variable(
        self, column, name, shape, dtype, trainable, use_resource, initializer
    ):
        """A weight, which checkpoints know by the column's name too."""
        return self.add_weight(
            name=name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            trainable=self.trainable and trainable,
            tracked_as=f"{column.name}/{name}",
        )

    def build(self, input_shape):
        for column in self._feature_columns:
            with name_scope(column.name):
                column.create_state(self._state_manager)
        super().build(input_shape)

    def _prepared(self, inputs):
        """Each feature as a tensor, sparse or ragged tensor; texts are allowed."""
        base.features_dict(inputs)
        return {key: self._feature(value) for key, value in inputs.items()}

    def _feature(self, value):
        if not getattr(type(value), "_is_composite_tensor", False):
            if isinstance(value, tf.compat.v1.SparseTensorValue):
                value = tf.SparseTensor.from_value(value)
            else:
                value = tf.convert_to_tensor(value)
        wanted = tf.as_dtype(self.dtype)
        if self._autocast and value.dtype.is_floating and value.dtype != wanted:
            return tf.cast(value, wanted)
        return value

    def _shape_of(self, shape, column):
        """The shape of a column's part of the output."""
        raise NotImplementedError

    def _flat(self, column, tensor):
        return tf.reshape(tensor, self._shape_of(tf.shape(tensor), column))

    def compute_output_shape(self, input_shape):
        """The shape of the output for a shape that begins as the output does."""
        total = sum(c.variable_shape.num_elements() for c in self._feature_columns)
        shape = tf.TensorShape(input_shape).as_list()
        return tf.TensorShape([*shape[: self._leading], total])

    def get_config(self):
        config = super().get_config()
        config["feature_columns"] = serialization.serialize_feature_columns(
            self._feature_columns
        )
        config["partitioner"] = None
        return config

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        if config.pop("partitioner", None) is not None:
            raise NotImplementedError(f"{cls.__name__}: partitioner is not supported")
        config["feature_columns"] = serialization.deserialize_feature_columns(
            config["feature_columns"], custom_objects
        )
        return cls(**config)


class DenseFeatures(_FeatureLayer):
    """[batch, width]: what dense feature columns give, side by side in the order of
    the columns' names.

    Called with a dict of features. ValueError for columns that are not dense, and for
    features that are missing or of several numbers of examples.
    """

    __module__ = "headrace.keras.layer.feature_layers"  # a layer as Keras has them

    _expected = base.DenseColumn
    _leading = 1

    def _shape_of(self, shape, column):
        return [shape[0], column.variable_shape.num_elements()]

    def call(self, features, cols_to_output_tensors=None, training=None):
        cache = base.FeatureTransformationCache(base.features_dict(features))
        outputs = []
        for column in self._feature_columns:
            with tf.name_scope(column.name):
                tensor = column.get_dense_tensor(cache, self._state_manager)
                outputs.append(self._flat(column, tensor))
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = outputs[-1]
        base.check_batch_sizes(outputs, self._feature_columns)
        return tf.concat(outputs, axis=-1)


class SequenceFeatures(_FeatureLayer):
    """(values [batch, steps, width], lengths [batch]): what columns of sequences give,
    side by side in the order of the columns' names.

    Called with a dict of features. ValueError for columns of no sequences,
    InvalidArgumentError where the columns' sequences have several lengths.
    """

    __module__ = "headrace.keras.layer.feature_layers"  # a layer as Keras has them

    _expected = base.SequenceDenseColumn
    _leading = 2

    def _shape_of(self, shape, column):
        return [shape[0], shape[1], column.variable_shape.num_elements()]

    def call(self, features, training=None):
        cache = base.FeatureTransformationCache(base.features_dict(features))
        outputs, lengths = [], []
        for column in self._feature_columns:
            with tf.name_scope(column.name):
                tensor, length = column.get_sequence_dense_tensor(
                    cache, self._state_manager
                )
                outputs.append(self._flat(column, tensor))
                lengths.append(length)
        base.check_batch_sizes(lengths, self._feature_columns)
        length = sequence.all_equal(lengths)
        return tf.concat(outputs, axis=-1), length
