"""Pipelines whose iterators are saved by one program and restored by another.

    python saved_pipelines.py write FOLDER     (TensorFlow, or headrace as `tf`)
    python saved_pipelines.py read FOLDER

`write` walks some steps along each pipeline, saves all iterators as one checkpoint,
FOLDER/iterators, and puts what follows into FOLDER/rest.json. `read` restores them and
prints the names of those that do not go on as rest.json says.
"""

import json
import os
import sys


# Files are named from here: states hold their names.
HERE = os.path.dirname(os.path.abspath(__file__))


def pipelines(tf):
    """{name: (function that makes a dataset, steps before it is saved)}"""
    return {
        **_elements_one_by_one(tf.data.Dataset),
        **_elements_in_others(tf),
        **_sources(tf),
    }


def _elements_one_by_one(D):
    r = D.range
    return {
        "begin": (lambda: r(5), 0),
        "range": (lambda: r(10), 2),
        "range_down": (lambda: r(20, 0, -3), 2),
        "range_end": (lambda: r(2), 2),
        "slices": (
            lambda: D.from_tensor_slices({"a": [1, 2, 3, 4], "b": list("wxyz")}),
            1,
        ),
        "tensors": (lambda: D.from_tensors([1, 2]).repeat(3), 1),
        "map": (lambda: r(10).map(lambda x: x * 2), 2),
        "map_begin": (lambda: r(10).map(lambda x: x * 2), 0),
        "map_end": (lambda: r(3).map(lambda x: x * 2), 3),
        "map_parallel": (lambda: r(20).map(lambda x: x * 2, num_parallel_calls=3), 4),
        "map_prefetch": (lambda: r(10).map(lambda x: x * 2).prefetch(2), 2),
        "map_map": (lambda: r(12).map(lambda x: x + 1).map(lambda x: x * 3), 2),
        "map_batch": (lambda: r(40).map(lambda x: x * 2).batch(3), 2),
        "map_batch_last": (lambda: r(8).map(lambda x: x * 2).batch(3), 2),
        "map_batch_end": (lambda: r(8).map(lambda x: x * 2).batch(3), 3),
        "map_batch_drop": (lambda: r(8).map(lambda x: x * 2).batch(3, True), 1),
        "map_parallel_batch": (
            lambda: r(30).map(lambda x: x * 2, num_parallel_calls=2).batch(4),
            2,
        ),
        "map_batch_repeat": (lambda: r(5).map(lambda x: x * 2).batch(2).repeat(3), 4),
        "map_batch_map": (
            lambda: r(30).map(lambda x: x + 1).batch(2).map(lambda x: x * 2),
            2,
        ),
        "batch": (lambda: r(10).batch(3), 2),
        "batch_parallel": (lambda: r(20).batch(3, num_parallel_calls=2), 2),
    }


def _elements_in_others(tf):
    D = tf.data.Dataset
    r = D.range
    return {
        "shuffle": (lambda: r(10).shuffle(4, seed=1), 3),
        "shuffle_begin": (lambda: r(10).shuffle(4, seed=1), 0),
        "shuffle_large": (lambda: r(5).shuffle(30, seed=1), 2),
        "shuffle_repeat": (lambda: r(10).shuffle(4, seed=1).repeat(3), 13),
        "shuffle_repeat_forever": (
            lambda: r(7).shuffle(20, seed=2).repeat().take(40),
            16,
        ),
        "shuffle_fixed": (
            lambda: r(10).shuffle(4, seed=1, reshuffle_each_iteration=False).repeat(2),
            7,
        ),
        "shuffle_map_repeat": (
            lambda: r(5).shuffle(4, seed=1).map(lambda x: x + 1).repeat(3),
            8,
        ),
        "shuffle_batch_repeat": (lambda: r(5).shuffle(4, seed=1).batch(2).repeat(3), 4),
        "repeat_shuffle": (lambda: r(3).repeat(4).shuffle(4, seed=1), 5),
        "repeat": (lambda: r(3).repeat(4), 7),
        "repeat_end": (lambda: r(2).repeat(2), 4),
        "filter": (lambda: r(20).filter(lambda x: x % 3 == 0), 3),
        "take_skip": (lambda: r(20).skip(3).take(9), 4),
        "take_all": (lambda: r(9).take(-1).skip(0).repeat(1).shard(1, 0), 4),
        "shard": (lambda: r(20).shard(3, 1), 2),
        "take_while": (lambda: r(20).take_while(lambda x: x < 9), 4),
        "concatenate": (lambda: r(3).concatenate(r(5)).concatenate(r(7)), 5),
        "zip": (lambda: D.zip((r(4), r(10, 20).map(lambda x: -x))), 2),
        "enumerate": (
            lambda: D.from_tensor_slices(["a", "b", "c", "d"]).enumerate(),
            2,
        ),
        "flat_map": (lambda: r(6).flat_map(lambda x: r(x + 2)), 5),
        "flat_map_maps": (
            lambda: r(6).flat_map(lambda x: r(x + 2).map(lambda y: y + 1).batch(2)),
            3,
        ),
        "interleave": (
            lambda: r(6).interleave(lambda x: r(x + 2), cycle_length=3, block_length=2),
            8,
        ),
        "interleave_parallel": (
            lambda: r(6).interleave(
                lambda x: r(10 * x, 10 * x + 4), cycle_length=2, num_parallel_calls=2
            ),
            6,
        ),
        "window": (lambda: r(20).window(3, shift=2).flat_map(lambda w: w.batch(3)), 3),
        "window_last": (lambda: r(7).window(3).flat_map(lambda w: w.batch(3)), 2),
        "unbatch": (lambda: r(11).batch(4).unbatch(), 2),
        "rebatch": (lambda: r(13).batch(4).rebatch(3), 2),
        "padded_batch": (
            lambda: r(9).map(lambda x: tf.fill([x % 3], x)).padded_batch(2),
            2,
        ),
        "group_by_window": (
            lambda: r(30).group_by_window(
                lambda x: x % 3, lambda k, d: d.batch(3), window_size=4
            ),
            3,
        ),
        "scan": (
            lambda: r(9).scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s * x)),
            3,
        ),
        "unique": (lambda: D.from_tensor_slices([1, 2, 1, 3, 2, 4, 5]).unique(), 2),
        "cache": (lambda: r(6).cache().repeat(2), 3),
        "cache_second": (lambda: r(6).cache().repeat(3), 8),
        "choose": (
            lambda: D.choose_from_datasets(
                [r(4), r(10, 14)], r(8).map(lambda x: x % 2), stop_on_empty_dataset=True
            ),
            3,
        ),
        "sample": (
            lambda: D.sample_from_datasets([r(9), r(10, 19)], [0.5, 0.5], seed=2),
            5,
        ),
    }


