"""What ready-made estimators of one kind share: their heads, their models' parts."""

import math

from headrace.estimator.canned import optimizers
from headrace.estimator.canned.models import CannedEstimator
from headrace.estimator.canned.networks import Baseline, Linear, Network
from headrace.estimator.heads.classes import BinaryClassHead, MultiClassHead
from headrace.estimator.heads.numbers import RegressionHead
from headrace.v1 import partitioned_variables


class Family(CannedEstimator):
    """An estimator by its arguments: `_new_head` and `_new_parts` say the rest.

    Attributes of subclasses:
      _heads: the classes of heads for two classes, for more, and for numbers.
      _optimizer: a function of an optimizer and a learning rate that gives the one to
        use.
    """

    _heads = (BinaryClassHead, MultiClassHead, RegressionHead)
    _optimizer = staticmethod(optimizers.instance)

    def _begin(self, model_dir, config, warm_start_from=None, **given):
        head = self._new_head(given)
        parts, plan = self._new_parts(given)
        super().__init__(head, parts, plan, model_dir, config, warm_start_from)


class Classifier:
    """The head of a classifier."""

    def _new_head(self, given):
        two, more, _ = self._heads
        n_classes = given["n_classes"]
        names = ("weight_column", "label_vocabulary", "loss_reduction")
        how = {name: given[name] for name in names}
        return two(**how) if n_classes == 2 else more(n_classes, **how)


class Regressor:
    """The head of a regression."""

    def _new_head(self, given):
        names = ("label_dimension", "weight_column", "loss_reduction")
        return self._heads[2](**{name: given[name] for name in names})


class WithHead:
    """A head of the user's."""

    def _new_head(self, given):
        return given["head"]


def _columns(columns):
    return list(columns) if isinstance(columns, (list, tuple, set)) else [columns]


def _cut(given, name):
    """The partitioner of that name; TensorFlow 1's models, which alone take any, have
    their variables in one part each without it, which names of slots tell."""
    if not {"partitioner", "input_layer_partitioner"} & set(given):
        return None
    return given.get(name) or partitioned_variables.fixed_size_partitioner(1)


class DNNFamily(Family):
    """Hidden layers."""

    _rate = None  # that optimizers by name have: their own

    def _new_parts(self, given):
        columns = _columns(given["feature_columns"])
        network = _network(given, columns, "")
        optimizer = given["optimizer"]
        return [network], lambda: [(self._optimizer(optimizer, self._rate), "dnn")]


def _network(given, columns, prefix):
    return Network(
        given[f"{prefix}hidden_units"],
        columns,
        given[f"{prefix}activation_fn"],
        given[f"{prefix}dropout"],
        given["batch_norm"],
        _cut(given, None),
        _cut(given, "input_layer_partitioner"),
    )


class LinearFamily(Family):
    """Weighted columns."""

    _rate = 0.2

    def _new_parts(self, given):
        columns, optimizer = _columns(given["feature_columns"]), given["optimizer"]
        model = Linear(columns, given["sparse_combiner"], _cut(given, "partitioner"))
        rate = min(self._rate, 1.0 / math.sqrt(max(len(columns), 1)))
        return [model], lambda: [(self._optimizer(optimizer, rate), "linear")]


class CombinedFamily(Family):
    """Hidden layers and weighted columns, added: either may lack."""

    _dnn_rate, _linear_rate = 0.001, 0.005

    def _new_parts(self, given):
        dnn = _columns(given["dnn_feature_columns"] or [])
        linear = _columns(given["linear_feature_columns"] or [])
        if not dnn and not linear:
            raise ValueError(
                "Either linear_feature_columns or dnn_feature_columns must be defined."
            )
        if dnn and not given["dnn_hidden_units"]:
            raise ValueError(
                "dnn_hidden_units must be defined when dnn_feature_columns is specified."
            )
        parts, plan = [], []
        if dnn:
            parts.append(_network(given, dnn, "dnn_"))
            plan.append((given["dnn_optimizer"], self._dnn_rate, "dnn"))
        if linear:
            partitioner = _cut(given, "input_layer_partitioner")
            combiner = given["linear_sparse_combiner"]
            parts.append(Linear(linear, combiner, partitioner, described=True))
            rate = min(self._linear_rate, 1.0 / math.sqrt(len(linear)))
            plan.append((given["linear_optimizer"], rate, "linear"))
        return parts, lambda: [(self._optimizer(o, r), scope) for o, r, scope in plan]


class BaselineFamily(Family):
    """A bias for each logit."""

    _rate = 0.3

    def _new_parts(self, given):
        optimizer = given["optimizer"]
        return [Baseline()], lambda: [
            (self._optimizer(optimizer, self._rate), "baseline")
        ]
