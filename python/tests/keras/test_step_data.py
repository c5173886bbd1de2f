"""What train_step, test_step and predict_step get as data, from every source."""

import headrace as tf
import numpy as np
import pytest

X, Y, W = np.ones((4, 3), "f"), np.ones((4, 1), "f"), np.ones(4, "f")
slices = tf.data.Dataset.from_tensor_slices


def forever(element):
    while True:
        yield element


class Rows(tf.keras.utils.Sequence):
    def __init__(self, element):
        self.element = element

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return self.element


def shown(data):
    if isinstance(data, tf.Tensor):
        return f"t{data.shape.rank}"
    if isinstance(data, dict):
        return {k: shown(v) for k, v in data.items()}
    assert type(data) is tuple
    return tuple(map(shown, data))


class Watching(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.seen = []

    def step(self, data):
        self.seen.append(shown(data))
        return {"x": tf.constant(1.0)}

    def predict_step(self, data):
        self.step(data)
        return tf.nest.flatten(data)[0]


Watching.train_step = Watching.test_step = Watching.step
NAMED = {"a": X, "b": X}
NAMED_SHOWN = {"a": "t2", "b": "t2"}
CASES = {
    "x": (lambda: X, "t2"),
    "list": (lambda: [X, X], (("t2", "t2"),)),
    "tuple": (lambda: (X, X), (("t2", "t2"),)),
    "one in a list": (lambda: [X], (("t2",),)),
    "dict": (lambda: NAMED, NAMED_SHOWN),
    "dataset": (lambda: slices(X).batch(2), "t2"),
    "dataset of tuples": (lambda: slices((X,)).batch(2), ("t2",)),
    "dataset of pairs": (lambda: slices((X, Y)).batch(2), ("t2", "t2")),
    "dataset of dicts": (lambda: slices(NAMED).batch(2), NAMED_SHOWN),
    "generator": (lambda: forever(X), "t2"),
    "generator of tuples": (lambda: forever((X,)), "t2"),
    "generator of lists": (lambda: forever([X, Y]), ("t2", "t2")),
    "generator of dicts": (lambda: forever({"a": X}), {"a": "t2"}),
    "generator of nests": (lambda: forever(([X, X], Y)), (("t2", "t2"), "t2")),
    "generator of all three": (lambda: forever((X, Y, W)), ("t2", "t2", "t1")),
    "generator without y": (lambda: forever((X, None)), "t2"),
    "generator without weights": (lambda: forever((X, Y, None)), ("t2", "t2")),
    "sequence": (lambda: Rows(X), "t2"),
    "sequence of tuples": (lambda: Rows((X,)), "t2"),
    "sequence of pairs": (lambda: Rows((X, Y)), ("t2", "t2")),
    "sequence of dicts": (lambda: Rows({"a": X}), {"a": "t2"}),
}


@pytest.mark.parametrize("eager", [False, True], ids=["traced", "eager"])
@pytest.mark.parametrize("name", CASES)
def test_data_alone(name, eager):
    make, expected = CASES[name]
    model = Watching()
    model.compile(run_eagerly=eager)
    many = {"steps": 2} if "generator" in name else {}
    model.fit(make(), verbose=0, **({"steps_per_epoch": 2} if many else {}))
    model.evaluate(make(), verbose=0, **many)
    model.predict(make(), verbose=0, **many)
    assert len(model.seen) >= 3
    assert all(data == expected for data in model.seen)


def test_data_in_parts():
    model = Watching()
    model.compile(run_eagerly=True)
    model.fit(X, Y, verbose=0)
    model.fit(X, Y, sample_weight=W, verbose=0)
    model.fit(X, sample_weight=W, verbose=0)  # weights of nothing
    model.fit([X, X], [Y, Y], verbose=0)
    model.fit(X, Y, class_weight={0: 1.0, 1: 2.0}, verbose=0)
    pair, all_three = ("t2", "t2"), ("t2", "t2", "t1")
    assert model.seen == [pair, all_three, "t2", (pair, pair), all_three]


def test_single_batches_are_tuples():
    model = Watching()
    model.compile(run_eagerly=True)
    model.train_on_batch(X)
    model.test_on_batch(X, Y)
    model.train_on_batch([X, X])
    model.predict_on_batch({"a": X})
    assert model.seen == [("t2",), ("t2", "t2"), (("t2", "t2"),), ({"a": "t2"},)]


def test_pack_and_unpack():
    pack = tf.keras.utils.pack_x_y_sample_weight
    assert pack(1) == 1 and pack((1, 2)) == ((1, 2),) and pack([1, 2]) == [1, 2]
    assert pack({"a": 1}) == {"a": 1} and pack(1, 2) == (1, 2)
    assert pack(1, 2, 3) == (1, 2, 3)
