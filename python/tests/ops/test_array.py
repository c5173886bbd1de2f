"""Ops that make, move and pick elements."""

import headrace as tf
import numpy as np
import pytest
from driver import COMPLEX, FLOATS, RECORDED, SIGNED, UNSIGNED, Row, cases, check

ALL = FLOATS + SIGNED + UNSIGNED + COMPLEX
FEW = ("float32", "float64", "bfloat16", "int8", "int64", "complex128")


def ramp(*shape):
    """1, 2, 3, ... as an array: exact in every dtype."""
    return np.arange(1.0, np.prod(shape) + 1).reshape(shape)


def ints(*values):
    return np.array(values, np.int32)


def moved(op, inputs, want, dtypes=FEW, **rest):
    """A row whose integer inputs keep their dtype."""
    fixed = tuple(n for n, v in inputs.items() if np.asarray(v).dtype == np.int32)
    return Row(op, inputs, want, dtypes=dtypes, fixed=fixed, **rest)


def error(op, inputs, text, **rest):
    return moved(op, inputs, None, ("float32",), error=text, **rest)


SHAPES = [
    moved("Shape", {"input": ramp(2, 3)}, np.array([2, 3])),
    moved("Rank", {"input": ramp(2, 1, 3)}, np.array(3)),
    moved("Size", {"input": ramp(2, 3)}, np.array(6)),
    moved("Size", {"input": ramp(0, 3)}, np.array(0)),
    moved(
        "Reshape",
        {"tensor": ramp(2, 3), "shape": ints(3, -1)},
        lambda x, s: x.reshape(3, 2),
        ALL,
    ),
    error(
        "Reshape",
        {"tensor": ramp(6), "shape": ints(4)},
        "Input to reshape is a tensor with 6 values, but the requested shape has 4",
    ),
    error(
        "Reshape",
        {"tensor": ramp(6), "shape": ints(4, -1)},
        "but the requested shape requires a multiple of 4",
    ),
    error(
        "Reshape",
        {"tensor": ramp(6), "shape": ints(-1, -1)},
        "Only one input size may be -1, not both 0 and 1",
    ),
    error("Reshape", {"tensor": ramp(6), "shape": ints(-2)}, "must be non-negative"),
    moved(
        "ExpandDims",
        {"input": ramp(2, 3), "axis": np.int32(-2)},
        lambda x, a: x[:, None],
    ),
    error(
        "ExpandDims",
        {"input": ramp(6), "axis": np.int32(3)},
        "Tried to expand dim index 3 for tensor with 1 dimensions.",
    ),
    moved("Squeeze", {"input": ramp(1, 2, 1)}, lambda x: x[0, :, 0]),
    moved("Squeeze", {"input": ramp(1, 2, 1)}, lambda x: x[0], attrs={"axis": [0]}),
    error(
        "Squeeze",
        {"input": ramp(2, 2)},
        "Can not squeeze dim[0], expected a dimension of 1, got 2",
        attrs={"axis": [0]},
    ),
    moved(
        "BroadcastTo",
        {"input": ramp(2, 1), "shape": ints(3, 2, 4)},
        lambda x, s: np.broadcast_to(x, (3, 2, 4)),
        ALL,
    ),
    error(
        "BroadcastTo",
        {"input": ramp(3), "shape": ints(2)},
        "Incompatible shapes: [3] vs. [2]",
    ),
    moved(
        "Fill",
        {"dims": ints(2, 3), "value": 7.0},
        lambda s, v: np.full((2, 3), v),
        ALL,
    ),
    error("Fill", {"dims": ints(-1), "value": 7.0}, "Dimension -1 must be >= 0"),
    moved("ZerosLike", {"x": ramp(2, 3)}, np.zeros_like, ALL),
    moved("OnesLike", {"x": ramp(2, 3)}, np.ones_like, ALL),
    moved(
        "EnsureShape", {"input": ramp(2, 3)}, lambda x: x, attrs={"shape": [None, 3]}
    ),
]

