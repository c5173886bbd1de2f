"""The logits of ready-made models: functions that make a graph's variables."""

from headrace import _api as tf
from headrace.estimator.mode_keys import ModeKeys
from headrace.feature_column import layers_v1
from headrace.v1 import graph_summaries as summary
from headrace.v1.layer import classes as layers
from headrace.v1.variable_scope import get_variable, variable_scope

_MOMENTUM = 0.999  # of batch normalization, as upstream's


def _describe(value, name):
    """Summaries of a layer's output: how many are zero, and how they are spread."""
    summary.scalar(f"{name}/fraction_of_zero_values", tf.nn.zero_fraction(value))
    summary.histogram(f"{name}/activation", value)


class Network:
    """Hidden layers on dense columns.

    `hidden_units`: the sizes of the layers; `activation_fn` of each, then dropout with
    the probability `dropout` while it is trained, then with `batch_norm` normalization.
    """

    scope = "dnn"

    def __init__(
        self,
        hidden_units,
        feature_columns,
        activation_fn,
        dropout,
        batch_norm,
        partitioner=None,
        input_partitioner=None,
    ):
        self._hidden_units, self._columns = hidden_units, feature_columns
        self._activation_fn, self._dropout = activation_fn, dropout
        self._batch_norm, self._partitioner = batch_norm, partitioner
        self._input_partitioner = input_partitioner

    def logits(self, features, units, training):
        """[batch, units]."""
        with variable_scope(self.scope, partitioner=self._partitioner):
            with variable_scope(
                "input_from_feature_columns", partitioner=self._input_partitioner
            ):
                net = layers_v1.dense_input(features, self._columns)
            for number, size in enumerate(self._hidden_units):
                net = self._layer(net, number, size, training)
            logits = _dense(net, units, None, "logits")
        with tf.name_scope(""):
            _describe(logits, f"{self.scope}/logits")
        return logits

    def _layer(self, net, number, size, training):
        name = f"hiddenlayer_{number}"
        net = _dense(net, size, self._activation_fn, name)
        if self._dropout is not None and training:
            net = layers.dropout(net, rate=self._dropout, training=True)
        if self._batch_norm:
            with variable_scope(name):
                net = layers.batch_normalization(
                    net,
                    training=training,
                    momentum=_MOMENTUM,
                    name=f"batchnorm_{number}",
                )
        with tf.name_scope(""):
            _describe(net, f"{self.scope}/{name}")
        return net


def _dense(net, units, activation, name):
    initializer = tf.compat.v1.glorot_uniform_initializer()
    return layers.dense(
        net, units, activation=activation, kernel_initializer=initializer, name=name
    )


class Linear:
    """Weighted columns; the weights of categories of one example are combined as
    `sparse_combiner` says. With `described` summaries tell of the logits too."""

    scope = "linear"

    def __init__(
        self, feature_columns, sparse_combiner, partitioner=None, described=False
    ):
        self._columns, self._sparse_combiner = feature_columns, sparse_combiner
        self._partitioner, self._described = partitioner, described

    def logits(self, features, units, training):
        """[batch, units]."""
        of_columns = {}
        with variable_scope(self.scope, partitioner=self._partitioner):
            logits = layers_v1.linear_model(
                features,
                self._columns,
                units,
                self._sparse_combiner,
                cols_to_vars=of_columns,
            )
        bias = of_columns.pop("bias")
        with tf.name_scope(""):
            _describe_weights(bias, of_columns, units)
            if self._described:
                _describe(logits, self.scope)
        return logits


def _describe_weights(bias, of_columns, units):
    summary.histogram("bias", bias[0]) if units > 1 else summary.scalar(
        "bias", tf.reshape(bias[0], [])
    )
    weights = [tf.reshape(w, [-1]) for parts in of_columns.values() for w in parts]
    fraction = tf.nn.zero_fraction(tf.concat(weights, 0))
    summary.scalar("fraction_of_zero_weights", fraction)


class Baseline:
    """A bias for each logit, whatever the features are."""

    scope = "baseline"

    def logits(self, features, units, training):
        """[batch, units]."""
        values = tf.nest.flatten(features, expand_composites=False)
        if not values:
            raise ValueError("Features dictionary must not be empty")
        first = values[0]
        is_sparse = isinstance(first, tf.SparseTensor)
        batch = first.dense_shape[0] if is_sparse else tf.shape(first)[0]
        with variable_scope(self.scope):
            zeros = tf.compat.v1.zeros_initializer()
            bias = get_variable("bias", [units], tf.float32, zeros)
            return tf.ones([tf.cast(batch, tf.int32), 1]) * bias


def dnn_logit_fn_builder(
    units,
    hidden_units,
    feature_columns,
    activation_fn,
    dropout,
    input_layer_partitioner,
    batch_norm,
):
    """logit_fn(features, mode) that gives [batch, units] by hidden layers. ValueError
    for `units` that are no int."""
    if not isinstance(units, int):
        raise ValueError(f"units must be an int.  Given type: {type(units)}")
    how = activation_fn, dropout, batch_norm, input_layer_partitioner
    network = Network(hidden_units, feature_columns, *how)

    def dnn_logit_fn(features, mode):
        return network.logits(features, units, mode == ModeKeys.TRAIN)

    return dnn_logit_fn


def linear_logit_fn_builder(units, feature_columns, sparse_combiner="sum"):
    """logit_fn(features) that gives [batch, units] by weighted columns."""
    model = Linear(feature_columns, sparse_combiner)

    def linear_logit_fn(features):
        return model.logits(features, units, training=False)

    return linear_logit_fn
