"""Random streams follow the seeds."""

import headrace as tf


def _draws():
    return [tf.random.uniform([3]).numpy().tolist() for _ in range(2)]


def test_the_same_seed_gives_the_same_numbers():
    tf.random.set_seed(42)
    first = _draws()
    tf.random.set_seed(42)
    assert _draws() == first
    assert first[0] != first[1]
    assert abs(first[0][0] - 0.6645621) < 1e-6  # as TensorFlow draws


def test_generator_state():
    g = tf.random.Generator.from_seed(1)
    assert g.state.numpy().tolist() == [1, 0, 0]
    g.normal([3])
    assert g.state.numpy().tolist() == [769, 0, 0]
    again = tf.random.Generator.from_seed(1)
    assert again.uniform([2]).shape == (2,)


def test_stateless():
    a = tf.random.stateless_uniform([3], seed=[1, 2]).numpy()
    b = tf.random.stateless_uniform([3], seed=[1, 2]).numpy()
    assert (a == b).all()


def test_states_of_seeds():
    def state(seed, kind):
        return tf.random.create_rng_state(seed, kind).numpy().tolist()

    assert state([12, 34], "threefry") == [12, 34]
    assert state(12, "threefry") == [12, 0]
    assert state(1234, "philox") == [1234, 0, 0]
    assert state([12, 34], "philox") == [0, 12, 34]
    assert state(-1, "philox") == [-1, -1, -1]


def test_no_seed_is_set_again():
    """set_seed(None): datasets' and ops' seeds are those of a program's start."""

    def shuffled():
        return list(tf.data.Dataset.range(10).shuffle(4, seed=1).as_numpy_iterator())

    at_start = shuffled()
    tf.random.set_seed(3)
    assert shuffled() != at_start
    tf.random.set_seed(None)
    assert shuffled() == at_start
    assert at_start == [0, 4, 5, 1, 2, 7, 9, 8, 6, 3]  # TensorFlow 2.21
    a, b = tf.random.uniform([4]), tf.random.uniform([4])
    assert a.numpy().tolist() != b.numpy().tolist()
    with tf.Graph().as_default() as graph:
        tf.compat.v1.set_random_seed(7)
        tf.compat.v1.set_random_seed(None)
        assert graph.seed is None


def test_sizes_of_a_draw_may_be_tensors():
    g, same = (tf.random.Generator.from_seed(5) for _ in range(2))
    draw = tf.function(
        lambda x: g.uniform([tf.shape(x)[0], 2]),
        input_signature=[tf.TensorSpec([None], tf.float32)],
    )
    for n in (3, 1):
        drawn = draw(tf.zeros([n]))
        assert drawn.numpy().tolist() == same.uniform([n, 2]).numpy().tolist()
    assert g.normal([tf.constant(4)]).shape == [4]
