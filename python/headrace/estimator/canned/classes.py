"""tf.estimator's ready-made estimators.

Columns are feature columns, dense ones for hidden layers. Optimizers are Keras', their
names ("Adagrad", "Adam", "Ftrl", "RMSProp", "SGD"), or functions that give one. Labels
and `weight_column` are those of the heads: BinaryClassHead for two classes,
MultiClassHead for more, RegressionHead for numbers. `hidden_units` are the layers'
sizes, of which `activation_fn` is applied to each; `dropout` is the probability of
leaving an element out in training; `batch_norm` normalizes the layers.
`sparse_combiner` ("sum", "mean", "sqrtn") says how an example's categories are combined.
"""

from headrace import _api as tf
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
from headrace.framework.support import signatures


class DNNClassifier(Classifier, DNNFamily):
    """Classes by hidden layers on dense columns."""

    __init__ = signatures.constructor(
        "hidden_units, feature_columns, model_dir=None, n_classes=2, "
        "weight_column=None, label_vocabulary=None, optimizer='Adagrad', "
        "activation_fn=relu, dropout=None, config=None, warm_start_from=None, "
        "loss_reduction='sum_over_batch_size', batch_norm=False",
        Family._begin,
        relu=tf.nn.relu,
    )


class DNNRegressor(Regressor, DNNFamily):
    """Numbers by hidden layers on dense columns."""

    __init__ = signatures.constructor(
        "hidden_units, feature_columns, model_dir=None, label_dimension=1, "
        "weight_column=None, optimizer='Adagrad', activation_fn=relu, "
        "dropout=None, config=None, warm_start_from=None, "
        "loss_reduction='sum_over_batch_size', batch_norm=False",
        Family._begin,
        relu=tf.nn.relu,
    )


class DNNEstimator(WithHead, DNNFamily):
    """Hidden layers on dense columns, with a head."""

    __init__ = signatures.constructor(
        "head, hidden_units, feature_columns, model_dir=None, optimizer='Adagrad', "
        "activation_fn=relu, dropout=None, config=None, warm_start_from=None, "
        "batch_norm=False",
        Family._begin,
        relu=tf.nn.relu,
    )


class LinearClassifier(Classifier, LinearFamily):
    """Classes by weighted columns."""

    __init__ = signatures.constructor(
        "feature_columns, model_dir=None, n_classes=2, weight_column=None, "
        "label_vocabulary=None, optimizer='Ftrl', config=None, "
        "warm_start_from=None, loss_reduction='sum_over_batch_size', "
        "sparse_combiner='sum'",
        Family._begin,
    )


class LinearRegressor(Regressor, LinearFamily):
    """Numbers by weighted columns."""

    __init__ = signatures.constructor(
        "feature_columns, model_dir=None, label_dimension=1, weight_column=None, "
        "optimizer='Ftrl', config=None, warm_start_from=None, "
        "loss_reduction='sum_over_batch_size', sparse_combiner='sum'",
        Family._begin,
    )


class LinearEstimator(WithHead, LinearFamily):
    """Weighted columns, with a head."""

    __init__ = signatures.constructor(
        "head, feature_columns, model_dir=None, optimizer='Ftrl', config=None, "
        "sparse_combiner='sum', warm_start_from=None",
        Family._begin,
    )


class DNNLinearCombinedClassifier(Classifier, CombinedFamily):
    """Classes by hidden layers and weighted columns together."""

    __init__ = signatures.constructor(
        "model_dir=None, linear_feature_columns=None, linear_optimizer='Ftrl', "
        "dnn_feature_columns=None, dnn_optimizer='Adagrad', dnn_hidden_units=None, "
        "dnn_activation_fn=relu, dnn_dropout=None, n_classes=2, "
        "weight_column=None, label_vocabulary=None, config=None, "
        "warm_start_from=None, loss_reduction='sum_over_batch_size', "
        "batch_norm=False, linear_sparse_combiner='sum'",
        Family._begin,
        relu=tf.nn.relu,
    )


class DNNLinearCombinedRegressor(Regressor, CombinedFamily):
    """Numbers by hidden layers and weighted columns together."""

    __init__ = signatures.constructor(
        "model_dir=None, linear_feature_columns=None, linear_optimizer='Ftrl', "
        "dnn_feature_columns=None, dnn_optimizer='Adagrad', dnn_hidden_units=None, "
        "dnn_activation_fn=relu, dnn_dropout=None, label_dimension=1, "
        "weight_column=None, config=None, warm_start_from=None, "
        "loss_reduction='sum_over_batch_size', batch_norm=False, "
        "linear_sparse_combiner='sum'",
        Family._begin,
        relu=tf.nn.relu,
    )


class DNNLinearCombinedEstimator(WithHead, CombinedFamily):
    """Hidden layers and weighted columns together, with a head."""

    __init__ = signatures.constructor(
        "head, model_dir=None, linear_feature_columns=None, "
        "linear_optimizer='Ftrl', dnn_feature_columns=None, "
        "dnn_optimizer='Adagrad', dnn_hidden_units=None, dnn_activation_fn=relu, "
        "dnn_dropout=None, config=None, batch_norm=False, "
        "linear_sparse_combiner='sum'",
        Family._begin,
        relu=tf.nn.relu,
    )


class BaselineClassifier(Classifier, BaselineFamily):
    """Classes by how frequent they are."""

    __init__ = signatures.constructor(
        "model_dir=None, n_classes=2, weight_column=None, label_vocabulary=None, "
        "optimizer='Ftrl', config=None, loss_reduction='sum_over_batch_size'",
        Family._begin,
    )


class BaselineRegressor(Regressor, BaselineFamily):
    """The mean of the labels."""

    __init__ = signatures.constructor(
        "model_dir=None, label_dimension=1, weight_column=None, optimizer='Ftrl', "
        "config=None, loss_reduction='sum_over_batch_size'",
        Family._begin,
    )


class BaselineEstimator(WithHead, BaselineFamily):
    """A bias for each logit, with a head."""

    __init__ = signatures.constructor(
        "head, model_dir=None, optimizer='Ftrl', config=None",
        Family._begin,
    )
