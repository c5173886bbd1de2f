"""Lookup tables of the coordinator's in functions and datasets of workers."""

import gc

import headrace as tf
import numpy as np
import pytest

keras = tf.keras


def static(keys, values, default):
    rows = tf.lookup.KeyValueTensorInitializer(keys, values)
    return tf.lookup.StaticHashTable(rows, default)


def test_functions_look_up(strategy, coordinator):
    with strategy.scope():
        words = static(["a", "b"], [1, 2], -1)
    numbers = static(tf.constant([1, 2], tf.int64), ["one", "two"], "?")

    @tf.function
    def look(x):
        found = words.lookup(x)
        return found, numbers.lookup(tf.cast(found, tf.int64)), words.size()

    for _ in range(3):  # on both workers
        results = [
            coordinator.schedule(look, (tf.constant(["b", "c"]),)) for _ in range(4)
        ]
        for found, names, size in coordinator.fetch(results):
            np.testing.assert_array_equal(found, [2, -1])
            np.testing.assert_array_equal(names, [b"two", b"?"])
            assert size == 2
    # What uses variables of servers may look up as well.
    with strategy.scope():
        v = tf.Variable(1)
    added = tf.function(lambda x: v.assign_add(words.lookup(x)))
    assert coordinator.schedule(added, (tf.constant("b"),)).fetch() == 3
    assert added(tf.constant("a")) == 4


def test_tables_end_with_their_objects(coordinator):
    tasks = [worker.task for worker in coordinator._workers]
    table = static(["x"], [7], 0)
    look = tf.function(lambda x: table.lookup(x))
    for _ in range(8):
        coordinator.schedule(look, (tf.constant("x"),))
    coordinator.join()
    kept = [k for task in tasks for k in task._resources if k == table._task_key]
    assert kept
    key = table._task_key
    del look, table
    gc.collect()
    for task in tasks:
        task.collect()
        assert key not in task._resources


def test_preprocessing_layers(strategy, coordinator):
    """As the tutorial on parameter servers has it: one model makes the batches on the
    workers, another one learns."""
    words = ["avenger", "ironman", "batman", "hulk"]
    with strategy.scope():
        lookup = keras.layers.StringLookup(vocabulary=words, mask_token=None)
        text = keras.layers.Input(shape=(2,), dtype=tf.string)
        preparing = keras.Model(text, lookup(text))
    rows = [["avenger", "hulk"], ["batman", "robin"], ["ironman", "ironman"]]

    def batches(context):
        made = tf.data.Dataset.from_tensor_slices(rows)
        return made.map(preparing).batch(3).repeat()

    @tf.function
    def per_worker():
        return strategy.distribute_datasets_from_function(batches)

    iterator = iter(coordinator.create_per_worker_dataset(per_worker))

    @tf.function
    def take(iterator):
        return next(iterator)

    results = [coordinator.schedule(take, (iterator,)) for _ in range(4)]
    for found in coordinator.fetch(results):
        np.testing.assert_array_equal(found, [[1, 4], [3, 0], [2, 2]])


def test_vocabularies_with_buckets(coordinator):
    rows = tf.lookup.KeyValueTensorInitializer(
        ["a", "b"], tf.constant([0, 1], tf.int64)
    )
    table = tf.lookup.StaticVocabularyTable(rows, 3)
    look = tf.function(lambda x: table.lookup(x))
    asked = tf.constant(["b", "a", "else"])
    found = coordinator.schedule(look, (asked,)).fetch()
    np.testing.assert_array_equal(found, look(asked))


def test_tables_that_change_are_refused(coordinator):
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    look = tf.function(lambda x: table.lookup(x))
    result = coordinator.schedule(look, (tf.constant("a"),))
    with pytest.raises(tf.errors.InvalidArgumentError, match="StaticHashTable"):
        coordinator.join()
    with pytest.raises(tf.errors.InvalidArgumentError, match="StaticHashTable"):
        result.fetch()
