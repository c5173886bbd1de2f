"""tf.estimator.export's receivers: what a served model is fed, and what it becomes."""

from headrace import _api as tf
from headrace.framework.support import signatures

_ONE_FEATURE, _ONE_TENSOR, _ONE_LABEL = "feature", "input", "label"


def _check_tensor(value, what):
    if not isinstance(value, (tf.SparseTensor, tf.RaggedTensor)) and not tf.is_tensor(
        value
    ):
        raise ValueError(f"{what} must be a Tensor, SparseTensor, or RaggedTensor.")
    return value


def _by_name(values, what, single):
    """{name: tensor} of such a dict, or of one tensor, which is called `single`."""
    if values is None:
        raise ValueError(f"{what}s must be defined.")
    if not isinstance(values, dict):
        values = {single: values}
    for name, value in values.items():
        if not isinstance(name, (str, int, tuple)):
            raise ValueError(f"{what} keys must be strings or ints: {name}.")
        _check_tensor(value, f"{what} {name}")
    return values


def _received(values):
    found = _by_name(values, "receiver_tensor", _ONE_TENSOR)
    for name in found:
        if not isinstance(name, str):
            raise ValueError(f"receiver_tensor keys must be strings: {name}.")
    return found


def _alternatives(given):
    """{name: {name: tensor}}, or None."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise ValueError(f"receiver_tensors_alternatives must be a dict: {given}.")
    return {
        name: _by_name(values, "receiver_tensors_alternative", _ONE_TENSOR)
        if isinstance(values, dict)
        else {
            _ONE_TENSOR: _check_tensor(
                values, f"receiver_tensors_alternative {_ONE_TENSOR}"
            )
        }
        for name, values in given.items()
    }


_FIELDS = "features, receiver_tensors, receiver_tensors_alternatives=None"


class ServingInputReceiver(signatures.tuple_of("ServingInputReceiver", _FIELDS)):
    """What the model is given, and what is fed to have it.

    `features`: {name: tensor}, or one tensor, called "feature"; `receiver_tensors`:
    those that are fed, {name: tensor} or one, called "input";
    `receiver_tensors_alternatives`: {name: such tensors} that may be fed instead of
    these. ValueError for what is no tensor.
    """

    @staticmethod
    def _check(given):
        given["features"] = _by_name(given["features"], "feature", _ONE_FEATURE)
        given["receiver_tensors"] = _received(given["receiver_tensors"])
        given["receiver_tensors_alternatives"] = _alternatives(
            given["receiver_tensors_alternatives"]
        )


class TensorServingInputReceiver(
    signatures.tuple_of("TensorServingInputReceiver", _FIELDS)
):
    """A ServingInputReceiver of a model whose `features` are one tensor, no dict."""

    @staticmethod
    def _check(given):
        if given["features"] is None:
            raise ValueError("features must be defined.")
        _check_tensor(given["features"], "feature")
        given["receiver_tensors"] = _received(given["receiver_tensors"])
        given["receiver_tensors_alternatives"] = _alternatives(
            given["receiver_tensors_alternatives"]
        )


class SupervisedInputReceiver(
    signatures.tuple_of("SupervisedInputReceiver", "features, labels, receiver_tensors")
):
    """What a model that is trained or evaluated is given, and what is fed for it."""

    @staticmethod
    def _check(given):
        for name, single in (("feature", _ONE_FEATURE), ("label", _ONE_LABEL)):
            if isinstance(given[f"{name}s"], dict) or given[f"{name}s"] is None:
                _by_name(given[f"{name}s"], name, single)
            else:
                _check_tensor(given[f"{name}s"], name)
        given["receiver_tensors"] = _received(given["receiver_tensors"])


def build_parsing_serving_input_receiver_fn(feature_spec, default_batch_size=None):
    """A function that gives a ServingInputReceiver: serialized Examples are fed, as
    "examples", and parsed by `feature_spec`, {name: FixedLenFeature or the like}.
    `default_batch_size`: how many at a time; any number where it is None."""

    def serving_input_receiver_fn():
        examples = tf.compat.v1.placeholder(
            tf.string, [default_batch_size], name="input_example_tensor"
        )
        features = tf.io.parse_example(examples, feature_spec)
        return ServingInputReceiver(features, {"examples": examples})

    return serving_input_receiver_fn


def _name_of(tensor):
    return (
        None
        if tf.executing_eagerly() or not hasattr(tensor, "graph")
        else tensor.op.name
    )


def _placeholders(tensors, batch_size):
    """{name: placeholder} like tensors, of any or so many rows."""
    made = {}
    for name, tensor in tensors.items():
        shape = tensor.shape.as_list()
        shape = [batch_size, *shape[1:]]
        made[name] = tf.compat.v1.placeholder(
            tensor.dtype, shape, name=_name_of(tensor)
        )
    return made


def build_raw_serving_input_receiver_fn(features, default_batch_size=None):
    """A function that gives a ServingInputReceiver: tensors like `features`, {name:
    tensor}, are fed by their names. `default_batch_size`: their first dimension; any
    where it is None."""

    def serving_input_receiver_fn():
        fed = _placeholders(features, default_batch_size)
        return ServingInputReceiver(fed, fed)

    return serving_input_receiver_fn


def build_raw_supervised_input_receiver_fn(features, labels, default_batch_size=None):
    """A function that gives a SupervisedInputReceiver: tensors like `features` and
    `labels`, each {name: tensor} or one tensor, are fed by their names ("input" and
    "label"). ValueError where a feature and a label have one name."""
    both = {}
    for single, given in ((_ONE_TENSOR, features), (_ONE_LABEL, labels)):
        both[single] = given if isinstance(given, dict) else {single: given}
    shared = set(both[_ONE_TENSOR]) & set(both[_ONE_LABEL])
    if shared:
        raise ValueError(
            "Features and labels must have distinct keys. Found overlapping keys: "
            f"{shared}"
        )

    def supervised_input_receiver_fn():
        fed = {k: _placeholders(v, default_batch_size) for k, v in both.items()}
        given = [
            fed[k] if isinstance(x, dict) else fed[k][k]
            for k, x in ((_ONE_TENSOR, features), (_ONE_LABEL, labels))
        ]
        return SupervisedInputReceiver(*given, {**fed[_ONE_TENSOR], **fed[_ONE_LABEL]})

    return supervised_input_receiver_fn