TWO = {"a": ramp(2, 3), "b": 10 + ramp(2, 3)}
JOINED = (
    [
        moved(
            "Pack",
            TWO,
            lambda a, b, k=k: np.stack([a, b], k),
            ALL,
            attrs={"axis": k},
            lists={"values": ("a", "b")},
        )
        for k in (0, 1, 2, -1)
    ]
    + [
        moved(
            "ConcatV2",
            {**TWO, "axis": np.int32(k)},
            lambda a, b, _, k=k: np.concatenate([a, b], k),
            ALL,
            lists={"values": ("a", "b")},
        )
        for k in (0, 1, -1)
    ]
    + [
        moved(
            "Unpack",
            {"value": ramp(2, 3)},
            lambda x: tuple(x.T),
            attrs={"num": 3, "axis": 1},
        ),
        moved(
            "Split",
            {"axis": np.int32(1), "value": ramp(2, 4)},
            lambda a, x: tuple(np.split(x, 2, 1)),
            ALL,
            attrs={"num_split": 2},
        ),
        moved(
            "SplitV",
            {"value": ramp(5, 2), "size_splits": ints(2, 0, -1), "axis": np.int32(0)},
            lambda x, s, a: (x[:2], x[2:2], x[2:]),
            attrs={"num_split": 3},
        ),
        error(
            "ConcatV2",
            {"a": ramp(2, 3), "b": ramp(3, 2), "axis": np.int32(0)},
            "ConcatOp : Dimension 1 in both shapes must be equal: shape[0] = [2,3] vs. "
            "shape[1] = [3,2]",
            lists={"values": ("a", "b")},
        ),
        error(
            "Pack",
            {"a": ramp(2), "b": ramp(3)},
            "Shapes of all inputs must match: values[0].shape = [2] != values[1].shape "
            "= [3]",
            attrs={"axis": 0},
            lists={"values": ("a", "b")},
        ),
    ]
)


def sliced(key, begin, end, strides, **masks):
    return moved(
        "StridedSlice",
        {
            "input": ramp(3, 4, 5),
            "begin": ints(*begin),
            "end": ints(*end),
            "strides": ints(*strides),
        },
        lambda x, *_: x[key],
        ("float64", "int8"),
        attrs=masks,
    )


SLICES = [
    sliced(np.s_[1:3, ::2], [1, 0], [3, 0], [1, 2], begin_mask=2, end_mask=2),
    sliced(np.s_[::-1, 3:0:-2], [0, 3], [0, 0], [-1, -2], begin_mask=1, end_mask=1),
    sliced(np.s_[..., 2], [0, 2], [0, 3], [1, 1], ellipsis_mask=1, shrink_axis_mask=2),
    sliced(
        np.s_[1, None, ..., -2:],
        [1, 0, 0, -2],
        [2, 0, 0, 0],
        [1, 1, 1, 1],
        shrink_axis_mask=1,
        new_axis_mask=2,
        ellipsis_mask=4,
        end_mask=8,
    ),
    sliced(np.s_[5:9], [5], [9], [1]),
    sliced(np.s_[-1], [-1], [0], [1], shrink_axis_mask=1),
    moved(
        "Slice",
        {"input": ramp(3, 4), "begin": ints(1, 0), "size": ints(-1, 2)},
        lambda x, *_: x[1:, :2],
        ALL,
    ),
    moved(
        "TensorStridedSliceUpdate",
        {
            "input": ramp(4),
            "begin": ints(1),
            "end": ints(4),
            "strides": ints(2),
            "value": 10 * ramp(2),
        },
        lambda x, b, e, s, v: np.array([x[0], v[0], x[2], v[1]]),
    ),
    moved(
        "TensorStridedSliceUpdate",
        {
            "input": ramp(4),
            "begin": ints(0),
            "end": ints(2),
            "strides": ints(1),
            "value": 9.0,
        },
        lambda x, b, e, s, v: np.array([v, v, x[2], x[3]]),
    ),
    moved(
        "StridedSliceGrad",
        {
            "shape": ints(4),
            "begin": ints(1),
            "end": ints(4),
            "strides": ints(2),
            "dy": ramp(2),
        },
        lambda s, b, e, t, y: np.array([0, y[0], 0, y[1]]),
    ),
    error(
        "Slice",
        {"input": ramp(2, 3), "begin": ints(0, 0), "size": ints(3, 1)},
        "Expected size[0] in [0, 2], but got 3",
    ),
    error(
        "StridedSlice",
        {"input": ramp(2, 3), "begin": ints(5), "end": ints(6), "strides": ints(1)},
        "slice index 5 of dimension 0 out of bounds.",
        attrs={"shrink_axis_mask": 1},
    ),
    error(
        "StridedSlice",
        {"input": ramp(2), "begin": ints(0), "end": ints(1), "strides": ints(0)},
        "strides[0] must be non-zero",
    ),
]

