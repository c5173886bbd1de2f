"""SignatureDefs: what servers may feed to a graph and fetch from it."""

from headrace.context import errors
from headrace.framework import dtypes, execution
from headrace.framework.support import protos
from headrace.graph.tensor_protos import make_tensor_proto
from headrace.saved_model import constants
from headrace.v1.saved.tensor_info import (
    build_tensor_info,
    build_tensor_info_from_op,
    get_element_from_tensor_info,
)

_STRING = dtypes.string.as_datatype_enum
_FLOAT = dtypes.float32.as_datatype_enum


def build_signature_def(inputs=None, outputs=None, method_name=None, defaults=None):
    """A SignatureDef proto of {name: TensorInfo} and the name of a method; `defaults`
    are {name of an input: TensorProto, or a value} for requests that leave it out."""
    made = protos.SignatureDef(method_name=method_name)
    for name, info in (inputs or {}).items():
        made.inputs[name].CopyFrom(info)
    for name, info in (outputs or {}).items():
        made.outputs[name].CopyFrom(info)
    for name, value in (defaults or {}).items():
        made.defaults[name].CopyFrom(_proto_of(value))
    return made


def _proto_of(value):
    """A TensorProto of a value, or of the constant that a tensor of a graph is."""
    if isinstance(value, protos.TensorProto):
        return value
    known = execution.get_static_value(value)
    return make_tensor_proto(value if known is None else known)


def regression_signature_def(examples, predictions):
    """The SignatureDef of a regression: serialised examples in, numbers out.

    `examples` is a string tensor, `predictions` a float one; ValueError for others.
    """
    if examples is None:
        raise ValueError("Regression `examples` cannot be None.")
    if predictions is None:
        raise ValueError("Regression `predictions` cannot be None.")
    given = _examples("Regression", examples)
    info = build_tensor_info(predictions)
    if info.dtype != _FLOAT:
        raise ValueError(
            "Regression output tensors must be of type float. Found tensors with type "
            f"{info.dtype}."
        )
    return build_signature_def(
        {constants.REGRESS_INPUTS: given},
        {constants.REGRESS_OUTPUTS: info},
        constants.REGRESS_METHOD_NAME,
    )


def _examples(method, examples):
    info = build_tensor_info(examples)
    if info.dtype != _STRING:
        raise ValueError(
            f"{method} input tensors must be of type string. Found tensors of type "
            f"{info.dtype}."
        )
    return info


def classification_signature_def(examples, classes, scores):
    """The SignatureDef of a classification: serialised examples in, the names of
    classes, their scores, or both out.

    `examples` and `classes` are string tensors, `scores` is a float one; ValueError for
    others, and where both of the latter are None.
    """
    if examples is None:
        raise ValueError("Classification `examples` cannot be None.")
    if classes is None and scores is None:
        raise ValueError("Classification `classes` and `scores` cannot both be None.")
    given, outputs = _examples("Classification", examples), {}
    if classes is not None:
        info = build_tensor_info(classes)
        if info.dtype != _STRING:
            raise ValueError(
                "Classification classes must be of type string Tensor. Found tensors of "
                f"type {info.dtype}."
            )
        outputs[constants.CLASSIFY_OUTPUT_CLASSES] = info
    if scores is not None:
        info = build_tensor_info(scores)
        if info.dtype != _FLOAT:
            raise ValueError("Classification scores must be a float Tensor.")
        outputs[constants.CLASSIFY_OUTPUT_SCORES] = info
    return build_signature_def(
        {constants.CLASSIFY_INPUTS: given}, outputs, constants.CLASSIFY_METHOD_NAME
    )


def predict_signature_def(inputs, outputs):
    """The SignatureDef of a prediction: {name: tensor} in and out; ValueError where
    either is empty."""
    if not inputs:
        raise ValueError("Prediction `inputs` cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction `outputs` cannot be None or empty.")
    return build_signature_def(
        {name: build_tensor_info(x) for name, x in inputs.items()},
        {name: build_tensor_info(x) for name, x in outputs.items()},
        constants.PREDICT_METHOD_NAME,
    )


def op_signature_def(op, key):
    """The SignatureDef that names an operation under a key."""
    return build_signature_def(outputs={key: build_tensor_info_from_op(op)})


def load_op_from_signature_def(signature_def, key, import_scope=None):
    """The operation, or the tensor, of the current graph that a SignatureDef names
    under a key; NotFoundError where the graph has none of that name."""
    from_key = signature_def.outputs[key]
    try:
        return get_element_from_tensor_info(from_key, import_scope=import_scope)
    except KeyError:
        raise errors.NotFoundError._of(
            f'The key "{key}" could not be found in the graph. The operation '
            f"{from_key.name} is not there."
        ) from None


def _has_types(infos, types):
    """Whether all are of the names and dtypes that `types` allows."""
    return bool(infos) and all(
        types.get(name) == info.dtype for name, info in infos.items()
    )


# Method: the dtypes of inputs and outputs that servers know how to fill.
_TYPES = {
    constants.CLASSIFY_METHOD_NAME: (
        {constants.CLASSIFY_INPUTS: _STRING},
        {
            constants.CLASSIFY_OUTPUT_CLASSES: _STRING,
            constants.CLASSIFY_OUTPUT_SCORES: _FLOAT,
        },
    ),
    constants.REGRESS_METHOD_NAME: (
        {constants.REGRESS_INPUTS: _STRING},
        {constants.REGRESS_OUTPUTS: _FLOAT},
    ),
}


def is_valid_signature(signature_def):
    """Whether servers can answer by a SignatureDef: its method is one of classify,
    regress and predict, and its names and dtypes are those of the method."""
    if signature_def is None:
        return False
    if signature_def.method_name == constants.PREDICT_METHOD_NAME:
        return bool(signature_def.inputs) and bool(signature_def.outputs)
    if signature_def.method_name not in _TYPES:
        return False
    inputs, outputs = _TYPES[signature_def.method_name]
    return _has_types(signature_def.inputs, inputs) and _has_types(
        signature_def.outputs, outputs
    )
