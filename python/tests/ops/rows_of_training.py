"""Rows of steps of linear models and k-means. Values are TensorFlow 2.21's."""

import pathlib
import tempfile

import numpy as np
from rows import formula, in_graph


@formula("GenerateVocabRemapping")
def words_of_two_vocabularies(tf, raw):
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "new").write_text("a\nb\nc\nd\n")
    (folder / "old").write_text("c\na\nx\nd")

    def remap(offset, count, size):
        return raw.GenerateVocabRemapping(
            new_vocab_file=str(folder / "new"),
            old_vocab_file=str(folder / "old"),
            new_vocab_offset=offset,
            num_new_vocab=count,
            old_vocab_size=size,
        )

    pairs = []
    for arguments, places, found in (
        ((0, 4, -1), [1, -1, 0, 3], 3),
        ((1, 2, -1), [-1, 0], 1),
        ((0, 4, 2), [1, -1, 0, -1], 2),
        ((4, 0, 4), [], 0),
    ):
        made = remap(*arguments)
        pairs += [made.remapping, np.int64(places), made.num_present, np.int32(found)]
    return pairs


@formula("LoadAndRemapMatrix")
def rows_of_a_saved_matrix(tf, raw):
    prefix = str(pathlib.Path(tempfile.mkdtemp()) / "ck")
    saved = np.arange(20, dtype=np.float32).reshape(5, 4)
    raw.SaveV2(
        prefix=prefix, tensor_names=["m"], shape_and_slices=[""], tensors=[saved]
    )
    pairs = []
    for rows, columns, new, wanted in (
        ([2, 0], [], [], saved[[2, 0]]),
        ([2, -1], [1, -1, 0], [9, 8, 7, 6], [[9, 9, 8], [8, 7, 6]]),
        ([4, 3, 2, 1, 0], [3, 2, 1, 0], [], saved[::-1, ::-1]),
        ([-1, -1], [-1, -1], [1, 2, 3, 4], [[1, 2], [3, 4]]),
    ):
        for most in (-1, 1, 2, 100):
            found = raw.LoadAndRemapMatrix(
                ckpt_path=prefix,
                old_tensor_name="m",
                row_remapping=np.int64(rows),
                col_remapping=np.int64(columns),
                initializing_values=np.float32(new),
                num_rows=len(rows),
                num_cols=len(columns) or 4,
                max_rows_in_memory=most,
            )
            pairs += [found, np.float32(wanted)]
    return pairs


@formula("KMC2ChainInitialization")
def chains_of_candidates(tf, raw):
    def last(distances, seed):
        return raw.KMC2ChainInitialization(
            distances=np.float32(distances), seed=np.int64(seed)
        )

    up = [1, 2, 3, 4, 5, 4, 3, 2, 1]
    pairs = []
    for seed, wanted in enumerate([7, 7, 7, 8, 5]):
        pairs += [last(up, seed), np.array(wanted)]
    for seed in (7, -1, 2**40):
        pairs += [last(np.linspace(0.1, 5, 40), seed), np.array(39)]
    return [*pairs, last([0, 0, 0], 0), np.array(0), last([1, np.nan], 3), np.array(0)]


@formula("KmeansPlusPlusInitialization")
def points_to_begin_with(tf, raw):
    near = [[0, 0], [0, 1], [5, 5], [5, 6], [9, 0], [9, 1]]
    many = np.sin(np.arange(200, dtype=np.float32) * np.float32(1.3)).reshape(100, 2)

    def drawn(points, count, seed, retries):
        return raw.KmeansPlusPlusInitialization(
            points=np.float32(points),
            num_to_sample=np.int64(count),
            seed=np.int64(seed),
            num_retries_per_sample=np.int64(retries),
        )

    pairs = []
    for count, seed, retries, wanted in (
        (1, 1, 0, [[9, 0]]),
        (1, 1, 2, [[5, 6]]),
        (3, 0, 0, [[5, 6], [9, 0], [0, 0]]),
        (3, 1, -1, [[5, 6], [0, 0], [9, 1]]),
        (3, 3, 2, [[5, 5], [0, 0], [9, 0]]),
        (3, 3, -1, [[5, 5], [0, 1], [9, 1]]),
        (6, 2, 1, [[5, 6], [0, 0], [9, 0], [0, 1], [5, 5], [9, 1]]),
    ):
        pairs += [drawn(near, count, seed, retries), np.float32(wanted)]
    same = drawn(np.zeros([4, 2]), 3, 5, 1)
    return [*pairs, same, np.zeros([3, 2], np.float32), *_begins(drawn, many)]


