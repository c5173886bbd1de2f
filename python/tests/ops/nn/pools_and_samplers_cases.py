"""Cases of test_pools_and_samplers.py (recorded.py writes their values)."""

import numpy as np


def _image(*shape, kind="f4"):
    return (
        np.random.default_rng(3).permutation(np.prod(shape)).reshape(shape).astype(kind)
    )


def _pools(tf, op, **keys):
    out = []
    for kind in ("f4", "f8", "i4", "i8"):
        for ratio in (1.44, 2.0, 3.7):
            for seed in ((1, 2), (7, 0), (0, 5)):
                x = tf.constant(_image(1, 13, 11, 2, kind=kind))
                out.append(
                    getattr(tf.raw_ops, op)(
                        value=x,
                        pooling_ratio=[1, ratio, 1.3, 1],
                        deterministic=True,
                        seed=seed[0],
                        seed2=seed[1],
                        **keys,
                    )
                )
    return out


def case_max_pool(tf):
    return _pools(tf, "FractionalMaxPool")


def case_max_pool_pseudo(tf):
    return _pools(tf, "FractionalMaxPool", pseudo_random=True, overlapping=True)


def case_avg_pool(tf):
    return _pools(tf, "FractionalAvgPool", overlapping=True)


def case_avg_pool_pseudo(tf):
    return _pools(tf, "FractionalAvgPool", pseudo_random=True)


def case_pool_gradients(tf):
    out = []
    for op in ("FractionalMaxPool", "FractionalAvgPool"):
        for overlap in (False, True):
            x = tf.constant(_image(1, 9, 8, 2))
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = getattr(tf.raw_ops, op)(
                    value=x,
                    pooling_ratio=[1, 1.5, 1.7, 1],
                    overlapping=overlap,
                    deterministic=True,
                    seed=4,
                )[0]
                y = tf.reduce_sum(y * y)
            out.append(tape.gradient(y, x))
    return out


def case_pool_gradients_of_integers(tf):
    raw = tf.raw_ops
    keys = {"row_pooling_sequence": [0, 2, 4, 5], "col_pooling_sequence": [0, 1, 3, 5]}
    grad = np.arange(1, 10, dtype="i4").reshape(1, 3, 3, 1)
    x = np.zeros((1, 5, 5, 1), "i4")
    return [
        [
            raw.FractionalMaxPoolGrad(
                orig_input=x,
                orig_output=grad * 0,
                out_backprop=grad,
                overlapping=overlap,
                **keys,
            ),
            raw.FractionalAvgPoolGrad(
                orig_input_tensor_shape=[1, 5, 5, 1],
                out_backprop=grad,
                overlapping=overlap,
                **keys,
            ),
        ]
        for overlap in (False, True)
    ]


def case_pool_faces(tf):
    tf.random.set_seed(5)
    x = tf.constant(_image(1, 9, 8, 2))
    return [
        tf.nn.fractional_max_pool(x, 1.4, seed=3),
        tf.nn.fractional_avg_pool(x, [1, 1.4, 1.2, 1], pseudo_random=True, seed=9),
    ]


def case_pool_ratio_below_one(tf):
    return tf.raw_ops.FractionalMaxPool(
        value=np.zeros((1, 5, 5, 1), "f4"), pooling_ratio=[1, 0.5, 1.4, 1]
    )


def case_pool_ratio_of_the_batch(tf):
    return tf.raw_ops.FractionalAvgPool(
        value=np.zeros((2, 5, 5, 1), "f4"), pooling_ratio=[2, 1.5, 1.4, 1]
    )


def case_pool_ratio_too_high(tf):
    return tf.raw_ops.FractionalMaxPool(
        value=np.zeros((1, 5, 5, 1), "f4"), pooling_ratio=[1, 6, 6, 1]
    )


def case_pool_seed_without_deterministic(tf):
    return tf.raw_ops.FractionalMaxPool(
        value=np.zeros((1, 5, 5, 1), "f4"), pooling_ratio=[1, 2, 2, 1], seed=3
    )


def case_index_shuffle(tf):
    out = []
    for most in (0, 15, 255, 1000, 65535, 100000, 2**20 - 1, 2**30):
        for seed in ((0, 0, 0), (1, 2, 3), (2**32 - 1, 5, 99)):
            for rounds in (4, 6, 10):
                for index in {0, most // 3, most}:
                    out.append(
                        tf.raw_ops.RandomIndexShuffle(
                            index=index,
                            seed=tf.constant(seed, tf.uint32),
                            max_index=most,
                            rounds=rounds,
                        )
                    )
    return out


def case_index_shuffle_types(tf):
    out = []
    for kind, most in (
        (tf.int32, 99),
        (tf.uint32, 2**31),
        (tf.int64, 2**40),
        (tf.uint64, 2**50),
    ):
        for seed in ([-1, -2, 3], [[1, 2, 3]] * 4):
            out.append(
                tf.raw_ops.RandomIndexShuffle(
                    index=tf.constant([3, 4, 5, 6], kind),
                    seed=tf.constant(seed, tf.int64),
                    max_index=tf.constant(most, kind),
                )
            )
    return out


def case_index_shuffle_face(tf):
    return tf.random.experimental.index_shuffle(tf.range(5), [1, 2], 9)


def case_index_shuffle_negative(tf):
    seed = tf.constant([1, 2, 3], tf.uint32)
    return tf.raw_ops.RandomIndexShuffle(index=-1, seed=seed, max_index=5)


def case_index_shuffle_beyond(tf):
    seed = tf.constant([1, 2, 3], tf.uint32)
    return tf.raw_ops.RandomIndexShuffle(index=6, seed=seed, max_index=5)


def case_index_shuffle_seed(tf):
    seed = tf.constant([1, 2], tf.uint32)
    return tf.raw_ops.RandomIndexShuffle(index=1, seed=seed, max_index=5)


def case_sobol(tf):
    wide = tf.math.sobol_sample(1111, 9000, dtype=tf.float64)
    return [
        tf.math.sobol_sample(5, 37),
        tf.math.sobol_sample(3, 4, skip=7, dtype=tf.float64),
        tf.math.sobol_sample(40, 3, skip=123456),
        wide[8190:8194],
        wide[::97, 1110],
    ]


def case_sobol_dim(tf):
    return tf.math.sobol_sample(0, 3)


def case_sobol_count(tf):
    return tf.math.sobol_sample(1, 0)


def case_sobol_skip(tf):
    return tf.math.sobol_sample(1, 1, skip=-1)


def case_learned_unigram(tf):
    out = []
    for op in (
        "LearnedUnigramCandidateSampler",
        "ThreadUnsafeUnigramCandidateSampler",
    ):
        for unique in (False, True):
            for truth in ([[1, 2], [3, 1]], [[7, 7], [7, 7]], [[0, 8], [7, 0]]):
                out.append(
                    getattr(tf.raw_ops, op)(
                        true_classes=truth,
                        num_true=2,
                        num_sampled=6,
                        unique=unique,
                        range_max=9,
                        seed=4,
                        seed2=2,
                    )
                )
    return out


def case_learned_unigram_out_of_range(tf):
    return tf.raw_ops.LearnedUnigramCandidateSampler(
        true_classes=[[9]], num_true=1, num_sampled=6, unique=False, range_max=9
    )
