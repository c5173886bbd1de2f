"""tf.compat.v1.estimator's ready-made estimators: optimizers and reductions of losses
are TensorFlow 1's, and variables may be cut by partitioners."""

from headrace import _api as tf
from headrace.estimator.canned import optimizers
from headrace.estimator.canned.families import (
    BaselineFamily,
    Classifier,
    CombinedFamily,
    DNNFamily,
    Family,
    LinearFamily,
    Regressor,
    WithHead,
)
from headrace.estimator.heads import v1
from headrace.framework.support import signatures


class _V1:
    _heads = (v1.BinaryClassHead, v1.MultiClassHead, v1.RegressionHead)
    _optimizer = staticmethod(optimizers.instance_v1)
    _dnn_rate = 0.05


class DNNClassifier(_V1, Classifier, DNNFamily):
    """Classes by hidden layers on dense columns."""

    _rate = 0.05

    __init__ = signatures.constructor(
        "hidden_units, feature_columns, model_dir=None, n_classes=2, "
        "weight_column=None, label_vocabulary=None, optimizer='Adagrad', "
        "activation_fn=relu, dropout=None, input_layer_partitioner=None, "
        "config=None, warm_start_from=None, loss_reduction='weighted_sum', "
        "batch_norm=False",
        Family._begin,
        relu=tf.nn.relu,
    )


class DNNRegressor(_V1, Regressor, DNNFamily):
    """Numbers by hidden layers on dense columns."""

    _rate = 0.05

    __init__ = signatures.constructor(
        "hidden_units, feature_columns, model_dir=None, label_dimension=1, "
        "weight_column=None, optimizer='Adagrad', activation_fn=relu, "
        "dropout=None, input_layer_partitioner=None, config=None, "
        "warm_start_from=None, loss_reduction='weighted_sum', batch_norm=False",
        Family._begin,
        relu=tf.nn.relu,
    )


class DNNEstimator(_V1, WithHead, DNNFamily):
    """Hidden layers on dense columns, with a head."""

    _rate = 0.05

    __init__ = signatures.constructor(
        "head, hidden_units, feature_columns, model_dir=None, optimizer='Adagrad', "
        "activation_fn=relu, dropout=None, input_layer_partitioner=None, "
        "config=None, warm_start_from=None, batch_norm=False",
        Family._begin,
        relu=tf.nn.relu,
    )


class LinearClassifier(_V1, Classifier, LinearFamily):
    """Classes by weighted columns."""

    __init__ = signatures.constructor(
        "feature_columns, model_dir=None, n_classes=2, weight_column=None, "
        "label_vocabulary=None, optimizer='Ftrl', config=None, partitioner=None, "
        "warm_start_from=None, loss_reduction='weighted_sum', sparse_combiner='sum'",
        Family._begin,
    )


class LinearRegressor(_V1, Regressor, LinearFamily):
    """Numbers by weighted columns."""

    __init__ = signatures.constructor(
        "feature_columns, model_dir=None, label_dimension=1, weight_column=None, "
        "optimizer='Ftrl', config=None, partitioner=None, warm_start_from=None, "
        "loss_reduction='weighted_sum', sparse_combiner='sum'",
        Family._begin,
    )


class LinearEstimator(_V1, WithHead, LinearFamily):
    """Weighted columns, with a head."""

    __init__ = signatures.constructor(
        "head, feature_columns, model_dir=None, optimizer='Ftrl', config=None, "
        "partitioner=None, sparse_combiner='sum', warm_start_from=None",
        Family._begin,
    )


class DNNLinearCombinedClassifier(_V1, Classifier, CombinedFamily):
    """Classes by hidden layers and weighted columns together."""

    __init__ = signatures.constructor(
        "model_dir=None, linear_feature_columns=None, linear_optimizer='Ftrl', "
        "dnn_feature_columns=None, dnn_optimizer='Adagrad', dnn_hidden_units=None, "
        "dnn_activation_fn=relu, dnn_dropout=None, n_classes=2, "
        "weight_column=None, label_vocabulary=None, input_layer_partitioner=None, "
        "config=None, warm_start_from=None, loss_reduction='weighted_sum', "
        "batch_norm=False, linear_sparse_combiner='sum'",
        Family._begin,
        relu=tf.nn.relu,
    )


class DNNLinearCombinedRegressor(_V1, Regressor, CombinedFamily):
    """Numbers by hidden layers and weighted columns together."""

    __init__ = signatures.constructor(
        "model_dir=None, linear_feature_columns=None, linear_optimizer='Ftrl', "
        "dnn_feature_columns=None, dnn_optimizer='Adagrad', dnn_hidden_units=None, "
        "dnn_activation_fn=relu, dnn_dropout=None, label_dimension=1, "
        "weight_column=None, input_layer_partitioner=None, config=None, "
        "warm_start_from=None, loss_reduction='weighted_sum', batch_norm=False, "
        "linear_sparse_combiner='sum'",
        Family._begin,
        relu=tf.nn.relu,
    )


class DNNLinearCombinedEstimator(_V1, WithHead, CombinedFamily):
    """Hidden layers and weighted columns together, with a head."""

    __init__ = signatures.constructor(
        "head, model_dir=None, linear_feature_columns=None, "
        "linear_optimizer='Ftrl', dnn_feature_columns=None, "
        "dnn_optimizer='Adagrad', dnn_hidden_units=None, dnn_activation_fn=relu, "
        "dnn_dropout=None, input_layer_partitioner=None, config=None, "
        "batch_norm=False, linear_sparse_combiner='sum'",
        Family._begin,
        relu=tf.nn.relu,
    )


class BaselineClassifier(_V1, Classifier, BaselineFamily):
    """Classes by how frequent they are."""

    __init__ = signatures.constructor(
        "model_dir=None, n_classes=2, weight_column=None, label_vocabulary=None, "
        "optimizer='Ftrl', config=None, loss_reduction='weighted_sum'",
        Family._begin,
    )


class BaselineRegressor(_V1, Regressor, BaselineFamily):
    """The mean of the labels."""

    __init__ = signatures.constructor(
        "model_dir=None, label_dimension=1, weight_column=None, optimizer='Ftrl', "
        "config=None, loss_reduction='weighted_sum'",
        Family._begin,
    )


class BaselineEstimator(_V1, WithHead, BaselineFamily):
    """A bias for each logit, with a head."""

    __init__ = signatures.constructor(
        "head, model_dir=None, optimizer='Ftrl', config=None",
        Family._begin,
    )
