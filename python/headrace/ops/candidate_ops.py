"""Losses that compare the true classes with a few drawn ones."""

import headrace as tf
from headrace.framework import random_seed


def _draw(op, true_classes, num_true, num_sampled, unique, seed, name, **more):
    first, second = random_seed.op_seeds(seed)
    return getattr(tf.raw_ops, op)(
        true_classes=true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        seed=first,
        seed2=second,
        name=name,
        **more,
    )


def _sampler(op, own_name, doc):
    """The public function of a sampler of classes below `range_max`."""

    def draw(
        true_classes, num_true, num_sampled, unique, range_max, seed=None, name=None
    ):
        given = (true_classes, num_true, num_sampled, unique, seed, name)
        return _draw(op, *given, range_max=range_max)

    draw.__name__ = draw.__qualname__ = own_name
    draw.__doc__ = doc
    return draw


uniform_candidate_sampler = _sampler(
    "UniformCandidateSampler",
    "uniform_candidate_sampler",
    "(classes, expected counts of the true ones, and of these), all alike.",
)
log_uniform_candidate_sampler = _sampler(
    "LogUniformCandidateSampler",
    "log_uniform_candidate_sampler",
    "The same of classes that are sorted by how frequent they are (Zipf).",
)
learned_unigram_candidate_sampler = _sampler(
    "LearnedUnigramCandidateSampler",
    "learned_unigram_candidate_sampler",
    "The same of classes by how often they were true ones in earlier calls.",
)


def fixed_unigram_candidate_sampler(
    true_classes,
    num_true,
    num_sampled,
    unique,
    range_max,
    vocab_file="",
    distortion=1.0,
    num_reserved_ids=0,
    num_shards=1,
    shard=0,
    unigrams=(),
    seed=None,
    name=None,
):
    """The same by given weights, raised to the power of `distortion`."""
    return _draw(
        "FixedUnigramCandidateSampler",
        *(true_classes, num_true, num_sampled, unique, seed, name),
        range_max=range_max,
        vocab_file=vocab_file,
        distortion=distortion,
        num_reserved_ids=num_reserved_ids,
        num_shards=num_shards,
        shard=shard,
        unigrams=list(unigrams),
    )


def all_candidate_sampler(
    true_classes, num_true, num_sampled, unique, seed=None, name=None
):
    """All classes, each once."""
    given = (true_classes, num_true, num_sampled, unique, seed, name)
    return _draw("AllCandidateSampler", *given)


def compute_accidental_hits(
    true_classes, sampled_candidates, num_true, seed=None, name=None
):
    """(row, place among the sampled, what to add to its logit) of each sampled class
    that is a true one."""
    first, second = random_seed.op_seeds(seed)
    return tf.raw_ops.ComputeAccidentalHits(
        true_classes=true_classes,
        sampled_candidates=sampled_candidates,
        num_true=num_true,
        seed=first,
        seed2=second,
        name=name,
    )


def _without_hits(logits, labels, sampled, num_true):
    rows, places, weights = compute_accidental_hits(labels, sampled, num_true)
    at = tf.stack([rows, tf.cast(places, tf.int32)], 1)
    weights = tf.cast(weights, logits.dtype)
    return logits + tf.scatter_nd(at, weights, tf.shape(logits))


def _logits(
    weights,
    biases,
    labels,
    inputs,
    num_sampled,
    num_classes,
    num_true,
    sampled_values,
    remove_accidental_hits,
    partition_strategy,
    seed,
):
    """(logits of the true and the sampled classes, their labels)."""
    from headrace.ops import embedding_ops

    labels = tf.cast(labels, tf.int64)
    inputs = tf.convert_to_tensor(inputs)
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(
            labels, num_true, num_sampled, True, num_classes, seed
        )
    sampled, true_count, sampled_count = (tf.stop_gradient(v) for v in sampled_values)
    sampled = tf.cast(sampled, tf.int64)
    flat = tf.reshape(labels, [-1])
    ids = tf.concat([flat, sampled], 0)
    count = tf.size(flat)
    rows = embedding_ops.lookup(weights, ids, partition_strategy)
    rows = tf.cast(rows, inputs.dtype)
    offsets = embedding_ops.lookup(biases, ids, partition_strategy)
    offsets = tf.cast(offsets, inputs.dtype)
    size = tf.shape(rows)[1]
    of_true = tf.reshape(rows[:count], tf.stack([-1, num_true, size]))
    true = tf.reduce_sum(tf.expand_dims(inputs, 1) * of_true, 2)
    true += tf.reshape(offsets[:count], [-1, num_true])
    others = tf.matmul(inputs, rows[count:], transpose_b=True) + offsets[count:]
    if remove_accidental_hits:
        others = _without_hits(others, labels, sampled, num_true)
    true -= tf.cast(tf.math.log(true_count), inputs.dtype)
    others -= tf.cast(tf.math.log(sampled_count), inputs.dtype)
    wanted = [tf.ones_like(true) / num_true, tf.zeros_like(others)]
    return tf.concat([true, others], 1), tf.concat(wanted, 1)


def nce_loss_v1(
    weights,
    biases,
    labels,
    inputs,
    num_sampled,
    num_classes,
    num_true=1,
    sampled_values=None,
    remove_accidental_hits=False,
    partition_strategy="mod",
    name="nce_loss",
):
    """Noise-contrastive estimation's loss of each example."""
    with tf.name_scope(name):
        logits, wanted = _logits(
            *(weights, biases, labels, inputs, num_sampled, num_classes, num_true),
            *(sampled_values, remove_accidental_hits, partition_strategy, None),
        )
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=wanted, logits=logits)
        return tf.reduce_sum(losses, 1)


def nce_loss(
    weights,
    biases,
    labels,
    inputs,
    num_sampled,
    num_classes,
    num_true=1,
    sampled_values=None,
    remove_accidental_hits=False,
    name="nce_loss",
):
    """The same; weights in parts lie there one after another."""
    return nce_loss_v1(
        *(weights, biases, labels, inputs, num_sampled, num_classes, num_true),
        *(sampled_values, remove_accidental_hits, "div", name),
    )


def sampled_softmax_loss_v1(
    weights,
    biases,
    labels,
    inputs,
    num_sampled,
    num_classes,
    num_true=1,
    sampled_values=None,
    remove_accidental_hits=True,
    partition_strategy="mod",
    name="sampled_softmax_loss",
    seed=None,
):
    """Softmax cross-entropy over the true classes and a few drawn ones."""
    with tf.name_scope(name):
        logits, wanted = _logits(
            *(weights, biases, labels, inputs, num_sampled, num_classes, num_true),
            *(sampled_values, remove_accidental_hits, partition_strategy, seed),
        )
        return tf.nn.softmax_cross_entropy_with_logits(
            labels=tf.stop_gradient(wanted), logits=logits
        )


def sampled_softmax_loss(
    weights,
    biases,
    labels,
    inputs,
    num_sampled,
    num_classes,
    num_true=1,
    sampled_values=None,
    remove_accidental_hits=True,
    seed=None,
    name="sampled_softmax_loss",
):
    """The same; weights in parts lie there one after another."""
    return sampled_softmax_loss_v1(
        *(weights, biases, labels, inputs, num_sampled, num_classes, num_true),
        *(sampled_values, remove_accidental_hits, "div", name, seed),
    )
