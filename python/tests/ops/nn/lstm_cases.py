"""Cases of test_lstm.py (recorded.py writes their values)."""

import os

import numpy as np

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

BATCH, INPUTS, CELLS, STEPS = 2, 3, 4, 5
NAMES = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")


def inputs(tf, dtype, steps=None):
    shapes = {
        "x": (BATCH, INPUTS) if steps is None else (steps, BATCH, INPUTS),
        "cs_prev": (BATCH, CELLS),
        "h_prev": (BATCH, CELLS),
        "w": (INPUTS + CELLS, 4 * CELLS),
        "wci": (CELLS,),
        "wcf": (CELLS,),
        "wco": (CELLS,),
        "b": (4 * CELLS,),
    }
    random = np.random.RandomState(1)
    return {n: tf.constant(random.randn(*s).astype(dtype)) for n, s in shapes.items()}


def drawn(tf, seed, shape, dtype):
    return tf.constant(np.random.RandomState(seed).randn(*shape).astype(dtype))


KINDS = [
    {"use_peephole": peephole, **more}
    for peephole in (False, True)
    for more in ({}, {"cell_clip": 0.5}, {"cell_clip": -1.0, "forget_bias": 0.25})
]


def _kinds(dtype):
    return KINDS if dtype == "float32" else KINDS[1::3]


def _cell(tf, dtype):
    given = inputs(tf, dtype)
    results = []
    for kind in _kinds(dtype):
        made = tf.raw_ops.LSTMBlockCell(**given, **kind)._asdict()
        results += made.values()
        h = made.pop("h")
        results += tf.raw_ops.LSTMBlockCellGrad(
            **given,
            **made,
            cs_grad=drawn(tf, 2, h.shape, dtype),
            h_grad=drawn(tf, 3, h.shape, dtype),
            use_peephole=kind["use_peephole"],
        )
    return results


def _sequence(tf, dtype, v2):
    given = inputs(tf, dtype, STEPS)
    forward = tf.raw_ops.BlockLSTMV2 if v2 else tf.raw_ops.BlockLSTM
    backward = tf.raw_ops.BlockLSTMGradV2 if v2 else tf.raw_ops.BlockLSTMGrad
    results = []
    for kind in _kinds(dtype):
        if v2 and "forget_bias" in kind:
            continue
        for steps in (STEPS, 3, 0):
            last = tf.constant(steps, tf.int64)
            made = forward(seq_len_max=last, **given, **kind)._asdict()
            results += [v[:steps] for v in made.values()]
            grads = backward(
                seq_len_max=last,
                **given,
                **made,
                cs_grad=drawn(tf, 4, made["h"].shape, dtype),
                h_grad=drawn(tf, 5, made["h"].shape, dtype),
                use_peephole=kind["use_peephole"],
            )
            if steps:
                results += [grads[0][:steps], *grads[1:]]
    return results


def case_cell(tf):
    return _cell(tf, "float32")


def case_sequence(tf):
    return _sequence(tf, "float32", False)


def case_sequence_v2(tf):
    return _sequence(tf, "float32", True)


def case_half_cell(tf):
    return _cell(tf, "float16")


def case_half_sequence(tf):
    return _sequence(tf, "float16", False)


def case_half_sequence_v2(tf):
    return _sequence(tf, "float16", True)


def case_tape(tf):
    """Not of BlockLSTMV2, which TensorFlow differentiates with the first version's
    order of gates."""
    given = inputs(tf, "float32", STEPS)
    with tf.GradientTape() as tape:
        tape.watch(list(given.values()))
        last = tf.constant(4, tf.int64)
        made = tf.raw_ops.BlockLSTM(seq_len_max=last, **given, use_peephole=True)
        loss = tf.reduce_sum(tf.sin(made.h[:4])) + tf.reduce_sum(made.cs[3] ** 2)
    gradients = tape.gradient(loss, list(given.values()))
    return [gradients[0][:4], *gradients[1:]]


def case_gru_cell(tf):
    random = np.random.RandomState(6)

    def some(*shape):
        return tf.constant(random.randn(*shape).astype(np.float32))

    given = {
        "x": some(BATCH, INPUTS),
        "h_prev": some(BATCH, CELLS),
        "w_ru": some(INPUTS + CELLS, 2 * CELLS),
        "w_c": some(INPUTS + CELLS, CELLS),
        "b_ru": some(2 * CELLS),
        "b_c": some(CELLS),
    }
    made = tf.raw_ops.GRUBlockCell(**given)
    back = tf.raw_ops.GRUBlockCellGrad(
        **given, r=made.r, u=made.u, c=made.c, d_h=some(BATCH, CELLS)
    )
    return [*made, *back]