MOVES = [
    moved(
        "Transpose",
        {"x": ramp(2, 3, 4), "perm": ints(*p)},
        lambda x, p: x.transpose(p),
        ALL,
    )
    for p in ([0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1])
] + [
    moved(
        "Transpose",
        {"x": ramp(37, 50), "perm": ints(1, 0)},
        lambda x, p: x.T,
        ("float32", "float16", "int8", "complex128"),
        orders=0,
    ),
    moved("InvertPermutation", {"x": ints(2, 0, 1)}, np.array([1, 2, 0]), ("int32",)),
    moved(
        "Tile",
        {"input": ramp(2, 3), "multiples": ints(2, 3)},
        lambda x, m: np.tile(x, (2, 3)),
        ALL,
    ),
    moved(
        "Tile",
        {"input": ramp(2, 3), "multiples": ints(2, 0)},
        lambda x, m: np.zeros((4, 0)),
    ),
    moved(
        "Pad",
        {"input": ramp(2, 3), "paddings": ints([1, 0], [0, 2])},
        lambda x, p: np.pad(x, p),
        ALL,
    ),
    moved(
        "PadV2",
        {"input": ramp(2, 3), "paddings": ints([1, 0], [0, 2]), "constant_values": 7.0},
        lambda x, p, v: np.pad(x, p, constant_values=v),
    ),
    moved(
        "MirrorPad",
        {"input": ramp(3, 4), "paddings": ints([1, 2], [3, 0])},
        lambda x, p: np.pad(x, p, "reflect"),
        attrs={"mode": "REFLECT"},
    ),
    moved(
        "MirrorPad",
        {"input": ramp(3, 4), "paddings": ints([1, 2], [3, 4])},
        lambda x, p: np.pad(x, p, "symmetric"),
        attrs={"mode": "SYMMETRIC"},
    ),
    moved(
        "ReverseV2",
        {"tensor": ramp(2, 3, 2), "axis": ints(1, -1)},
        lambda x, a: x[:, ::-1, ::-1],
        ALL,
    ),
    moved(
        "ReverseSequence",
        {"input": ramp(2, 3), "seq_lengths": ints(2, 3)},
        lambda x, n: np.array([[x[0, 1], x[0, 0], x[0, 2]], x[1, ::-1]]),
        attrs={"seq_dim": 1},
    ),
    moved(
        "Roll",
        {"input": ramp(3, 4), "shift": ints(1, -2), "axis": ints(0, 1)},
        lambda x, s, a: np.roll(x, (1, -2), (0, 1)),
        ALL,
    ),
    moved(
        "SpaceToDepth",
        {"input": ramp(1, 2, 4, 2)},
        lambda x: (
            x.reshape(1, 1, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 1, 2, 8)
        ),
        attrs={"block_size": 2},
    ),
    moved(
        "DepthToSpace",
        {"input": ramp(1, 1, 2, 8)},
        lambda x: (
            x.reshape(1, 1, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 4, 2)
        ),
        attrs={"block_size": 2},
    ),
    moved(
        "SpaceToBatchND",
        {
            "input": ramp(1, 3, 2, 1),
            "block_shape": ints(2, 2),
            "paddings": ints([1, 0], [0, 0]),
        },
        lambda x, b, p: (
            np.pad(x, [[0, 0], [1, 0], [0, 0], [0, 0]])
            .reshape(1, 2, 2, 1, 2, 1)
            .transpose(2, 4, 0, 1, 3, 5)
            .reshape(4, 2, 1, 1)
        ),
    ),
    moved(
        "BatchToSpaceND",
        {
            "input": ramp(4, 1, 2, 1),
            "block_shape": ints(2, 2),
            "crops": ints([0, 1], [1, 0]),
        },
        lambda x, b, c: (
            x.reshape(2, 2, 1, 1, 2, 1)
            .transpose(2, 3, 0, 4, 1, 5)
            .reshape(1, 2, 4, 1)[:, :1, 1:]
        ),
    ),
    error(
        "Transpose", {"x": ramp(2, 3), "perm": ints(0, 0)}, "1 is missing from {0,0}."
    ),
    error(
        "Pad",
        {"input": ramp(2), "paddings": ints([-1, 0])},
        "Paddings must be non-negative: -1 0",
    ),
    error(
        "MirrorPad",
        {"input": ramp(2), "paddings": ints([2, 2])},
        "paddings must be less than the dimension size: 2, 2 not less than 2",
        attrs={"mode": "REFLECT"},
    ),
]

