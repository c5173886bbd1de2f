"""Products, reductions, scans, segments, top-k: values and gradients."""

import headrace as tf
import numpy as np
import pytest
from driver import RECORDED, Row, cases, check

BOTH = ("float32", "float64")
_random = np.random.RandomState(7)


def some(*shape):
    return _random.randn(*shape).round(3)


def matmul(a, b):
    return np.matmul(a, b)


def segments(how, count):
    def want(data, ids, *_):
        rows = [[d for d, i in zip(data, ids, strict=True) if i == s] for s in count]
        return np.array([how(np.array(r), axis=0) for r in rows])

    return want


PRODUCTS = [
    Row("MatMul", {"a": some(3, 4), "b": some(4, 2)}, matmul),
    Row(
        "MatMul",
        {"a": some(4, 3), "b": some(2, 4)},
        lambda a, b: a.T @ b.T,
        {"transpose_a": True, "transpose_b": True},
    ),
    Row(
        "MatMul",
        {"a": some(3, 4), "b": some(3, 2)},
        error="Matrix size-incompatible",
        dtypes=("float32",),
    ),
    Row("BatchMatMulV2", {"x": some(2, 1, 3, 4), "y": some(3, 4, 2)}, matmul),
    Row(
        "Einsum",
        {"a": some(2, 3, 4), "b": some(2, 5, 4)},
        lambda a, b: np.einsum("bij,bkj->bik", a, b),
        {"equation": "bij,bkj->bik"},
        lists={"inputs": ("a", "b")},
    ),
    Row(
        "Einsum",
        {"a": some(3, 3, 4), "b": some(4, 2)},
        lambda a, b: np.einsum("iij,jk->k", a, b),
        {"equation": "iij,jk->k"},
        lists={"inputs": ("a", "b")},
        dtypes=BOTH,
    ),
]


def reduction(op, want, x, axis, dtypes=BOTH, **rest):
    return Row(
        op,
        {"input": x, "axis": np.array(axis, np.int32)},
        lambda x, _: want(x, axis=tuple(axis)),
        dtypes=dtypes,
        fixed=("axis",),
        gradient=("input",),
        **rest,
    )


REDUCTIONS = [
    reduction("Sum", np.sum, some(2, 3, 4), [0, 2]),
    reduction("Mean", np.mean, some(2, 3, 4), [1]),
    reduction("Prod", np.prod, some(3, 4), [0]),
    # Cumprod's own gradient passes over zeros, as upstream's.
    reduction("Prod", np.prod, [[0.0, 2.0], [3.0, 4.0], [5.0, 0.0]], [0], orders=1),
    reduction("Max", np.max, some(3, 4), [0]),
    reduction("Min", np.min, some(3, 4), [1]),
    reduction(
        "EuclideanNorm", lambda x, axis: np.sqrt((x * x).sum(axis)), some(3, 4), [0]
    ),
]


def scan(op, want, x, **attrs):
    return Row(
        op,
        {"x": x, "axis": np.int32(0)},
        want and (lambda x, _: want(x)),
        attrs,
        dtypes=BOTH,
        fixed=("axis",),
        gradient=("x",),
    )


OTHERS = [
    scan("Cumsum", lambda x: np.cumsum(x, 0), some(4, 2)),
    scan(
        "Cumsum",
        lambda x: np.cumsum(x[::-1], 0)[::-1] - x,
        some(4, 2),
        exclusive=True,
        reverse=True,
    ),
    scan("Cumprod", lambda x: np.cumprod(x, 0), some(4, 2)),
    scan("CumulativeLogsumexp", lambda x: np.logaddexp.accumulate(x, 0), some(4, 2)),
    Row("L2Loss", {"t": some(3, 4)}, lambda x: (x * x).sum() / 2, dtypes=BOTH),
    Row("Cross", {"a": some(2, 3), "b": some(2, 3)}, np.cross, dtypes=BOTH),
    Row(
        "TopKV2",
        {"input": some(3, 5), "k": np.int32(2)},
        lambda x, _: (
            -np.sort(-x)[:, :2],
            np.argsort(-x, kind="stable")[:, :2].astype(np.int32),
        ),
        dtypes=BOTH,
        fixed=("k",),
        gradient=("input",),
    ),
    Row(
        "UnsortedSegmentSum",
        {
            "data": some(4, 2),
            "segment_ids": np.array([1, 0, 1, 1], np.int32),
            "num_segments": np.int32(2),
        },
        segments(np.sum, range(2)),
        dtypes=BOTH,
        fixed=("segment_ids", "num_segments"),
        gradient=("data",),
    ),
    *(
        Row(
            f"UnsortedSegment{how}",
            {
                "data": some(4, 2),
                "segment_ids": np.array([1, 0, 1, -1], np.int32),
                "num_segments": np.int32(2),
            },
            RECORDED,
            dtypes=BOTH,
            fixed=("segment_ids", "num_segments"),
            gradient=("data",),
        )
        for how in ("Prod", "Max", "Min")
    ),
    *(
        Row(
            f"Segment{how}",
            {"data": some(4, 2), "segment_ids": np.array([0, 0, 1, 1], np.int32)},
            segments(f, range(2)),
            dtypes=BOTH,
            fixed=("segment_ids",),
            gradient=("data",),
        )
        for how, f in (
            ("Sum", np.sum),
            ("Mean", np.mean),
            ("Prod", np.prod),
            ("Max", np.max),
            ("Min", np.min),
        )
    ),
]


@pytest.mark.parametrize("row, dtype", cases(PRODUCTS + REDUCTIONS + OTHERS))
def test_row(row, dtype):
    check(row, dtype)


def test_approximate_top_k():
    x = tf.constant([[18.0, 4, 21, 10], [0, 16, 12, 19]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        values, indices = tf.math.approx_max_k(x, 2)
        loss = tf.reduce_sum(values * [[1.0, 2.0]])
    np.testing.assert_array_equal(values, [[21, 18], [19, 16]])
    np.testing.assert_array_equal(indices, [[2, 0], [3, 1]])
    np.testing.assert_array_equal(tape.gradient(loss, x), [[2, 0, 1, 0], [0, 2, 0, 1]])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="last dimension >= k = 5 but was 4"
    ):
        tf.math.approx_max_k(x, 5)
    assert tf.math.approx_min_k(x, 2)[1].numpy().tolist() == [[1, 3], [0, 2]]
