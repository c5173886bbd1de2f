"""Cases of test_general_conv.py (recorded.py writes their values). One image
alone is resized or padded: its kernel takes every image for the first."""

import os

import numpy as np

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

PADS = [[0, 0], [1, 2], [2, 1], [0, 0]]
DTYPES = ("float32", "float64", "float16", "int32")


def some(tf, seed, shape, dtype="float32"):
    drawn = np.random.RandomState(seed).randint(-8, 9, shape)
    return tf.constant((drawn if dtype == "int32" else drawn / 8).astype(dtype))


def case_images(tf):
    return [
        tf.raw_ops.Conv(
            input=some(tf, 1, (*batch, 5, 4, 3), dtype),
            filter=some(tf, 2, (3, 2, 3, 2), dtype),
            strides=[1, 2, 1, 1],
            padding=padding,
            batch_dims=len(batch),
        )
        for dtype in DTYPES
        for batch in ((), (2,), (2, 1, 2))
        for padding in ("SAME", "VALID")
    ]


def case_volumes(tf):
    return [
        tf.raw_ops.Conv(
            input=some(tf, 3, (*batch, 3, 4, 5, 2), dtype),
            filter=some(tf, 4, (2, 2, 3, 2, 2), dtype),
            strides=[1, 1, 2, 1, 1],
            padding=padding,
            batch_dims=len(batch),
        )
        for dtype in DTYPES
        for batch in ((), (2,), (2, 1))
        for padding in ("SAME", "VALID")
    ]


def case_explicit_and_dilated(tf):
    return [
        tf.raw_ops.Conv(
            input=some(tf, 5, (*batch, 5, 4, 3)),
            filter=some(tf, 6, (3, 2, 3, 2)),
            strides=[1, 1, 1, 1],
            padding="EXPLICIT",
            explicit_paddings=[0, 0, 1, 2, 0, 3, 0, 0],
            dilations=dilations,
            batch_dims=len(batch),
        )
        for batch in ((), (2,), (2, 2))
        for dilations in ([], [1, 2, 1, 1])
    ]


def case_padded(tf):
    return [
        tf.raw_ops.FusedPadConv2D(
            input=some(tf, 7, (1, 4, 5, 3), dtype),
            paddings=PADS,
            filter=some(tf, 8, (3, 2, 3, 2), dtype),
            mode=mode,
            strides=[1, 1, 2, 1],
            padding=padding,
        )
        for dtype in DTYPES[:3]
        for mode in ("REFLECT", "SYMMETRIC")
        for padding in ("SAME", "VALID")
    ]


def case_resized(tf):
    return [
        tf.raw_ops.FusedResizeAndPadConv2D(
            input=some(tf, 9, (1, 3, 5, 3), dtype),
            size=[4, 7],
            paddings=PADS,
            filter=some(tf, 10, (3, 2, 3, 2), dtype),
            resize_align_corners=align,
            mode=mode,
            strides=[1, 1, 1, 1],
            padding="VALID",
        )
        for dtype in DTYPES[:2]
        for mode in ("REFLECT", "SYMMETRIC")
        for align in (False, True)
    ]