PICKS = [
    moved(
        "GatherV2",
        {"params": ramp(4, 3), "indices": ints([1, 0], [3, 3]), "axis": np.int32(0)},
        lambda x, i, a: x[i],
        ALL,
        gradient=(),
    ),
    moved(
        "GatherNd",
        {"params": ramp(2, 3), "indices": ints([[1, 2]], [[0, 0]])},
        lambda x, i: np.array([[x[1, 2]], [x[0, 0]]]),
        ALL,
    ),
    moved(
        "ScatterNd",
        {"indices": ints([4], [1], [4]), "updates": ramp(3), "shape": ints(6)},
        lambda i, u, s: np.array([0, u[1], 0, 0, u[0] + u[2], 0]),
        ALL,
    ),
    moved(
        "TensorScatterUpdate",
        {"tensor": ramp(3, 2), "indices": ints([2], [0]), "updates": 10 + ramp(2, 2)},
        lambda x, i, u: np.array([u[1], x[1], u[0]]),
        ALL,
    ),
    moved(
        "TensorScatterAdd",
        {"tensor": ramp(4), "indices": ints([1], [1], [3]), "updates": ramp(3)},
        lambda x, i, u: x + np.array([0, u[0] + u[1], 0, u[2]]),
        ALL,
    ),
    moved(
        "TensorScatterSub",
        {"tensor": 10 + ramp(4), "indices": ints([1], [1], [3]), "updates": ramp(3)},
        lambda x, i, u: x - np.array([0, u[0] + u[1], 0, u[2]]),
        ALL,
    ),
    moved(
        "TensorScatterMax",
        {"tensor": ramp(4), "indices": ints([1], [1], [3]), "updates": [5.0, 3.0, 1.0]},
        np.array([1, 5, 3, 4]),
        ("float64", "int8"),
        orders=1,
    ),
    moved(
        "TensorScatterMin",
        {"tensor": ramp(4), "indices": ints([1], [1], [3]), "updates": [5.0, 3.0, 1.0]},
        np.array([1, 2, 3, 1]),
        ("float64", "int8"),
        orders=1,
    ),
    moved(
        "OneHot",
        {
            "indices": ints(0, 2, -1),
            "depth": np.int32(3),
            "on_value": 5.0,
            "off_value": 1.0,
        },
        lambda i, d, x, y: np.where(np.arange(3) == i[:, None], x, y),
        ALL,
        gradient=(),
    ),
    moved(
        "Where",
        {"condition": [[0.0, 2.0], [3.0, 0.0]]},
        np.array([[0, 1], [1, 0]]),
        ALL,
    ),
    moved(
        "Unique",
        {"x": [5.0, 3.0, 5.0, 1.0, 3.0]},
        lambda x: (x[[0, 1, 3]], np.array([0, 1, 0, 2, 1])),
        ALL,
        gradient=(),
    ),
    moved(
        "UniqueWithCountsV2",
        {"x": [[1.0, 0.0], [1.0, 0.0], [2.0, 0.0]], "axis": ints(0)},
        lambda x, a: (x[[0, 2]], np.array([0, 0, 1]), np.array([2, 1])),
        gradient=(),
    ),
    moved(
        "ListDiff",
        {"x": [1.0, 2.0, 3.0, 2.0, 4.0], "y": [2.0, 4.0]},
        lambda x, y: (x[[0, 2]], np.array([0, 2])),
        ALL,
        gradient=(),
    ),
    moved(
        "DynamicPartition",
        {"data": ramp(4, 2), "partitions": ints(1, 0, 1, 1)},
        lambda x, p: (x[1:2], x[[0, 2, 3]]),
        attrs={"num_partitions": 2},
        orders=1,
    ),
    moved(
        "DynamicStitch",
        {"i": ints(2, 0), "j": ints(1), "a": ramp(2, 2), "b": 10 + ramp(1, 2)},
        lambda i, j, a, b: np.array([a[1], b[0], a[0]]),
        gradient=(),
        lists={"indices": ("i", "j"), "data": ("a", "b")},
    ),
    moved(
        "Range",
        {"start": 1.0, "limit": 8.0, "delta": 2.0},
        np.array([1, 3, 5, 7]),
        FLOATS + ("int8", "int64"),
        gradient=(),
    ),
    moved(
        "LinSpace",
        {"start": 1.0, "stop": 2.0, "num": np.int32(5)},
        np.linspace(1, 2, 5),
        FLOATS,
        gradient=(),
    ),
    error(
        "GatherV2",
        {"params": ramp(3), "indices": ints(1, 3), "axis": np.int32(0)},
        "indices[1] = 3 is not in [0, 3)",
    ),
    error(
        "GatherNd",
        {"params": ramp(3, 2), "indices": ints([0, 2])},
        "indices[0] = [0, 2] does not index into param shape [3,2]",
    ),
    error(
        "ScatterNd",
        {"indices": ints([4]), "updates": ramp(1), "shape": ints(3)},
        "indices[0] = [4] does not index into shape [3]",
    ),
    error(
        "Range", {"start": 0.0, "limit": 5.0, "delta": 0.0}, "Requires delta != 0: 0"
    ),
]

