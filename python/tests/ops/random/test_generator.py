"""tf.random.Generator and the seeds that deterministic programs must name."""

import headrace as tf
import numpy as np
import pytest
from headrace.framework.settings import config

Generator = tf.random.Generator


@pytest.fixture
def no_global():
    tf.random.set_global_generator(None)
    yield
    tf.random.set_global_generator(None)


@pytest.fixture
def deterministic():
    tf.random.set_seed(None)
    tf.config.experimental.enable_op_determinism()
    yield
    config.disable_op_determinism()
    tf.random.set_seed(None)


@pytest.mark.parametrize(
    "seed, state",
    [
        (2**65 + 3, [3, 2, 0]),
        (np.int32(9), [0, 0, 9]),
        (np.uint64(2**64 - 2), [0, 0, -2]),
        (tf.constant(-3), [0, 0, -3]),
        ([2**63 + 1, 2], [0, -(2**63) + 1, 2]),
        ([[1, 2], [3, 4]], [1, 2, 3]),
        (tf.constant(1.75), [0, 0, 1]),
        ([], [0, 0, 0]),
    ],
)
def test_seeds_of_all_kinds(seed, state):
    """Python integers give their words, all else its numbers, at the end."""
    assert tf.random.create_rng_state(seed, "philox").numpy().tolist() == state


def test_states_of_tensors_in_functions():
    @tf.function
    def states(scalar, vector):
        return (
            tf.random.create_rng_state(scalar, 1),
            tf.random.create_rng_state(vector, "threefry"),
        )

    first, second = states(tf.constant(4), tf.constant([5, 6, 7]))
    assert first.numpy().tolist() == [0, 0, 4]
    assert second.numpy().tolist() == [5, 6]
    made = []

    @tf.function
    def draw(key, counter):
        if not made:
            made.append(Generator.from_key_counter(key, counter, 1))
        return made[0].normal([2])

    drawn = draw(tf.constant(7), tf.constant([3, 1])).numpy()
    expected = Generator.from_key_counter(7, [3, 1], "philox").normal([2])
    np.testing.assert_array_equal(drawn, expected)


def test_unfit_states():
    for key, counter in [(1, 2), (1, [2]), (1, [2, 3, 4]), ([1], [2, 3])]:
        with pytest.raises(ValueError, match="are incompatible"):
            Generator.from_key_counter(key, counter, 1)
    with pytest.raises(ValueError, match="are incompatible"):
        Generator.from_seed(1).reset([1, 2])
    with pytest.raises(ValueError, match="state"):
        Generator(state=[1, 2, 3])
    with pytest.raises(TypeError, match="Can't convert argument `alg`"):
        Generator.from_seed(1, alg=1.5)
    with pytest.raises(ValueError, match="unsupported value mersenne"):
        Generator.from_seed(1, alg="mersenne")
    assert Generator.from_seed(1, alg="auto_select").algorithm == 3


def test_a_variable_is_the_state_itself():
    variable = tf.Variable([5, 0, 9], dtype=tf.int64)
    generator = Generator(state=variable, alg=1)
    generator.uniform([3])
    assert generator.state is variable
    assert variable.numpy().tolist() == [5 + 3 * 256, 0, 9]


def test_integers_with_both_bounds_or_none():
    whole = Generator.from_seed(2).uniform([4], None, None, tf.uint32)
    again = Generator.from_seed(2).uniform_full_int([4], tf.uint32)
    np.testing.assert_array_equal(whole, again)
    for low, high in [(0, None), (None, 3)]:
        with pytest.raises(ValueError, match="must be both `None` or both non-`None`"):
            Generator.from_seed(2).uniform([1], low, high, tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="maxval must be a scalar"):
        Generator.from_seed(2).uniform([1], 1, [4, 5], tf.int32)


def test_split_and_seeds_in_functions():
    """Generators of a split are made in a trace too, and go on from call to call."""
    base, parts = Generator.from_seed(3), []

    @tf.function
    def draw():
        if not parts:
            parts.extend(base.split(2))
        return [part.normal([]) for part in parts], base.make_seeds(3)

    (a, b), seeds = draw()
    (c, d), more = draw()
    assert len({float(x) for x in (a, b, c, d)}) == 4
    assert seeds.shape == (2, 3)
    assert seeds.dtype == tf.int64
    assert not np.array_equal(seeds, more)
    assert [p.state.numpy()[0] for p in parts] == [512, 512]


def test_names_in_graphs():
    generator = Generator.from_seed(4)

    @tf.function
    def draw():
        return generator.normal([1]), generator.uniform([1], name="mine")

    names = [op.name for op in draw.get_concrete_function().graph.get_operations()]
    assert "stateful_normal" in names
    assert "mine" in names


def test_the_global_generator(no_global):
    """It is made when asked for, knows nothing of the global seed, and None drops it."""
    first = tf.random.get_global_generator()
    assert tf.random.get_global_generator() is first
    state = first.state.numpy()
    tf.random.set_seed(3)
    np.testing.assert_array_equal(first.state, state)
    tf.random.set_seed(None)
    tf.random.set_global_generator(None)
    assert tf.random.get_global_generator() is not first


def test_deterministic_programs_name_seeds(deterministic, no_global):
    for draw in (
        lambda: tf.random.normal([1]),
        lambda: tf.random.shuffle([1, 2]),
        lambda: tf.data.Dataset.range(3).shuffle(2),
        lambda: tf.nn.dropout([1.0], 0.5),
        tf.function(lambda: tf.random.uniform([1])),
    ):
        with pytest.raises(RuntimeError, match="require a seed to be set"):
            draw()
    with pytest.raises(RuntimeError, match="set_global_generator"):
        tf.random.get_global_generator()
    with pytest.raises(RuntimeError, match="from_non_deterministic_state"):
        Generator.from_non_deterministic_state()
    assert tf.random.normal([1], seed=4).shape == (1,)
    tf.random.set_seed(1)
    assert tf.random.normal([1]).shape == (1,)
    tf.random.set_global_generator(Generator.from_seed(1))
    assert tf.random.get_global_generator().normal([1]).shape == (1,)


def test_deterministic_operations_name_seeds(deterministic):
    raw = tf.raw_ops
    calls = [
        lambda **s: raw.RandomUniform(shape=[2], dtype=tf.float32, **s),
        lambda **s: raw.RandomShuffle(value=[1, 2, 3], **s),
        lambda **s: raw.Multinomial(logits=[[0.0, 1.0]], num_samples=2, **s),
        lambda **s: (
            raw.RandomGammaGrad(alpha=[1.0], sample=[1.0])
            if s
            else raw.RandomGamma(shape=[1], alpha=[1.0])
        ),
        lambda **s: raw.UniformCandidateSampler(
            true_classes=[[1]],
            num_true=1,
            num_sampled=2,
            unique=True,
            range_max=5,
            **s,
        ),
    ]
    for call in calls:
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="must have a seed specified"
        ):
            call()
        call(seed=3)
    config.disable_op_determinism()
    for call in calls:
        call()
