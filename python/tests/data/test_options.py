"""tf.data.Options that act, and what errors say of where they were."""

import threading

import headrace as tf
import pytest
from headrace.framework.settings import random_seed


def _options(**groups):
    options = tf.data.Options()
    for name, value in groups.items():
        target, _, field = name.rpartition("__")
        setattr(getattr(options, target) if target else options, field, value)
    return options


def test_as_upstream_writes_them():
    options = _options(
        deterministic=False,
        threading__private_threadpool_size=3,
        autotune__enabled=False,
        experimental_slack=True,
        experimental_optimization__map_parallelization=True,
    )
    policy = tf.data.experimental.AutoShardPolicy.OFF
    options.experimental_distribute.auto_shard_policy = policy
    assert options._serialize() == (
        b"\x08\x00\x12\x0b\x08" + b"\xff" * 9 + b"\x01\x1a\x02`\x01 \x01*\x02\x10\x03"
        b":\x02\x08\x00"
    )


def test_private_threads_are_so_many():
    seen = set()

    def note(x):
        seen.add(threading.get_ident())
        return x

    def run(dataset):
        return [int(x) for x in dataset]

    d = tf.data.Dataset.range(64).map(
        lambda x: tf.py_function(note, [x], tf.int64), num_parallel_calls=-1
    )
    options = _options(threading__private_threadpool_size=1)
    assert run(d.with_options(options)) == list(range(64))
    assert len(seen) == 1


def test_any_order_is_allowed():
    gate = threading.Event()

    def slow(x):
        if int(x) == 0:
            gate.wait(30)
        return x

    d = tf.data.Dataset.range(2).map(
        lambda x: tf.py_function(slow, [x], tf.int64), num_parallel_calls=2
    )
    d = d.with_options(_options(deterministic=False))
    walk = iter(d)
    assert int(next(walk)) == 1  # while the first element waits
    gate.set()
    assert int(next(walk)) == 0


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda d, f: d.map(f), "MapDataset:"),
        (lambda d, f: d.map(f, num_parallel_calls=2), "ParallelMapDatasetV2:"),
        (lambda d, f: d.filter(lambda x: f(x) > 0), "FilterDataset:"),
        (
            lambda d, f: d.flat_map(lambda x: tf.data.Dataset.from_tensors(f(x))),
            "FlatMapDataset:",
        ),
    ],
)
def test_errors_say_where_they_were(make, where):
    d = make(tf.data.Dataset.range(5), lambda x: 10 // (x - 3))
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        list(d)
    message = str(e.value)
    assert f"Error in user-defined function passed to {where}" in message
    assert " transformation with iterator: Iterator::Root::" in message


def test_batches_of_maps_say_nothing_of_it():
    d = tf.data.Dataset.range(5).map(lambda x: 10 // (x - 3)).batch(2)
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        list(d)
    assert "user-defined" not in str(e.value)


def test_random_numbers_begin_anew_with_each_walk(monkeypatch):
    # The global seed is put back, as other tests go without one.
    for name in ("seed", "random"):
        value = getattr(random_seed._Context, name)
        monkeypatch.setattr(random_seed._Context, name, value)
    tf.random.set_seed(13)
    d = tf.data.Dataset.range(3).map(lambda _: tf.random.uniform([]))
    first, second = ([float(x) for x in d] for _ in range(2))
    assert first == second
    assert len(set(first)) == 3
