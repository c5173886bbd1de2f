"""Calls with ragged and sparse tensors, and what they give.

`python ragged_cases.py tensorflow` writes tests/golden/ragged/calls.json: for each line of
ragged_calls.txt the result as text, or the class of the error.
"""

import json
import os
import sys

import numpy as np

_HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(_HERE, "../../../tests/golden/ragged/calls.json")


def calls():
    with open(os.path.join(_HERE, "ragged_calls.txt"), encoding="utf8") as f:
        return f.read().splitlines()


def names(tf):
    """What the calls name: ragged tensors of several kinds."""
    rc = tf.ragged.constant
    return {
        "tf": tf,
        "np": np,
        "rc": rc,
        "RT": tf.RaggedTensor,
        "RS": tf.RaggedTensorSpec,
        "V": tf.compat.v1.ragged.RaggedTensorValue,
        "cv": tf.compat.v1.ragged.constant_value,
        "v": tf.compat.v1.ragged.RaggedTensorValue(
            np.array([1, 2, 3]), np.array([0, 1, 3])
        ),
        "F": rc([[1.0, 2.0], [3.0], [0.5, 0.25, 4.0]]),
        "I": rc([[1, 2], [0], [1, 1, 2]]),
        "S": rc([["a", "b b"], ["C"], []]),
        "B": rc([[True, False], [True], []]),
        "F3": rc([[[1.0, 2.0], [3.0]], [[4.0]]]),
        "FI": rc([[[1.0, 2.0], [3.0, 5.0]], [[4.0, 6.0]]], ragged_rank=1),
        "U": tf.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2),
        "SP": tf.sparse.SparseTensor([[0, 0], [1, 2]], [1.0, 2.0], [3, 3]),
    }


def _numbers(x):
    """Nested lists with rounded floats."""
    if isinstance(x, list):
        return [_numbers(v) for v in x]
    return float(f"{x:.4g}") if isinstance(x, float) else x


def describe(tf, x):
    """Kind, dtype, static shape and values."""
    if isinstance(x, tf.RaggedTensor):
        splits = x.row_splits.dtype.name
        shape = x.shape.as_list()
        return f"ragged {x.dtype.name} {shape} {splits} {_numbers(x.to_list())}"
    if isinstance(x, tf.sparse.SparseTensor):
        parts = [p.numpy().tolist() for p in (x.indices, x.values, x.dense_shape)]
        return f"sparse {x.dtype.name} {_numbers(parts)}"
    if isinstance(x, (list, tuple)):
        return f"{type(x).__name__}[{', '.join(describe(tf, v) for v in x)}]"
    if tf.is_tensor(x):
        value = x.numpy()
        value = value.tolist() if hasattr(value, "tolist") else value
        return f"tensor {x.dtype.name} {x.shape.as_list()} {_numbers(value)}"
    return f"{type(x).__name__} {x!r}"


def result(tf, call, scope):
    """The described result of a call, or its error's class."""
    try:
        return describe(tf, eval(call, dict(scope)))  # noqa: S307
    except Exception as error:  # noqa: BLE001
        return f"! {type(error).__name__}"


def main():
    tf = __import__(sys.argv[1])
    scope = names(tf)
    found = {c: result(tf, c, scope) for c in calls()}
    os.makedirs(os.path.dirname(GOLDEN), exist_ok=True)
    with open(GOLDEN, "w", encoding="utf8") as f:
        json.dump(found, f, indent=0)
        f.write("\n")


if __name__ == "__main__":
    main()