def _begins(drawn, many):
    first = [[0.9287952, -0.1086366], [-0.9983454, -0.2116492], [0.0035526, 0.9645025]]
    return [drawn(many, 5, 0, 3)[:3], np.float32(first)]


@formula("SdcaFprint")
def fingerprints_of_keys(tf, raw):
    wanted = [
        [4463240938071824939, 4374473821787594281],
        [7969074168056553668, 5955762262185338209],
        [2911873174415414509, 6996746284954752264],
        [8839040345126285815, -6355618767006888951],
    ]
    found = raw.SdcaFprint(input=["", "a", "hello world", b"\xff\0"])
    return [found, np.int64(wanted)]


def _example(label=1, state=(0, 0, 0, 0), weight=2):
    """One example of two sparse values and two dense ones."""
    return {
        "sparse_example_indices": [np.int64([0, 0])],
        "sparse_feature_indices": [np.int64([0, 1])],
        "sparse_feature_values": [np.float32([1, 2])],
        "dense_features": [np.float32([[0.5, 1]])],
        "example_weights": np.float32([weight]),
        "example_labels": np.float32([label]),
        "sparse_indices": [np.int64([0, 1])],
        "sparse_weights": [np.float32([0.1, 0.2])],
        "dense_weights": [np.float32([[0.3, 0.4]])],
        "example_state_data": np.float32([state]),
        "l1": 0.1,
        "l2": 1.0,
        "num_loss_partitions": 1,
        "num_inner_iterations": 1,
    }


@formula("SdcaOptimizer SdcaOptimizerV2")
def steps_of_dual_variables(tf, raw):
    before = (0.3, 0.1, 0.2, 1)
    pairs = []
    for loss, new, again in (
        (
            "logistic_loss",
            [0.11514137, 0.87497586, 0, 2],
            [0.31437832, 0.87497586, -1.2217287, 2],
        ),
        ("squared_loss", [0.02962963, 0.16, 0, 2], [0.3074074, 0.16, -0.51, 2]),
        ("hinge_loss", [0.032, 0.8, 0, 2], [0.332, 0.8, -0.6, 2]),
        ("smooth_hinge_loss", [0.02962963, 0.16, 0, 2], [0.3074074, 0.16, -0.51, 2]),
        (
            "poisson_loss",
            [-0.04451573, 2.4442377, -2, 2],
            [0.2309881, 2.4442377, -1.8993449, 2],
        ),
    ):
        for op, key in ((raw.SdcaOptimizer, "adaptative"), (raw.SdcaOptimizerV2, "")):
            for choice in (False, True):
                more = {key or "adaptive": choice, "loss_type": loss}
                for state, wanted in (((0, 0, 0, 0), new), (before, again)):
                    found = op(**_example(state=state), **more)
                    step = np.float32(2 * (wanted[0] - state[0]))
                    pairs += [found[0], np.float32([wanted])]
                    pairs += [found[1][0], step * np.float32([1, 2])]
                    pairs += [found[2][0], step * np.float32([[0.5, 1]])]
    return pairs


@formula("SdcaShrinkL1")
def shrunk_weights(tf, raw):
    def build():
        start = np.float32([1, -0.05, -3, 0.2])
        one = raw.VariableV2(shape=[4], dtype=tf.float32, shared_name="one")
        made = raw.Assign(ref=one, value=tf.constant(start))
        with tf.control_dependencies([made]):
            shrunk = raw.SdcaShrinkL1(weights=[one], l1=0.1, l2=1.0)
        with tf.control_dependencies([shrunk]):
            return raw.Identity(input=one)

    return [in_graph(tf, build), np.float32([0.9, 0, -2.9, 0.1])]
