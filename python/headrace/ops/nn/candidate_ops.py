"""Losses that compare the true classes with a few drawn ones."""

from headrace._load import _headrace, raw
from headrace.framework import conversion, dtypes, name_scopes
from headrace.framework.settings import random_seed
from headrace.framework.support import signatures
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops
from headrace.ops.nn import embedding_ops, nn_ops


def _sampler(op, own_name, doc, own="range_max, "):
    """The public function of a sampler, of which a text says the parameters that it
    does not share with all."""

    def draw(seed, **given):
        given["seed"], given["seed2"] = random_seed.op_seeds(seed)
        if "unigrams" in given:
            given["unigrams"] = list(given["unigrams"])
        return _headrace.raw_op(op)(**given)

    parameters = signatures.from_text(
        f"true_classes, num_true, num_sampled, unique, {own}seed=None, name=None"
    )
    like = signatures.named(own_name, doc, __name__)
    return signatures.function_of(like, parameters, draw)


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


fixed_unigram_candidate_sampler = _sampler(
    "FixedUnigramCandidateSampler",
    "fixed_unigram_candidate_sampler",
    "The same by given weights, raised to the power of `distortion`.",
    "range_max, vocab_file='', distortion=1.0, num_reserved_ids=0, num_shards=1, "
    "shard=0, unigrams=(), ",
)
all_candidate_sampler = _sampler(
    "AllCandidateSampler", "all_candidate_sampler", "All classes, each once.", ""
)


def compute_accidental_hits(
    true_classes, sampled_candidates, num_true, seed=None, name=None
):
    """(row, place among the sampled, what to add to its logit) of each sampled class
    that is a true one."""
    first, second = random_seed.op_seeds(seed)
    return raw.ComputeAccidentalHits(
        true_classes,
        sampled_candidates,
        num_true=num_true,
        seed=first,
        seed2=second,
        name=name,
    )


def _without_hits(logits, labels, sampled, num_true):
    rows, places, weights = compute_accidental_hits(labels, sampled, num_true)
    at = array_ops.stack([rows, math_ops.cast(places, dtypes.int32)], 1)
    weights = math_ops.cast(weights, logits.dtype)
    return logits + array_ops.scatter_nd(at, weights, array_ops.shape(logits))


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
    labels = math_ops.cast(labels, dtypes.int64)
    inputs = conversion.convert_to_tensor(inputs)
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(
            labels, num_true, num_sampled, True, num_classes, seed
        )
    sampled, true_count, sampled_count = (
        array_ops.stop_gradient(v) for v in sampled_values
    )
    sampled = math_ops.cast(sampled, dtypes.int64)
    flat = array_ops.reshape(labels, [-1])
    ids = array_ops.concat([flat, sampled], 0)
    count = array_ops.size(flat)
    rows = embedding_ops.lookup(weights, ids, partition_strategy)
    rows = math_ops.cast(rows, inputs.dtype)
    offsets = embedding_ops.lookup(biases, ids, partition_strategy)
    offsets = math_ops.cast(offsets, inputs.dtype)
    size = array_ops.shape(rows)[1]
    of_true = array_ops.reshape(rows[:count], array_ops.stack([-1, num_true, size]))
    true = reduction_ops.reduce_sum(array_ops.expand_dims(inputs, 1) * of_true, 2)
    true += array_ops.reshape(offsets[:count], [-1, num_true])
    others = math_ops.matmul(inputs, rows[count:], transpose_b=True) + offsets[count:]
    if remove_accidental_hits:
        others = _without_hits(others, labels, sampled, num_true)
    true -= math_ops.cast(elementwise_ops.log(true_count), inputs.dtype)
    others -= math_ops.cast(elementwise_ops.log(sampled_count), inputs.dtype)
    wanted = [array_ops.ones_like(true) / num_true, array_ops.zeros_like(others)]
    return array_ops.concat([true, others], 1), array_ops.concat(wanted, 1)


_GIVEN = "weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, "
_GIVEN += "sampled_values=None, remove_accidental_hits={}, partition_strategy='mod', "
_CLASSES = "weights, biases, labels, inputs, num_sampled, num_classes, num_true, "
_CLASSES += "sampled_values, remove_accidental_hits, "
_IN_PARTS = "The same; weights in parts lie there one after another."


@signatures.taking(signatures.from_text(_GIVEN.format(False) + "name='nce_loss'"))
def nce_loss_v1(**given):
    """Noise-contrastive estimation's loss of each example."""
    with name_scopes.name_scope(given.pop("name")):
        logits, wanted = _logits(**given, seed=None)
        losses = nn_ops.sigmoid_cross_entropy_with_logits(labels=wanted, logits=logits)
        return reduction_ops.reduce_sum(losses, 1)


nce_loss = signatures.twin(
    nce_loss_v1, "nce_loss", _IN_PARTS, _CLASSES + "name", partition_strategy="div"
)


@signatures.taking(
    signatures.from_text(_GIVEN.format(True) + "name='sampled_softmax_loss', seed=None")
)
def sampled_softmax_loss_v1(**given):
    """Softmax cross-entropy over the true classes and a few drawn ones."""
    with name_scopes.name_scope(given.pop("name")):
        logits, wanted = _logits(**given)
        return nn_ops.softmax_cross_entropy_with_logits(
            labels=array_ops.stop_gradient(wanted), logits=logits
        )


sampled_softmax_loss = signatures.twin(
    sampled_softmax_loss_v1,
    "sampled_softmax_loss",
    _IN_PARTS,
    _CLASSES + "seed, name",
    partition_strategy="div",
)
