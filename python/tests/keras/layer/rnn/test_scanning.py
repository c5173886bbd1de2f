"""Loops of recurrent layers in traced code: what they give, and where they begin."""

import headrace as tf
import numpy as np
import pytest

L = tf.keras.layers
STEPS = 20  # more than are written out where turns are wide


def made(cls, steps=STEPS, units=96, batch=6, **how):
    layer = getattr(L, cls)(units, return_sequences=True, **how)
    x = tf.constant(np.random.RandomState(1).randn(batch, steps, 5).astype("f"))
    layer(x)
    return layer, x


def operations(layer, x):
    graph = tf.function(layer.__call__).get_concrete_function(x).graph
    return {op.type for op in graph.get_operations()}


@pytest.mark.parametrize("cls", ["LSTM", "GRU"])
@pytest.mark.parametrize("masked", [False, True])
def test_loops_give_what_steps_one_by_one_do(cls, masked):
    layer, x = made(cls)
    given = {}
    if masked:
        given["mask"] = tf.sequence_mask([20, 3, 1, 11, 19, 7], STEPS)

    def both(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                out = layer(x, **given)
                loss = tf.reduce_sum(tf.sin(out))
            first = tape.gradient(loss, [x, *layer.trainable_variables])
            squares = tf.add_n([tf.reduce_sum(g * g) for g in first])
        second = outer.gradient(squares, [x, *layer.trainable_variables])
        return [out, *first, *second]

    eager, traced = both(x), tf.function(both)(x)
    np.testing.assert_array_equal(eager[0], traced[0])
    for a, b in zip(eager, traced):
        size = np.abs(a.numpy()).max() + 1e-6
        np.testing.assert_allclose(b / size, a / size, atol=2e-5)


@pytest.mark.parametrize(
    "loops, how",
    [
        (True, {}),
        (False, {"steps": 16}),
        (False, {"batch": 4}),
        (False, {"units": 32}),
        (False, {"unroll": True}),
    ],
)
def test_where_loops_begin(loops, how):
    found = operations(*made("LSTM", **how))
    assert bool(found & {"While", "StatelessWhile"}) == loops


def test_a_step_of_the_way_back_does_not_cost_the_sequence():
    layer, x = made("LSTM")

    def slopes(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(layer(x))
        return tape.gradient(loss, x)

    graph = tf.function(slopes).get_concrete_function(x).graph.as_graph_def()
    bodies = [f for f in graph.library.function if "body" in f.signature.name]
    assert len(bodies) >= 2  # there and back
    ops = {node.op for f in bodies for node in f.node_def}
    assert not ops & {"GatherV2", "ResourceGather", "UnsortedSegmentSum"}
