"""Labels of sequences whose place in time is not known (CTC)."""

from headrace._load import raw
from headrace.control_flow import branches, mapping
from headrace.framework import conversion, dtypes, name_scopes
from headrace.framework.sparse_tensor import SparseTensor, is_sparse
from headrace.framework.support import signatures
from headrace.ops import array_ops, elementwise_ops, math_ops, reduction_ops, sort_ops
from headrace.ops.nn import nn_ops


@signatures.having(
    "labels, inputs=None, sequence_length=None, preprocess_collapse_repeated=False, "
    "ctc_merge_repeated=True, ignore_longer_outputs_than_inputs=False, time_major=True"
)
def loss_v1(labels, inputs, time_major, **given):
    """The loss of sparse labels; the last class is the blank."""
    if not is_sparse(labels):
        raise TypeError(
            "Expected argument `labels` to be a SparseTensor. Received labels="
            f"{labels} of type: {type(labels).__name__}"
        )
    inputs = conversion.convert_to_tensor(inputs)
    if not time_major:
        inputs = array_ops.transpose(inputs, [1, 0, 2])
    narrow = inputs.dtype in (dtypes.float16, dtypes.bfloat16)
    made = raw.CTCLoss(
        math_ops.cast(inputs, dtypes.float32) if narrow else inputs,
        labels.indices,
        labels.values,
        **given,
    )[0]
    return math_ops.cast(made, inputs.dtype) if narrow else made


def _blank_last(labels, logits, blank):
    """The same with the blank as the last class."""
    classes = logits.shape[2]
    if classes is None:
        raise ValueError("The number of classes must be known.")
    if blank < 0:
        blank += classes
    if blank == classes - 1:
        return labels, logits
    parts = [
        logits[:, :, :blank],
        logits[:, :, blank + 1 :],
        logits[:, :, blank : blank + 1],
    ]
    values = labels.values
    moved = array_ops.where(values < blank, values, values - 1)
    return SparseTensor(labels.indices, moved, labels.dense_shape), array_ops.concat(
        parts, 2
    )


def _dense_loss(labels, logits, logit_length, blank):
    """The loss of labels of which some may be the blank's number."""
    classes = logits.shape[2]
    if blank < 0 and classes is not None:
        blank += classes
    values = labels.values
    others = array_ops.where(math_ops.equal(values, blank), max(blank - 1, 0), values)
    others = SparseTensor(labels.indices, others, labels.dense_shape)
    others, plain_logits = _blank_last(others, logits, blank)

    def plain():
        return loss_v1(others, plain_logits, logit_length)

    if blank != 0:
        return plain()

    def with_copy():
        # The op wants a blank that is no label, so the blank gets a second class of
        # the same probability. What that takes from all others is given back.
        logs = nn_ops.log_softmax(logits)
        second = logs[:, :, :1]
        wide = array_ops.concat([logs, second], 2)
        loss = loss_v1(labels, wide, logit_length)
        taken = elementwise_ops.log1p(elementwise_ops.exp(second[:, :, 0]))
        shown = array_ops.sequence_mask(
            logit_length, array_ops.shape(logits)[0], taken.dtype
        )
        return loss - reduction_ops.reduce_sum(taken * array_ops.transpose(shown), 0)

    return branches.cond(
        reduction_ops.reduce_any(math_ops.equal(values, 0)), with_copy, plain
    )


def ctc_loss(
    labels,
    logits,
    label_length,
    logit_length,
    logits_time_major=True,
    unique=None,
    blank_index=None,
    name=None,
):
    """The loss of labels, sparse or padded to `label_length`; `unique`, what
    ctc_unique_labels gives, is not needed here and changes nothing.

    Among padded labels 0 is a label like others where it is the blank's number too;
    the number of another blank stands for the class before it, as upstream.
    """
    with name_scopes.name_scope(name or "ctc_loss"):
        logits = conversion.convert_to_tensor(logits)
        if not logits_time_major:
            logits = array_ops.transpose(logits, [1, 0, 2])
        if is_sparse(labels):
            if blank_index is None:
                raise ValueError(
                    "Argument `blank_index` must be provided when `labels` is a "
                    "`SparseTensor`."
                )
            labels, logits = _blank_last(labels, logits, blank_index)
            return loss_v1(labels, logits, logit_length)
        labels = math_ops.cast(labels, dtypes.int32)
        inside = array_ops.sequence_mask(label_length, array_ops.shape(labels)[1])
        shape = array_ops.shape(labels, out_type=dtypes.int64)
        places = array_ops.where(inside)
        labels = SparseTensor(places, array_ops.boolean_mask(labels, inside), shape)
        return _dense_loss(labels, logits, logit_length, blank_index or 0)


def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True, blank_index=None):
    """([labels as a sparse tensor], the negated sum of the greatest logits)."""
    *decoded, score = raw.CTCGreedyDecoder(
        inputs,
        sequence_length,
        merge_repeated=merge_repeated,
        blank_index=-1 if blank_index is None else blank_index,
    )
    return [SparseTensor(*decoded)], score


def beam_search_v1(
    inputs, sequence_length, beam_width=100, top_paths=1, merge_repeated=True
):
    """(the likeliest labels as sparse tensors, their log-probabilities)."""
    places, values, shapes, scores = raw.CTCBeamSearchDecoder(
        inputs,
        sequence_length,
        beam_width=beam_width,
        top_paths=top_paths,
        merge_repeated=merge_repeated,
    )
    return [SparseTensor(*parts) for parts in zip(places, values, shapes)], scores


def ctc_beam_search_decoder(inputs, sequence_length, beam_width=100, top_paths=1):
    """The same; equal neighbours in the labels stay."""
    return beam_search_v1(inputs, sequence_length, beam_width, top_paths, False)


def ctc_unique_labels(labels, name=None):
    """(the different labels of each row, padded; where each label stands there)."""
    with name_scopes.name_scope(name or "ctc_unique_labels"):
        labels = conversion.convert_to_tensor(labels)
        width = array_ops.shape(labels)[1]

        def row(x):
            found = sort_ops.unique(x)
            rest = width - array_ops.size(found.y)
            return array_ops.pad(
                math_ops.cast(found.y, dtypes.int64), [[0, rest]]
            ), found.idx

        return list(mapping.map_fn(row, labels, (dtypes.int64, dtypes.int32)))


def collapse_repeated(labels, seq_length, name=None):
    """(labels without repeated neighbours, their lengths)."""
    with name_scopes.name_scope(name or "collapse_repeated_labels"):
        labels = conversion.convert_to_tensor(labels)
        seq_length = conversion.convert_to_tensor(seq_length)
        changes = math_ops.not_equal(labels[:, 1:], labels[:, :-1])
        first = array_ops.ones_like(labels[:, :1], dtypes.bool)
        kept = array_ops.concat([first, changes], 1)
        kept = kept & array_ops.sequence_mask(seq_length, array_ops.shape(labels)[1])
        lengths = reduction_ops.reduce_sum(math_ops.cast(kept, seq_length.dtype), 1)
        width = reduction_ops.reduce_max(lengths)
        shape = array_ops.stack(
            [array_ops.shape(labels, out_type=width.dtype)[0], width]
        )
        places = math_ops.cast(
            array_ops.where(array_ops.sequence_mask(lengths, width)), width.dtype
        )
        made = array_ops.scatter_nd(places, array_ops.boolean_mask(labels, kept), shape)
        if labels.shape[0] is not None:
            made.set_shape([labels.shape[0], None])
        return made, lengths
