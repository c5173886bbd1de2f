"""tf.estimator.export's outputs: what a model gives those that it is served to."""

import abc

from headrace import _api as tf
from headrace.saved_model import constants
from headrace.v1.saved import signature_defs
from headrace.v1.saved.tensor_info import build_tensor_info

# What the method names of signatures stand for, in the order in which they are told.
METHODS = {
    "Classify": constants.CLASSIFY_METHOD_NAME,
    "Regress": constants.REGRESS_METHOD_NAME,
    "Predict": constants.PREDICT_METHOD_NAME,
    "Train": "tensorflow/supervised/training",
    "Eval": "tensorflow/supervised/eval",
}


def _is_of(value, dtype):
    return tf.is_tensor(value) and value.dtype == dtype


def _one_string(tensors, method):
    """The only tensor of {name: tensor}, which is one of serialized examples."""
    if len(tensors) == 1:
        (only,) = tensors.values()
        if _is_of(only, tf.string):
            return only
    raise ValueError(
        f"{method} signatures can only accept a single tensor input of type tf.string. "
        "Please check to make sure that you have structured the "
        "serving_input_receiver_fn so that it creates a single string placeholder. If "
        "your model function expects multiple inputs, then use `tf.io.parse_example()` "
        f"to parse the string into multiple tensors.\n Received: {tensors}"
    )


class ExportOutput(abc.ABC):
    """What a model gives under one signature."""

    @abc.abstractmethod
    def as_signature_def(self, receiver_tensors):
        """The SignatureDef with the inputs {name: tensor}; ValueError where it cannot
        have such."""


class ClassificationOutput(ExportOutput):
    """Scores, a float32 tensor [batch, classes], names of classes, a string tensor of
    that shape, or both. ValueError for others."""

    def __init__(self, scores=None, classes=None):
        if scores is not None and not (
            tf.is_tensor(scores) and scores.dtype.is_floating
        ):
            raise ValueError(
                f"Classification scores must be a float32 Tensor; got {scores}"
            )
        if classes is not None and not _is_of(classes, tf.string):
            raise ValueError(
                f"Classification classes must be a string Tensor; got {classes}"
            )
        if scores is None and classes is None:
            raise ValueError(
                "Cannot create a ClassificationOutput with empty arguments. At least "
                "one of `scores` and `classes` must be defined."
            )
        self._scores, self._classes = scores, classes

    @property
    def scores(self):
        """The scores: a tensor, or None."""
        return self._scores

    @property
    def classes(self):
        """The names of the classes: a tensor, or None."""
        return self._classes

    def as_signature_def(self, receiver_tensors):
        examples = _one_string(receiver_tensors, "Classification")
        return signature_defs.classification_signature_def(
            examples, self._classes, self._scores
        )


class RegressionOutput(ExportOutput):
    """Numbers, a float32 tensor; ValueError for another."""

    def __init__(self, value):
        if not (tf.is_tensor(value) and value.dtype.is_floating):
            raise ValueError(
                f"Regression output value must be a float32 Tensor; got {value}"
            )
        self._value = value

    @property
    def value(self):
        """The numbers: a tensor."""
        return self._value

    def as_signature_def(self, receiver_tensors):
        examples = _one_string(receiver_tensors, "Regression")
        return signature_defs.regression_signature_def(examples, self._value)


def _tensors_by_name(values, prefix, single):
    """{name: tensor} of a dict or of one tensor, which is called `single`."""
    if not isinstance(values, dict):
        values = {single: values}
    for key, value in values.items():
        if not isinstance(key, (str, tuple)):
            raise ValueError(f"{prefix} output key must be a string; got {key}.")
        if not tf.is_tensor(value) and not hasattr(value, "dtype"):
            raise ValueError(f"{prefix} output value must be a Tensor; got {value}.")
    return {"/".join(k) if isinstance(k, tuple) else k: v for k, v in values.items()}


class PredictOutput(ExportOutput):
    """Tensors by name, or one, which is called "output". ValueError for what is none."""

    def __init__(self, outputs):
        self._outputs = _tensors_by_name(outputs, "Prediction", "output")

    @property
    def outputs(self):
        """The tensors: a dict by name."""
        return self._outputs

    def as_signature_def(self, receiver_tensors):
        return signature_defs.predict_signature_def(receiver_tensors, self._outputs)


def _as_tensor(update):
    """A tensor that is there once an operation has run."""
    if tf.is_tensor(update):
        return update
    with tf.control_dependencies([update]):
        return tf.constant(0.0, name="metric_op_wrapper")


class _SupervisedOutput(ExportOutput):
    """What a graph that is trained or evaluated gives: loss, predictions, metrics."""

    _method = None

    def __init__(self, loss=None, predictions=None, metrics=None):
        outputs = {}
        for name, given in (("loss", loss), ("predictions", predictions)):
            if given is not None:
                single = _tensors_by_name(given, name.capitalize(), name)
                outputs.update(
                    {n if n == name else f"{name}/{n}": v for n, v in single.items()}
                )
        for name, metric in (metrics or {}).items():
            value, update = metric
            outputs[f"metrics/{name}/value"] = value
            outputs[f"metrics/{name}/update_op"] = _as_tensor(update)
        self._outputs = outputs

    def as_signature_def(self, receiver_tensors):
        return signature_defs.build_signature_def(
            {n: build_tensor_info(x) for n, x in receiver_tensors.items()},
            {n: build_tensor_info(x) for n, x in self._outputs.items()},
            METHODS[self._method],
        )


class TrainOutput(_SupervisedOutput):
    """Of a graph for training."""

    _method = "Train"


class EvalOutput(_SupervisedOutput):
    """The outputs of a graph that evaluates: the loss, predictions (a tensor or tensors
    by name) and metrics, {name: (value, update)}."""

    _method = "Eval"


def checked(export_outputs, predictions):
    """{signature's name: ExportOutput} with the default one among them.

    None stands for the predictions. TypeError for what is no such dict, ValueError
    where there are several and none is called "serving_default".
    """
    default = constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if export_outputs is None:
        return {default: PredictOutput(predictions)}
    if not isinstance(export_outputs, dict):
        raise TypeError(f"`export_outputs` must be dict, received: {export_outputs}.")
    if not all(isinstance(x, ExportOutput) for x in export_outputs.values()):
        raise TypeError(
            "Values in `export_outputs` must be ExportOutput objects, received: "
            f"{export_outputs}."
        )
    if len(export_outputs) == 1:
        return {**export_outputs, default: next(iter(export_outputs.values()))}
    if default not in export_outputs:
        raise ValueError(
            "Multiple `export_outputs` were provided, but none of them are specified as "
            "the default. Use`tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY` to "
            "specify a default."
        )
    return dict(export_outputs)