def _sources(tf):
    D = tf.data.Dataset
    r = D.range
    return {
        "random": (lambda: D.random(seed=4).take(12), 3),
        "counter": (lambda: D.counter(5, 3).take(9), 3),
        "sparse_batch": (
            lambda: r(9).map(tf.range).sparse_batch(2, [None]).map(tf.sparse.to_dense),
            2,
        ),
        "lines": (lambda: tf.data.TextLineDataset(["lines_a.txt", "lines_b.txt"]), 3),
        "csv": (lambda: _rows(tf), 3),
        "csv_small": (lambda: _rows(tf, buffer_size=8), 3),
        "csv_begin": (lambda: _rows(tf), 0),
        "ignore_errors": (
            lambda: (
                D.from_tensor_slices([1, 2, 0, 4]).map(lambda x: 8 // x).ignore_errors()
            ),
            1,
        ),
        "training": (
            lambda: r(50).shuffle(16, seed=3).map(lambda x: x * 2).batch(4).prefetch(2),
            5,
        ),
        "plain_options": (lambda: _plain(tf, r(9).map(lambda x: x + 1).batch(2)), 2),
    }


# (Without headers: upstream passes over a record when it takes up a place in a file
# that has one.)
def _rows(tf, **settings):
    files, defaults = ["rows_a.csv", "rows_b.csv"], [tf.int32, [""]]
    return tf.data.experimental.CsvDataset(files, defaults, **settings)


def _plain(tf, dataset):
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def plain(value):
    """An element as JSON has it."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    value = value.numpy()
    if isinstance(value, bytes):
        return value.decode()
    return value.tolist()


def rest(iterator):
    return [plain(x) for x in iterator]


def begun(tf, name):
    """An iterator at the place where it is saved."""
    make, steps = pipelines(tf)[name]
    iterator = iter(make())
    for _ in range(steps):
        next(iterator)
    return iterator


def write(tf, folder):
    iterators = {name: begun(tf, name) for name in pipelines(tf)}
    tf.train.Checkpoint(**iterators).write(os.path.join(folder, "iterators"))
    with open(os.path.join(folder, "rest.json"), "w", encoding="utf8") as f:
        lines = [f'"{n}": {json.dumps(rest(i))}' for n, i in iterators.items()]
        f.write("{" + ",\n".join(lines) + "}\n")


def restored(tf, folder, name):
    """The iterator of that name, elsewhere before it is restored."""
    iterator = iter(pipelines(tf)[name][0]())
    next(iterator)
    checkpoint = tf.train.Checkpoint(**{name: iterator})
    checkpoint.read(os.path.join(folder, "iterators")).expect_partial()
    return iterator


def main():
    if "headrace" in sys.argv[3:]:
        import headrace as tf
    else:
        import tensorflow as tf
    command, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    os.chdir(HERE)
    if command == "write":
        write(tf, folder)
        return
    with open(os.path.join(folder, "rest.json"), encoding="utf8") as f:
        expected = json.load(f)
    for name, values in expected.items():
        try:
            got = rest(restored(tf, folder, name))
        except Exception as e:
            print(name, "failed:", str(e).split("\n", maxsplit=1)[0][:300])
            continue
        if got != values:
            print(name, "went on with", str(got)[:150], "not", str(values)[:150])
    print("read", len(expected))


if __name__ == "__main__":
    main()
