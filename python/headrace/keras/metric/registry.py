"""Metrics by name, and what "accuracy" means for an output."""

from headrace.context import stack
from headrace.keras import loss as losses
from headrace.keras import serialization
from headrace.keras.metric import (
    accuracy,
    base,
    confusion,
    overlap,
    reductions,
    regression,
    scores,
)

_CLASSES = {"Metric": base.Metric}
for _module in (reductions, accuracy, confusion, overlap, scores, regression):
    _CLASSES.update(serialization.classes_of(vars(_module), base.Metric))
NAMES = serialization.functions_of(losses.NAMES)
NAMES.update(serialization.functions_of(vars(accuracy)))
NAMES.update(_CLASSES)
NAMES["cosine_proximity"] = accuracy.cosine_similarity
get, deserialize = serialization.getter(NAMES, "metric function")
serialize = serialization.serializer("metric")

_KINDS = ("binary", "sparse_categorical", "categorical")
_BY_SHAPE = {
    name: tuple(NAMES[f"{kind}_{what}"] for kind in _KINDS)
    for what, short in (("accuracy", "acc"), ("crossentropy", "ce"))
    for name in (what, short)
}


def _of_shape(name, y_true, y_pred, loss):
    """The function that a general name stands for, given target, output and loss."""
    binary, sparse, categorical = _BY_SHAPE[name]
    out, target = y_pred.shape, getattr(y_true, "shape", None)
    if out.rank and out[-1] == 1 or loss == "binary_crossentropy":
        return binary
    if target is not None and target.rank is not None and out.rank is not None:
        if target.rank < out.rank or (target.rank == out.rank and target[-1] == 1):
            return sparse
    return categorical


_SHORT = {"accuracy": "acc", "crossentropy": "ce"}


def for_output(identifier, y_true, y_pred, loss=None):
    """The Metric for one of compile's metrics and an output; named as compile named it,
    in TensorFlow 1's ways by its function."""
    name = None
    if isinstance(identifier, str) and identifier in _BY_SHAPE:
        name, identifier = identifier, _of_shape(identifier, y_true, y_pred, loss)
        name = name if stack.all_v2() else _SHORT.get(name, name)
    elif isinstance(identifier, str):
        name, identifier = identifier, get(identifier)
        name = name if stack.all_v2() else None
    if getattr(identifier, "_is_metric", False):
        return identifier() if isinstance(identifier, type) else identifier
    if isinstance(identifier, losses.Loss):
        wrapped = identifier
        return reductions.MeanMetricWrapper(
            lambda y, p: wrapped.call(y, p), name=name or wrapped.name
        )
    if not callable(identifier):
        raise ValueError(f"Could not interpret metric identifier: {identifier}")
    return reductions.MeanMetricWrapper(
        identifier, name=name or getattr(identifier, "__name__", "metric")
    )
