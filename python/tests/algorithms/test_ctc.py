"""Labels of sequences (CTC); what is expected is what TensorFlow 2.21 gives, or all
paths summed one by one."""

import itertools

import headrace as tf
import numpy as np
import pytest

X = np.random.RandomState(1).randn(5, 3, 4).astype("f")
LENGTHS = [5, 4, 3]
PLACES = [[0, 0], [0, 1], [1, 0], [2, 0], [2, 1]]
LABELS = tf.SparseTensor(PLACES, tf.constant([1, 1, 0, 2, 0]), [3, 2])
R = tf.raw_ops


def _loss(x=X, values=(1, 1, 0, 2, 0), lengths=LENGTHS, **options):
    return R.CTCLoss(
        inputs=tf.constant(x),
        labels_indices=PLACES,
        labels_values=list(values),
        sequence_length=lengths,
        **options,
    )


@pytest.mark.parametrize(
    "options, want",
    [
        ({}, [7.318175, 3.131885, 2.383156]),
        ({"preprocess_collapse_repeated": True}, [7.804856, 3.131885, 2.383156]),
        ({"ctc_merge_repeated": False}, [8.193484, 3.785159, 3.160433]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_losses(options, want, dtype):
    loss, slope = _loss(X.astype(dtype), **options)
    np.testing.assert_allclose(loss, want, rtol=1e-5)
    assert loss.dtype == slope.dtype == dtype
    for b, length in enumerate(LENGTHS):
        np.testing.assert_allclose(slope[:, b].numpy().sum(1), 0, atol=1e-5)
        assert not slope[length:, b].numpy().any()


def test_loss_is_of_all_paths():
    x = X[:4, :1].astype("f8")
    y = np.exp(x[:, 0]) / np.exp(x[:, 0]).sum(1, keepdims=True)
    total = 0
    for path in itertools.product(range(4), repeat=4):
        labels = [k for k, _ in itertools.groupby(path) if k != 3]
        total += np.prod(y[np.arange(4), path]) if labels == [0, 2] else 0
    made = R.CTCLoss(
        inputs=tf.constant(x),
        labels_indices=PLACES[:2],
        labels_values=[0, 2],
        sequence_length=[4],
    )
    np.testing.assert_allclose(made[0], [-np.log(total)], rtol=1e-12)


def test_gradient():
    x = tf.Variable(X.astype("f8"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.ctc_loss(LABELS, x, None, LENGTHS, blank_index=-1))
    slope = tape.gradient(loss, x).numpy()
    for at in ((0, 0, 1), (2, 1, 3), (3, 0, 0), (4, 1, 2)):
        step = np.zeros(X.shape)
        step[at] = 1e-5
        up, down = (_loss(X.astype("f8") + s)[0].numpy().sum() for s in (step, -step))
        np.testing.assert_allclose(slope[at], (up - down) / 2e-5, atol=1e-6)


def test_padded_labels_and_places_of_the_blank():
    dense = tf.constant([[1, 1], [2, 0], [3, 1]])
    made = tf.nn.ctc_loss(dense, X, [2, 1, 2], LENGTHS, blank_index=0)
    np.testing.assert_allclose(made, [4.827896, 4.059752, 4.424429], rtol=1e-5)
    rolled = np.roll(X, 1, 2)
    first = tf.nn.ctc_loss(
        LABELS.with_values(LABELS.values + 1), rolled, None, LENGTHS, blank_index=0
    )
    np.testing.assert_allclose(first, _loss()[0], rtol=1e-5)
    v1 = tf.compat.v1.nn.ctc_loss(
        LABELS, X.transpose(1, 0, 2), LENGTHS, time_major=False
    )
    np.testing.assert_allclose(v1, _loss()[0], rtol=1e-5)


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: _loss(lengths=[5, 4, 1]),
            r"Not enough time for target transition sequence \(required: 2, available: 1",
        ),
        (lambda: _loss(lengths=[6, 4, 3]), r"sequence_length\(0\) <= 5"),
        (lambda: _loss(lengths=[5, 4]), r"sequence_length.:  2 batch_size: 3"),
        (
            lambda: _loss(values=[1, 1, 0, 2, -1]),
            "All labels must be nonnegative integers, batch: 2 labels: 2,-1",
        ),
        (lambda: _loss(values=[3, 1, 0, 2, 0]), "Saw a non-null label"),
        (lambda: _beam(1, 2), "requested more paths than the beam width"),
    ],
)
def test_errors(call, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        call()


def test_labels_that_do_not_fit_are_left_out():
    made, slope = _loss(lengths=[5, 4, 1], ignore_longer_outputs_than_inputs=True)
    assert made[2] == 0 and not slope[:, 2].numpy().any()
    blanks = _loss(values=[1, 1, 0, 2, 3])
    np.testing.assert_allclose(blanks[0], [7.318175, 3.131885, 1.642786], rtol=1e-5)
    above = _loss(values=[1, 1, 0, 2, 9])
    np.testing.assert_array_equal(above[0], blanks[0])


@pytest.mark.parametrize("options", [{}, {"ignore_longer_outputs_than_inputs": True}])
def test_labels_without_a_path_are_infinitely_unlikely(options):
    loss, slope = _loss(lengths=[2, 4, 3], **options)
    np.testing.assert_allclose(loss, [np.inf, 3.131885, 2.383156], rtol=1e-5)
    likely = tf.nn.softmax(X[:2, 0])
    np.testing.assert_allclose(slope[:2, 0], likely, rtol=1e-5)


def test_a_sequence_without_labels_is_refused():
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="length is zero in batch 2"
    ):
        R.CTCLoss(
            inputs=X,
            labels_indices=PLACES[:3],
            labels_values=[1, 1, 0],
            sequence_length=LENGTHS,
        )


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize(
    "blank, rows",
    [
        (None, [[0, 2, 0, 2, 1], [2, 1], [2, 1]]),
        (0, [[2, 2, 1], [2, 3, 1, 3], [2, 1, 3]]),
    ],
)
def test_greedy(merge, blank, rows):
    (made,), score = tf.nn.ctc_greedy_decoder(X, LENGTHS, merge, blank)
    values = made.values.numpy().tolist()
    assert values == sum(rows, [])
    assert made.dense_shape.numpy().tolist() == [3, max(map(len, rows))]
    np.testing.assert_allclose(
        score, [[-5.935977], [-4.550437], [-2.594167]], rtol=1e-5
    )


def test_greedy_merges():
    x = np.eye(3, dtype="f")[[0, 0, 2, 0, 1, 1]][:, None]
    for merge, want in ((True, [0, 0, 1]), (False, [0, 0, 0, 1, 1])):
        (made,), _ = tf.nn.ctc_greedy_decoder(x, [6], merge)
        assert made.values.numpy().tolist() == want


def _beam(width, paths):
    return R.CTCBeamSearchDecoder(
        inputs=X,
        sequence_length=LENGTHS,
        beam_width=width,
        top_paths=paths,
        merge_repeated=False,
    )


@pytest.mark.parametrize(
    "width, rows, scores",
    [
        (
            6,
            [
                [0, 2, 0, 2, 2, 1, 2, 1],
                [0, 2, 1, 2, 0, 2],
                [0, 2, 0, 2, 1, 0, 1, 2, 0],
            ],
            [
                [-2.387353, -2.464063, -2.774723],
                [-1.506588, -1.938582, -2.418818],
                [-1.507152, -1.647368, -2.594471],
            ],
        ),
        (
            2,
            [[0, 2, 0, 2, 2, 1, 2, 1], [0, 2, 0, 2, 1, 2, 2]],
            [[-2.672529, -2.774723], [-1.708828, -2.483081], [-1.512163, -1.66764]],
        ),
    ],
)
def test_beam(width, rows, scores):
    places, values, shapes, made = _beam(width, len(rows))
    assert [v.numpy().tolist() for v in values] == rows
    np.testing.assert_allclose(made, scores, rtol=1e-5)
    found, _ = tf.nn.ctc_beam_search_decoder(X, LENGTHS, width)
    assert found[0].values.numpy().tolist() == rows[0]
    assert found[0].indices.numpy().tolist() == places[0].numpy().tolist()
    assert shapes[0].numpy()[0] == 3


def test_wide_beams_find_the_best():
    """Against all paths of a short sequence."""
    x = X[:4, :1]
    y = np.exp(x[:, 0]) / np.exp(x[:, 0]).sum(1, keepdims=True)
    totals = {}
    for path in itertools.product(range(4), repeat=4):
        labels = tuple(k for k, _ in itertools.groupby(path) if k != 3)
        totals[labels] = totals.get(labels, 0) + np.prod(y[np.arange(4), path])
    best = sorted(totals, key=totals.get, reverse=True)[:3]
    found, scores = tf.nn.ctc_beam_search_decoder(x, [4], 400, 3)
    assert [tuple(f.values.numpy()) for f in found] == best
    np.testing.assert_allclose(scores[0], np.log([totals[b] for b in best]), rtol=1e-4)


def test_labels_made_smaller():
    unique, places = tf.nn.ctc_unique_labels([[1, 2, 2, 0], [3, 3, 0, 0]])
    assert unique.numpy().tolist() == [[1, 2, 0, 0], [3, 0, 0, 0]]
    assert places.numpy().tolist() == [[0, 1, 1, 2], [0, 0, 1, 1]]
    made, lengths = tf.nn.collapse_repeated([[1, 2, 2, 0], [3, 3, 0, 0]], [3, 4])
    assert made.numpy().tolist() == [[1, 2], [3, 0]]
    assert lengths.numpy().tolist() == [2, 2]


@pytest.mark.parametrize(
    "blank, labels, losses",
    [
        (None, [[1, 2, 0], [3, 4, 0]], [8.2073, 6.1872]),
        (0, [[0, 1, 2], [2, 0, 1]], [8.4532, 7.7575]),
        (1, [[0, 1, 2], [2, 0, 1]], [8.0342, 7.9172]),
        (-1, [[4, 4, 1], [1, 0, 0]], [5.2189, 6.4161]),
    ],
)
def test_labels_that_are_the_blanks_number(blank, labels, losses):
    """0 is a label beside the blank 0; another blank's number is the class before."""
    x = tf.constant(np.random.RandomState(0).randn(6, 2, 5).astype("f"))
    loss = tf.nn.ctc_loss(tf.constant(labels), x, [2, 3], [6, 5], blank_index=blank)
    np.testing.assert_allclose(loss, losses, rtol=1e-4)


def test_gradient_of_a_label_that_is_the_blank():
    x = tf.constant(np.random.RandomState(0).randn(6, 1, 5))

    def loss(x):
        return tf.nn.ctc_loss(tf.constant([[2, 0, 1]]), x, [3], [5])

    (theory,), (numbers,) = tf.test.compute_gradient(loss, [x], delta=1e-4)
    np.testing.assert_allclose(theory, numbers, atol=1e-6)
