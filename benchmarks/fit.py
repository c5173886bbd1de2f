"""What Keras adds to the calls it makes: fit beside the bare traced loop, predict
beside model(x). Rows are measured in turns; the least of many counts.

    python benchmarks/fit.py [words of rows' names]

Prints processor time a step in microseconds, and how much of the loop's (or of
model(x)'s) that is. fit's rows stay within 1.2 of "loop", which is written as
people write it, fit's also within 1.1 of a loop with the same optimizer, whose
update is fused, and predict's within 1.2 of "model(x)".
"""

import os
import sys
import time

import headrace as tf
import numpy as np

STEPS, BATCH, REPEATS = 200, 32, 15
SIZES = (784, 128, 10)


def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((STEPS * BATCH, SIZES[0]), dtype=np.float32)
    return x, rng.integers(0, SIZES[-1], len(x))


def model():
    layers = tf.keras.layers
    made = tf.keras.Sequential(
        [
            layers.Input([SIZES[0]]),
            layers.Dense(SIZES[1], activation="relu"),
            layers.Dense(SIZES[2]),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    made.compile(tf.keras.optimizers.SGD(0.01), loss)
    return made


def bare_step(apply):
    """A traced step on variables; `apply` takes gradients and variables."""
    pairs = [([a, b], [b]) for a, b in zip(SIZES, SIZES[1:])]
    v = [tf.Variable(tf.random.normal(s, stddev=0.05)) for p in pairs for s in p]

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.matmul(x, v[0]) + v[1])
            logits = tf.matmul(hidden, v[2]) + v[3]
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
            )
        apply(tape.gradient(loss, v), v)
        return loss

    return step


def descend(gradients, variables):
    for g, v in zip(gradients, variables):
        v.assign_sub(0.01 * g)


def loop(apply, x, y):
    step, x, y = bare_step(apply), tf.constant(x), tf.constant(y)

    def run():
        for at in range(0, len(x), BATCH):
            step(x[at : at + BATCH], y[at : at + BATCH])

    return run


def often(function):
    def run():
        for _ in range(STEPS):
            function()

    return run


def rows():
    """(name, what runs STEPS steps, the row that it is held against)."""
    (x, y), net = data(), model()
    fit = lambda **how: lambda: net.fit(x, y, batch_size=BATCH, **how)
    one, optimizer = tf.constant(x[:BATCH]), tf.keras.optimizers.SGD(0.01)
    return [
        ("loop", loop(descend, x, y), "loop"),
        (
            "loop with an optimizer",
            loop(lambda g, v: optimizer.apply_gradients(zip(g, v)), x, y),
            "loop",
        ),
        ("fit", fit(verbose=0), "loop"),
        ("fit with its progress line", fit(), "loop"),
        ("fit in order", fit(verbose=0, shuffle=False), "loop"),
        ("fit, the same", fit(verbose=0), "loop with an optimizer"),
        ("model(x)", often(lambda: net(one)), "model(x)"),
        ("predict", often(lambda: net.predict(one, verbose=0)), "model(x)"),
        (
            "predict of an array",
            often(lambda: net.predict(x[:BATCH], verbose=0)),
            "model(x)",
        ),
        ("predict_on_batch", often(lambda: net.predict_on_batch(one)), "model(x)"),
    ]


def main(words):
    found = [r for r in rows() if not words or any(w in r[0] for w in words)]
    best = {name: float("inf") for name, _, _ in found}
    shown, sys.stdout = sys.stdout, open(os.devnull, "w")
    for repeat in range(REPEATS + 1):
        for name, run, _ in found:
            start = time.process_time()
            run()
            if repeat:  # the first traces
                best[name] = min(best[name], time.process_time() - start)
    sys.stdout = shown
    for name, _, against in found:
        ratio = f"{best[name] / best[against]:6.2f}" if against in best else ""
        print(f"{name:28s}{best[name] / STEPS * 1e6:8.1f} us{ratio}")


if __name__ == "__main__":
    main(sys.argv[1:])
