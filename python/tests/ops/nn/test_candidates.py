"""Candidate samplers and their losses; the numbers are those of TensorFlow 2.21."""

import headrace as tf
import numpy as np
import pytest

R = tf.raw_ops
TRUE = np.array([[1, 2], [5, 0]], "i8")


def _draw(op, count, unique, true_classes=TRUE, **more):
    return getattr(R, op + "CandidateSampler")(
        true_classes=true_classes,
        num_true=2,
        num_sampled=count,
        unique=unique,
        seed=3,
        seed2=4,
        **more,
    )


WEIGHTS = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize(
    "op, count, unique, more, classes",
    [
        ("Uniform", 6, True, {"range_max": 10}, [1, 5, 9, 7, 3, 4]),
        ("Uniform", 6, False, {"range_max": 10}, [1, 5, 9, 9, 7, 3]),
        ("Uniform", 2, False, {"range_max": 2**40}, [294053625089, 111861653137]),
        ("LogUniform", 6, True, {"range_max": 10}, [1, 3, 6, 0, 5, 7]),
        ("LogUniform", 6, False, {"range_max": 1000}, [13, 56, 7, 392, 0, 0]),
        ("LogUniform", 3, False, {"range_max": 2**40}, [49520, 11250793, 6473]),
        (
            "FixedUnigram",
            5,
            True,
            {"range_max": 6, "unigrams": WEIGHTS},
            [3, 5, 4, 1, 2],
        ),
        (
            "FixedUnigram",
            5,
            False,
            {"range_max": 6, "unigrams": WEIGHTS},
            [3, 5, 4, 3, 5],
        ),
        (
            "FixedUnigram",
            5,
            False,
            {
                "range_max": 7,
                "unigrams": WEIGHTS,
                "num_reserved_ids": 1,
                "distortion": 0.75,
            },
            [3, 4, 6, 5, 2],
        ),
        ("All", 6, True, {}, list(range(6))),
    ],
)
def test_classes(op, count, unique, more, classes):
    made = _draw(op, count, unique, **more)
    assert made[0].numpy().tolist() == classes
    # A class has one expected count, true or sampled.
    counts = dict(zip(classes, made[2].numpy()))
    for value, count in zip(TRUE.ravel(), made[1].numpy().ravel()):
        assert counts.get(value, count) == count


def test_expected_counts():
    made = _draw("Uniform", 6, True, range_max=10)
    np.testing.assert_allclose(made[2], [0.521703] * 6, rtol=1e-5)
    made = _draw("LogUniform", 6, False, range_max=10)
    want = [[1.014553, 0.719836], [0.385715, 1.734389]]
    np.testing.assert_allclose(made[1], want, rtol=1e-5)
    more = {"unigrams": WEIGHTS, "num_reserved_ids": 1, "distortion": 0.75}
    made = _draw("FixedUnigram", 5, True, range_max=7, **more)
    want = [[0.334066, 0.56183], [1.117018, 0]]
    np.testing.assert_allclose(made[1], want, rtol=1e-5)


def test_weights_from_a_file(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("".join(f"word{i},{w}\n" for i, w in enumerate(WEIGHTS)))
    made = _draw("FixedUnigram", 5, False, range_max=6, vocab_file=str(path))
    assert made[0].numpy().tolist() == [3, 5, 4, 3, 5]
    shard = _draw(
        "FixedUnigram", 20, False, range_max=6, unigrams=WEIGHTS, num_shards=2, shard=1
    )
    assert set(shard[0].numpy()) <= {1, 3, 5}


def test_accidental_hits():
    made = tf.nn.compute_accidental_hits(TRUE, [5, 2, 2, 1, 0, 7], 2)
    assert made[0].numpy().tolist() == [0, 0, 1, 1]
    assert made[1].numpy().tolist() == [3, 2, 0, 4]
    assert set(made[2].numpy()) == {np.finfo("f").min}


_random = np.random.RandomState(0)
W = _random.randn(20, 4).astype("f")
B = _random.randn(20).astype("f")
X = _random.randn(3, 4).astype("f")
Y = np.array([[1], [5], [7]])
SAMPLED = (
    np.array([5, 2, 9, 1]),
    np.array([[0.2], [0.1], [0.05]], "f"),
    np.array([0.1, 0.2, 0.3, 0.4], "f"),
)


def test_losses():
    weights = tf.Variable(W)
    with tf.GradientTape() as tape:
        loss = tf.nn.sampled_softmax_loss(
            weights, B, Y, X, 4, 20, sampled_values=SAMPLED
        )
    np.testing.assert_allclose(loss, [0.086993, 0.007047, 0.100042], rtol=1e-4)
    slope = tape.gradient(loss, weights)
    assert isinstance(slope, tf.IndexedSlices)
    total = tf.convert_to_tensor(slope).numpy() * np.arange(80).reshape(20, 4)
    np.testing.assert_allclose(total.sum(), -5.849075, rtol=1e-4)
    loss = tf.nn.nce_loss(W, B, Y, X, 4, 20, sampled_values=SAMPLED)
    np.testing.assert_allclose(loss, [11.165342, 14.297263, 16.564592], rtol=1e-4)
    more = {"sampled_values": SAMPLED, "remove_accidental_hits": True}
    loss = tf.nn.nce_loss(W, B, Y, X, 4, 20, **more)
    np.testing.assert_allclose(loss, [5.863003, 5.636069, 16.564592], rtol=1e-4)


def test_losses_with_drawn_classes():
    tf.random.set_seed(5)
    loss = tf.nn.sampled_softmax_loss(W, B, Y, X, 4, 20)
    np.testing.assert_allclose(loss, [0.623969, 0.00136, 0.697948], rtol=1e-3)
    loss = tf.nn.sampled_softmax_loss(W, B, Y, X, 4, 20, seed=9)
    np.testing.assert_allclose(loss, [0.919935, 0.003815, 0.500102], rtol=1e-3)
    pairs = np.array([[1, 2], [3, 4], [5, 6]])
    loss = tf.nn.nce_loss([W[:10], W[10:]], B, pairs, X, 4, 20, num_true=2)
    np.testing.assert_allclose(loss, [19.552834, 7.302666, 26.242627], rtol=1e-4)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: _draw("Uniform", 6, True, range_max=5), "range is too small"),
        (lambda: _draw("FixedUnigram", 6, True, range_max=6), "Must provide either"),
        (
            lambda: _draw("FixedUnigram", 2, True, range_max=8, unigrams=[1.0, 2.0]),
            "range is 8 must be equal to weights size  2",
        ),
        (
            lambda: _draw("FixedUnigram", 2, True, range_max=2, unigrams=[0.0, 0.0]),
            "no class has a weight",
        ),
        (
            lambda: tf.nn.compute_accidental_hits(TRUE, [5], 1),
            "must be a batch_size . num_true matrix",
        ),
    ],
)
def test_errors(call, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        call()


@pytest.mark.parametrize(
    "count, more",
    [
        (3, {"range_max": 4, "unigrams": [1.0, 0.0, 0.0, 0.0]}),
        (3, {"range_max": 4, "unigrams": [1.0] * 4, "num_shards": 2}),
        (2, {"range_max": 3, "unigrams": [1.0, 0.0], "num_reserved_ids": 1}),
    ],
)
def test_too_few_classes_with_weight(count, more):
    with pytest.raises(tf.errors.InvalidArgumentError, match="range is too small"):
        _draw("FixedUnigram", count, True, [[0, 1]], **more)
    assert _draw("FixedUnigram", count, False, [[0, 1]], **more)[0].shape == [count]
