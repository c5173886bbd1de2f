"""Calls for test_row_rules.py of ops that have no recorded call: {op: its arguments}."""

import headrace as tf
import numpy as np

_IMAGE = [1, 4, 4, 2]
_SPACE = [1, 2, 4, 4, 2]
_POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
_POOL3 = {
    "ksize": [1, 1, 2, 2, 1],
    "strides": [1, 1, 2, 2, 1],
    "padding": "VALID",
}
_CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}
_CONV3 = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}


def _floats(*shape, at=0.25):
    """Numbers of which no two are alike."""
    n = int(np.prod(shape))
    order = (np.arange(n) * 7 + 3) % max(n, 1) if n % 7 else np.arange(n)[::-1]
    return tf.constant(np.reshape(order * 0.5 - at * n, shape), tf.float32)


def _ints(*values):
    return tf.constant(values, tf.int32)


def _matrix(n=3):
    m = _floats(n, n)
    return tf.matmul(m, m, transpose_b=True) + 4.0 * tf.eye(n)


def _norm_grad(version):
    x = _floats(*_IMAGE)
    channels = tf.constant([0.5, 2.0])
    given = {
        "y_backprop": x * 0.5,
        "x": x,
        "scale": channels,
        "reserve_space_1": channels,
        "reserve_space_2": channels,
    }
    if version == 3:
        given["reserve_space_3"] = tf.zeros([0])
    return given


def _norm():
    channels = tf.constant([0.5, 2.0])
    return {
        "x": _floats(*_IMAGE),
        "scale": channels,
        "offset": channels,
        "mean": channels,
        "variance": channels,
        "is_training": False,
    }


def _max_pool_grad(shape, pooled, windows):
    x, pool = _floats(*shape), tf.nn.max_pool
    y = pool(x, windows["ksize"], windows["strides"], windows["padding"])
    return {
        "orig_input": x,
        "orig_output": y,
        "grad": _floats(*pooled),
        **windows,
    }


def _windows_as_inputs(given):
    given = dict(given)
    for name in ("ksize", "strides"):
        given[name] = tf.constant(given[name])
    return given


def _segments(last):
    return {
        "indices": _ints(0, 2, 1),
        "segment_ids": _ints(0, 0, 1),
        **last,
    }


def _segment_grad():
    rows = tf.constant(4)
    return _segments({"grad": _floats(2, 3), "output_dim0": rows})


def _segment_grad_v2():
    rows = tf.constant(4)
    return _segments({"grad": _floats(2, 3), "dense_output_dim0": rows})


