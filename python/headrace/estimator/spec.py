"""tf.estimator.EstimatorSpec: what a model_fn gives."""

import itertools

from headrace.context import stack
from headrace.estimator import export_outputs
from headrace.estimator.mode_keys import ALL, ModeKeys
from headrace.framework import conversion, tensor
from headrace.framework.support import signatures
from headrace.graph.operation import Operation
from headrace.ops import array_ops
from headrace.v1.train.scaffold import Scaffold
from headrace.v1.train.session_run_hook import SessionRunHook


class EstimatorSpec(
    signatures.tuple_of(
        "EstimatorSpec",
        "mode, predictions=None, loss=None, train_op=None, eval_metric_ops=None, "
        "export_outputs=None, training_chief_hooks=None, training_hooks=None, "
        "scaffold=None, evaluation_hooks=None, prediction_hooks=None",
    )
):
    """The operations of a model in one mode, checked."""

    @staticmethod
    def _check(given):
        mode = given["mode"]
        if mode not in ALL:
            raise ValueError(
                f"Mode not recognized: {mode}. Each mode must be one of {list(ALL)}"
            )
        given["train_op"] = _checked_train_op(given["train_op"], mode)
        given["loss"] = _checked_loss(given["loss"], mode)
        given["predictions"] = _checked_predictions(given["predictions"], mode)
        given["eval_metric_ops"] = _checked_metrics(given["eval_metric_ops"])
        if mode == ModeKeys.PREDICT or given["export_outputs"] is not None:
            given["export_outputs"] = export_outputs.checked(
                given["export_outputs"], given["predictions"]
            )
        hooks = {n: tuple(v or ()) for n, v in given.items() if n.endswith("hooks")}
        given.update(hooks)
        for hook in itertools.chain(*hooks.values()):
            if not isinstance(hook, SessionRunHook):
                raise TypeError(
                    f"All hooks must be SessionRunHook instances, given: {hook}"
                )
        scaffold = given["scaffold"] = given["scaffold"] or Scaffold()
        if not isinstance(scaffold, Scaffold):
            raise TypeError(f"scaffold must be tf.train.Scaffold. Given: {scaffold}")


def _check_graph(value, what):
    graph = getattr(value, "graph", None)
    if graph is not None and graph is not stack.default_graph():
        raise ValueError(
            f"{what} must be from the default graph. Possible causes of this error: "
            "1. The op is created in a different graph. 2. model_fn enters a graph of "
            "its own."
        )
    return value


def _checked_train_op(train_op, mode):
    if train_op is None:
        if mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        return None
    if not (tensor.is_tensor(train_op) or isinstance(train_op, Operation)):
        raise TypeError(f"train_op must be Operation or Tensor, given: {train_op}")
    return _check_graph(train_op, "train_op")


def _checked_loss(loss, mode):
    if loss is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError("Missing loss.")
        return None
    loss = conversion.convert_to_tensor(loss)
    if loss.shape.num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar, given: {loss}")
    if loss.shape.rank not in (None, 0):
        loss = array_ops.squeeze(loss)
    return _check_graph(loss, "loss")


def _checked_predictions(predictions, mode):
    if predictions is None:
        if mode == ModeKeys.PREDICT:
            raise ValueError("Missing predictions.")
        return {}
    values = predictions.values() if isinstance(predictions, dict) else [predictions]
    for value in values:
        _check_graph(value, "prediction values")
    return predictions


def _checked_metrics(metrics):
    metrics = metrics or {}
    if not isinstance(metrics, dict):
        raise TypeError(f"eval_metric_ops must be a dict, given: {metrics}")
    for key, value in metrics.items():
        if hasattr(value, "update_state"):
            if not value.updates and not getattr(value, "variables", ()):
                raise ValueError(f"Please call update_state(...) on the {key} metric")
            continue
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeError(
                "Values of eval_metric_ops must be (metric_value, update_op) tuples, "
                f"given: {value} for key: {key}"
            )
    return metrics