DIAGONALS = [
    moved(
        "MatrixDiag",
        {"diagonal": ramp(2, 3)},
        lambda d: np.stack([np.diag(r) for r in d]),
        ALL,
    ),
    moved(
        "MatrixDiagPart",
        {"input": ramp(2, 3, 4)},
        lambda x: np.diagonal(x, 0, 1, 2),
        ALL,
    ),
    moved(
        "MatrixSetDiag",
        {"input": ramp(2, 3), "diagonal": [9.0, 8.0]},
        lambda x, d: np.array([[d[0], x[0, 1], x[0, 2]], [x[1, 0], d[1], x[1, 2]]]),
    ),
    moved(
        "MatrixDiagV3",
        {
            "diagonal": ramp(2, 3),
            "k": ints(-1, 0),
            "num_rows": np.int32(-1),
            "num_cols": np.int32(-1),
            "padding_value": 7.0,
        },
        lambda d, k, r, c, p: np.array(
            [[d[0, 0], p, p], [d[1, 0], d[0, 1], p], [p, d[1, 1], d[0, 2]]]
        ),
    ),
    moved(
        "MatrixDiagPartV3",
        {"input": ramp(3, 4), "k": ints(0, 2), "padding_value": 9.0},
        lambda x, k, p: np.array(
            [
                [p, x[0, 2], x[1, 3]],
                [x[0, 1], x[1, 2], x[2, 3]],
                [x[0, 0], x[1, 1], x[2, 2]],
            ]
        ),
        gradient=("input",),
    ),
    moved(
        "MatrixSetDiagV3",
        {"input": ramp(3, 3), "diagonal": [9.0, 8.0], "k": np.int32(1)},
        lambda x, d, k: (
            x + np.array([[0, d[0] - x[0, 1], 0], [0, 0, d[1] - x[1, 2]], [0, 0, 0]])
        ),
    ),
    moved(
        "MatrixBandPart",
        {"input": ramp(3, 4), "num_lower": np.int32(1), "num_upper": np.int32(-1)},
        lambda x, a, b: np.triu(x, -1),
        ALL,
    ),
    moved("Diag", {"diagonal": ramp(2)}, np.diag, ("float64", "int32")),
    moved(
        "DiagPart",
        {"input": ramp(2, 3, 2, 3)},
        lambda x: np.diag(x.reshape(6, 6)).reshape(2, 3),
        ("float64", "int32"),
    ),
]


