"""What tf.data.AUTOTUNE finds out, beside what a user may set by hand.

A parallel map of a cheap and of a dear function, and a prefetch before a reader that
stops for a while now and then: best seconds of several rounds, taken by turns.
"""

import time

import headrace as tf

AUTOTUNE = tf.data.AUTOTUNE
ROUNDS = 5


def cheap(x):
    return x + 1


def dear(x):
    y = tf.cast(x, tf.float32) + tf.ones([300, 300])
    return tf.reduce_sum(tf.matmul(y, y))


def drain(dataset, rest_every=0):
    start = time.perf_counter()
    for i, _ in enumerate(dataset):
        if rest_every and i % rest_every == 0:
            time.sleep(0.002)
    return time.perf_counter() - start


def maps(function, count):
    r = tf.data.Dataset.range(count)
    made = {"no parallel calls": r.map(function)}
    for calls in (1, 2, 4, AUTOTUNE):
        name = "AUTOTUNE" if calls == AUTOTUNE else f"{calls} calls"
        made[name] = r.map(function, num_parallel_calls=calls)
    return {name: lambda d=d: drain(d) for name, d in made.items()}


def prefetches():
    made = {}
    for size in (1, 8, 64, AUTOTUNE):
        name = "AUTOTUNE" if size == AUTOTUNE else f"{size} elements"
        d = tf.data.Dataset.range(400).map(dear).prefetch(size)
        made[name] = lambda d=d: drain(d, rest_every=16)
    return made


def main():
    for title, cases in (
        ("map of a cheap function", maps(cheap, 100_000)),
        ("map of a dear function", maps(dear, 400)),
        ("prefetch before a reader that rests", prefetches()),
    ):
        best = dict.fromkeys(cases, float("inf"))
        for _ in range(ROUNDS):
            for name, run in cases.items():
                best[name] = min(best[name], run())
        print(title)
        for name, seconds in best.items():
            print(f"  {name:20} {seconds * 1e3:9.2f} ms")


if __name__ == "__main__":
    main()
