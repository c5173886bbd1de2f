"""The model_fn of ready-made estimators."""

from headrace import _api as tf
from headrace.estimator.canned import optimizers
from headrace.estimator.estimator import Estimator
from headrace.estimator.mode_keys import ModeKeys
from headrace.v1 import collections
from headrace.v1.train import global_step


def _checked_features(features):
    if not isinstance(features, dict):
        raise ValueError(
            "features should be a dictionary of `Tensor`s. Given type: "
            f"{type(features)}"
        )
    return features


def _logits(parts, features, head, training):
    """The sum of what the parts of the model give."""
    given = [p.logits(features, head.logits_dimension, training) for p in parts]
    return given[0] if len(given) == 1 else tf.add_n(given, name="add")


def model_fn_of(head, parts, plan):
    """A model_fn: `parts` make the logits, `plan()` gives [(optimizer, scope)]."""

    def model_fn(features, labels, mode):
        training = mode == ModeKeys.TRAIN
        logits = _logits(parts, _checked_features(features), head, training)
        graph = tf.compat.v1.get_default_graph()
        keys = collections.GraphKeys
        return head.create_estimator_spec(
            features=features,
            mode=mode,
            logits=logits,
            labels=labels,
            train_op_fn=lambda loss: _step(loss, plan()),
            update_ops=graph.get_collection(keys.UPDATE_OPS),
            regularization_losses=graph.get_collection(keys.REGULARIZATION_LOSSES)
            or None,
        )

    return model_fn


def _step(loss, parts):
    plan = optimizers.Plan(parts)
    done = plan.update(loss)
    if plan.counts():
        return done
    with tf.control_dependencies([done]):
        return global_step.get_global_step().assign_add(1, read_value=False)


class CannedEstimator(Estimator):
    """An Estimator whose model_fn is made of a head and of parts."""

    def __init__(self, head, parts, plan, model_dir, config, warm_start_from=None):
        self._head = head
        super().__init__(
            model_fn=model_fn_of(head, parts, plan),
            model_dir=model_dir,
            config=config,
            warm_start_from=warm_start_from,
        )
