"""Examples for classify and regress: dicts of features, as tf.Example and as JSON."""

import base64

import numpy as np

from headrace.serving import failures


def _values(name, given):
    """(kind, values) of a feature: "bytes", "int64" or "float"."""
    array = np.asarray(given)
    values = array.reshape(-1).tolist()
    if array.dtype.kind in "SUO":
        if not all(isinstance(v, (bytes, str)) for v in values):
            raise failures.invalid(f"feature {name} is neither numbers nor strings")
        return "bytes", [v.encode() if isinstance(v, str) else v for v in values]
    if array.dtype.kind in "iub":
        return "int64", [int(v) for v in values]
    if array.dtype.kind == "f":
        return "float", [float(v) for v in values]
    raise failures.invalid(f"feature {name}: no feature is of type {array.dtype}")


def to_proto(features, example):
    """Fills a tensorflow.Example."""
    for name, given in features.items():
        kind, values = _values(name, given)
        feature = example.features.feature[name]
        getattr(feature, kind + "_list").value.extend(values)


def to_json(features):
    """What REST takes: whole numbers are int64 and numbers with a point float there."""
    made = {}
    for name, given in features.items():
        kind, values = _values(name, given)
        if kind == "bytes":
            values = [{"b64": base64.b64encode(v).decode()} for v in values]
        made[name] = values
    return made