_POOLED, _POOLED3 = [1, 2, 2, 2], [1, 2, 2, 2, 2]
CASES = {
    "AvgPoolGrad": lambda: {
        "orig_input_shape": tf.constant(_IMAGE),
        "grad": _floats(*_POOLED),
        **_POOL,
    },
    "AvgPool3DGrad": lambda: {
        "orig_input_shape": tf.constant(_SPACE),
        "grad": _floats(*_POOLED3),
        **_POOL3,
    },
    "BatchMatMulV3": lambda: {
        "x": _floats(2, 3),
        "y": _floats(2, 3, 2),
        "Tout": tf.float32,
    },
    "CheckNumericsV2": lambda: {"tensor": _floats(3), "message": "bad"},
    "CholeskyGrad": lambda: {
        "l": tf.linalg.cholesky(_matrix()),
        "grad": _floats(3, 3),
    },
    "Conv2DBackpropFilter": lambda: {
        "input": _floats(*_IMAGE),
        "filter_sizes": _ints(2, 2, 2, 3),
        "out_backprop": _floats(1, 4, 4, 3),
        **_CONV,
    },
    "Conv3DBackpropInputV2": lambda: {
        "input_sizes": tf.constant(_SPACE),
        "filter": _floats(1, 2, 2, 2, 3),
        "out_backprop": _floats(1, 2, 4, 4, 3),
        **_CONV3,
    },
    "Conv3DBackpropFilterV2": lambda: {
        "input": _floats(*_SPACE),
        "filter_sizes": _ints(1, 2, 2, 2, 3),
        "out_backprop": _floats(1, 2, 4, 4, 3),
        **_CONV3,
    },
    "DepthwiseConv2dNativeBackpropFilter": lambda: {
        "input": _floats(*_IMAGE),
        "filter_sizes": _ints(2, 2, 2, 3),
        "out_backprop": _floats(1, 4, 4, 6),
        **_CONV,
    },
    "DepthwiseConv2dNativeBackpropInput": lambda: {
        "input_sizes": tf.constant(_IMAGE),
        "filter": _floats(2, 2, 2, 3),
        "out_backprop": _floats(1, 4, 4, 6),
        **_CONV,
    },
    # The vectors of an eigenvalue may have either sign.
    "Eig": lambda: {"input": _matrix(), "compute_v": False, "Tout": tf.complex64},
    "FusedBatchNorm": _norm,
    "FusedBatchNormV2": _norm,
    "FusedBatchNormGrad": lambda: _norm_grad(1),
    "FusedBatchNormGradV2": lambda: _norm_grad(2),
    "FusedBatchNormGradV3": lambda: _norm_grad(3),
    "IRFFT3D": lambda: {
        "input": tf.complex(_floats(2, 2, 3), _floats(2, 2, 3)),
        "fft_length": _ints(2, 2, 4),
    },
    "RFFT3D": lambda: {"input": _floats(2, 2, 4), "fft_length": _ints(2, 2, 4)},
    "IdentityN": lambda: {"input": [_floats(2), _ints(1, 2)]},
    "IgammaGradA": lambda: {"a": tf.constant([1.5, 2.0]), "x": tf.constant([0.5, 3])},
    "LogicalNot": lambda: {"x": tf.constant([True, False])},
    "MatrixDiagV2": lambda: {
        "diagonal": _floats(2, 3),
        "k": _ints(0, 1),
        "num_rows": tf.constant(3),
        "num_cols": tf.constant(4),
        "padding_value": tf.constant(9.0),
    },
    "MatrixDiagV3": lambda: {
        "diagonal": _floats(2, 3),
        "k": _ints(0, 1),
        "num_rows": tf.constant(3),
        "num_cols": tf.constant(4),
        "padding_value": tf.constant(9.0),
    },
    "MatrixSetDiagV2": lambda: {
        "input": _floats(3, 4),
        "diagonal": _floats(3),
        "k": tf.constant(0),
    },
    "MaxPoolGrad": lambda: _max_pool_grad(_IMAGE, _POOLED, _POOL),
    "MaxPoolGradGrad": lambda: _max_pool_grad(_IMAGE, _IMAGE, _POOL),
    "MaxPoolGradV2": lambda: _windows_as_inputs(_max_pool_grad(_IMAGE, _POOLED, _POOL)),
    "MaxPoolGradGradV2": lambda: _windows_as_inputs(
        _max_pool_grad(_IMAGE, _IMAGE, _POOL)
    ),
    "MaxPool3DGrad": lambda: _max_pool_grad(_SPACE, _POOLED3, _POOL3),
    "MaxPool3DGradGrad": lambda: _max_pool_grad(_SPACE, _SPACE, _POOL3),
    "MaxPoolV2": lambda: _windows_as_inputs({"input": _floats(*_IMAGE), **_POOL}),
    "RandomGamma": lambda: {"shape": _ints(2), "alpha": tf.constant([1.0, 2.0])},
    "RandomGammaGrad": lambda: {
        "alpha": tf.constant([1.5, 2.0]),
        "sample": tf.constant([0.5, 3.0]),
    },
    "RandomPoissonV2": lambda: {"shape": _ints(2), "rate": tf.constant([1.0, 2.0])},
    "RandomUniformInt": lambda: {
        "shape": _ints(2),
        "minval": tf.constant(0),
        "maxval": tf.constant(9),
    },
    "ScatterNdNonAliasingAdd": lambda: {
        "input": _floats(4),
        "indices": tf.constant([[1], [3]]),
        "updates": _floats(2),
    },
    "ShapeN": lambda: {"input": [_floats(2), _floats(3, 1)], "out_type": tf.int64},
    "Snapshot": lambda: {"input": _floats(2)},
    **{f"SparseSegment{of}Grad": _segment_grad for of in ("Mean", "SqrtN", "Sum")},
    **{f"SparseSegment{of}GradV2": _segment_grad_v2 for of in ("Mean", "SqrtN", "Sum")},
    "SparseSegmentSqrtNWithNumSegments": lambda: _segments(
        {"data": _floats(4, 3), "num_segments": tf.constant(3)}
    ),
    "StatelessParameterizedTruncatedNormal": lambda: {
        "shape": _ints(2),
        "seed": _ints(1, 2),
        "means": tf.constant([0.0, 1.0]),
        "stddevs": tf.constant(1.0),
        "minvals": tf.constant(-1.0),
        "maxvals": tf.constant(3.0),
    },
    "StatelessRandomUniformFullInt": lambda: {
        "shape": _ints(2),
        "seed": _ints(1, 2),
        "dtype": tf.int32,
    },
    "StridedSliceGrad": lambda: {
        "shape": _ints(4, 2),
        "begin": _ints(1),
        "end": _ints(4),
        "strides": _ints(2),
        "dy": _floats(2, 2),
    },
    "StringFormat": lambda: {
        "inputs": [_floats(2)],
        "template": "%s",
        "placeholder": "%s",
    },
    "BiasAddV1": lambda: {"value": _floats(2, 3), "bias": _floats(3)},
    "RandomPoisson": lambda: {"shape": _ints(2), "rate": tf.constant([1.0])},
    "Reverse": lambda: {"tensor": _floats(2, 3), "dims": tf.constant([True, False])},
    "ParseExampleV2": lambda: {
        "serialized": tf.constant([b""]),
        "names": tf.constant([], tf.string),
        "sparse_keys": tf.constant([], tf.string),
        "dense_keys": tf.constant(["a"]),
        "ragged_keys": tf.constant([], tf.string),
        "dense_defaults": [_floats(2)],
        "num_sparse": 0,
        "sparse_types": [],
        "ragged_value_types": [],
        "ragged_split_types": [],
        "dense_shapes": [[2]],
    },
    "ParseSingleExample": lambda: {
        "serialized": tf.constant(b""),
        "dense_defaults": [_floats(2)],
        "num_sparse": 0,
        "sparse_keys": [],
        "dense_keys": ["a"],
        "sparse_types": [],
        "dense_shapes": [[2]],
    },
}
