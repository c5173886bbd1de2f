"""Fractional pools, shuffled indices, Sobol's points, learned samplers."""

import headrace as tf
import pools_and_samplers_cases
import pytest
import recorded
from headrace.framework.settings import random_seed


@pytest.fixture(autouse=True)
def own_seed(monkeypatch):
    """The seed that a case sets is gone after it."""
    context = random_seed._Context
    monkeypatch.setattr(context, "seed", context.seed)


@pytest.mark.parametrize("name", recorded.names(pools_and_samplers_cases))
def test_as_recorded(name):
    recorded.check(pools_and_samplers_cases, name, tf)


@pytest.mark.parametrize("rounds", [-4, 0, 3, 5, 2**40])
def test_rounds_that_are_not_supported(rounds):
    seed = tf.constant([1, 2, 3], tf.uint32)
    with pytest.raises(tf.errors.UnimplementedError, match="rounds"):
        tf.raw_ops.RandomIndexShuffle(index=1, seed=seed, max_index=5, rounds=rounds)


def test_more_dimensions_than_the_table_has():
    with pytest.raises(tf.errors.UnimplementedError, match="at most 1111"):
        tf.math.sobol_sample(1112, 1)


@pytest.mark.parametrize("rows", [[0, 2, 9], [0, 5, 5], [3, 2, 5], [0, -1, 5], [0, 5]])
@pytest.mark.parametrize("op", ["FractionalMaxPoolGrad", "FractionalAvgPoolGrad"])
def test_places_that_are_no_windows(op, rows):
    first = {"orig_input_tensor_shape": [1, 5, 5, 1]}
    if op == "FractionalMaxPoolGrad":
        first = {"orig_input": tf.zeros([1, 5, 5, 1])}
        first["orig_output"] = tf.zeros([1, 2, 2, 1])
    with pytest.raises(tf.errors.InvalidArgumentError):
        getattr(tf.raw_ops, op)(
            out_backprop=tf.zeros([1, 2, 2, 1]),
            row_pooling_sequence=rows if rows != [0, 2, 9] else [7, 8, 9],
            col_pooling_sequence=[0, 2, 5],
            **first,
        )