TABLE = {"params": ramp(4, 3, 2), "indices": ints([1, 0], [1, 1])}
PATCHES = {"ksizes": [1, 2, 2, 1], "strides": [1, 2, 1, 1]}
# Ops whose gradients sum rows by number.
SUMMED = [
    moved("GatherV2", {**TABLE, "axis": np.int32(0)}, lambda x, i, a: x[i]),
    moved("GatherV2", {**TABLE, "axis": np.int32(1)}, lambda x, i, a: x[:, i]),
    moved("GatherV2", {**TABLE, "axis": np.int32(-1)}, lambda x, i, a: x[..., i]),
    moved(
        "GatherV2",
        {"params": ramp(2, 3, 2), "indices": ints([1, 0], [2, 2]), "axis": np.int32(1)},
        lambda x, i, a: np.stack([x[0][i[0]], x[1][i[1]]]),
        attrs={"batch_dims": 1},
    ),
    moved("Gather", TABLE, lambda x, i: x[i]),
    moved(
        "GatherNd",
        {"params": ramp(4, 3), "indices": ints([1], [0], [1])},
        lambda x, i: x[i[:, 0]],
    ),
    moved(
        "DynamicPartition",
        {"data": ramp(4, 2), "partitions": ints(1, 0, 1, 1)},
        lambda x, p: (x[1:2], x[[0, 2, 3]]),
        attrs={"num_partitions": 2},
    ),
    moved(
        "DynamicStitch",
        {"i": ints(2, 0), "j": ints(1), "a": ramp(2, 2), "b": 10 + ramp(1, 2)},
        lambda i, j, a, b: np.array([a[1], b[0], a[0]]),
        lists={"indices": ("i", "j"), "data": ("a", "b")},
    ),
    moved(
        "ExtractImagePatches",
        {"images": ramp(2, 4, 3, 2)},
        RECORDED,
        ("float64",),
        attrs={**PATCHES, "rates": [1, 1, 2, 1], "padding": "SAME"},
    ),
    moved(
        "ExtractImagePatches",
        {"images": ramp(1, 4, 3, 1)},
        lambda x: np.stack(
            [x[:, :-1:2, :2], x[:, :-1:2, 1:], x[:, 1::2, :2], x[:, 1::2, 1:]], 3
        )[..., 0],
        attrs={**PATCHES, "rates": [1, 1, 1, 1], "padding": "VALID"},
    ),
    moved(
        "ExtractVolumePatches",
        {"input": ramp(1, 2, 3, 2, 1)},
        RECORDED,
        ("float64",),
        attrs={"ksizes": [1, 1, 2, 2, 1], "strides": [1] * 5, "padding": "VALID"},
    ),
]


@pytest.mark.parametrize("row,dtype", cases(SUMMED))
def test_summed(row, dtype):
    check(row, dtype)


@pytest.mark.parametrize("row,dtype", cases(SHAPES))
def test_shapes(row, dtype):
    check(row, dtype)


@pytest.mark.parametrize("row,dtype", cases(JOINED))
def test_joining(row, dtype):
    check(row, dtype)


@pytest.mark.parametrize("row,dtype", cases(SLICES))
def test_slices(row, dtype):
    check(row, dtype)


@pytest.mark.parametrize("row,dtype", cases(MOVES))
def test_moves(row, dtype):
    check(row, dtype)


@pytest.mark.parametrize("row,dtype", cases(PICKS))
def test_picks(row, dtype):
    check(row, dtype)


@pytest.mark.parametrize("row,dtype", cases(DIAGONALS))
def test_diagonals(row, dtype):
    check(row, dtype)


def test_arguments_that_do_not_fit():
    x = tf.ones([2, 3])
    with pytest.raises(ValueError, match="Dimensions 2 and 3 are not compatible"):
        tf.repeat([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match='Got 1 inputs for equation "ij,jk->ik", exp'):
        tf.einsum("ij,jk->ik", x)
    with pytest.raises(ValueError, match="must be a supported vector norm, got foo"):
        tf.norm(x, ord="foo")
    with pytest.raises(ValueError, match="Received `mode` = FOO"):
        tf.pad(x, [[1, 1], [0, 0]], "foo")


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_sizes_that_need_64_bits(wrap):
    wide = [2**40, 0]
    for make in (
        lambda: tf.zeros(wide),
        lambda: tf.ones((0, 2**33)),
        lambda: tf.fill(wide, 1.0),
        lambda: tf.broadcast_to(1.0, wide),
        lambda: tf.reshape(tf.zeros([0]), wide),
        lambda: tf.raw_ops.Fill(dims=(0, 2**31), value=1.0),
    ):
        assert max(wrap(make)().shape) >= 2**31
    made = wrap(lambda: tf.range(2**40, 2**40 + 2))()
    assert made.dtype == tf.int64
    np.testing.assert_array_equal(made, [2**40, 2**40 + 1])
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        wrap(lambda: tf.expand_dims(1.0, 2**32))()


@pytest.mark.parametrize("batch_dims", [0, 1])
def test_gather_nd_that_ignores_bad_indices(batch_dims):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    rows = tf.constant([[[1], [-1]], [[0], [5]]]) if batch_dims else [[1, 1], [7, 0]]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.gather_nd(x, rows, batch_dims, bad_indices_policy="IGNORE")
    assert y.numpy().tolist() == (
        [[2.0, 0.0], [3.0, 0.0]] if batch_dims else [4.0, 0.0]
    )
    dx = tape.gradient(y, x).numpy().tolist()
    assert dx == ([[0.0, 1.0], [1.0, 0.0]] if batch_dims else [[0.0, 0.0], [0.0, 1.0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not index into"):
        tf.gather_nd(x, rows, batch_dims)
