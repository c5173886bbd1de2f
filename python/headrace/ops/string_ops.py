"""tf.strings."""

from headrace._load import raw
from headrace.framework import conversion, dtypes
from headrace.framework.name_scopes import composite
from headrace.ops.faces import add_faces

add_faces(
    globals(),
    """
lower StringLower(input, encoding='', name=None)
upper StringUpper(input, encoding='', name=None)
strip StringStrip(input, name=None)
length StringLength(input, unit='BYTE', name=None)
substr Substr(input, pos, len, unit='BYTE', name=None)
to_hash_bucket_fast StringToHashBucketFast(input, num_buckets, name=None)
to_hash_bucket_strong StringToHashBucketStrong(input, num_buckets, key, name=None)
to_hash_bucket StringToHashBucket(input->string_tensor, num_buckets, name=None)
    Strings to numbers below `num_buckets`.
regex_full_match RegexFullMatch(input, pattern, name=None)
unicode_transcode UnicodeTranscode(input, input_encoding, output_encoding,
        errors='replace', replacement_char=65533, replace_control_characters=False,
        name=None)
as_string AsString(input, precision=-1, scientific=False, shortest=False, width=-1,
        fill='', name=None)
    Numbers as text: `precision` digits behind the point, `width` characters at least.
to_number StringToNumber(input->string_tensor, out_type=float32, name=None)
    Text as numbers of `out_type`; InvalidArgumentError for what is no number.
unsorted_segment_join UnsortedSegmentJoin(inputs, segment_ids, num_segments,
        separator='', name=None)
    Strings of each segment joined.
unicode_script UnicodeScript(input, name=None)
fingerprint Fingerprint(data, method='farmhash64', name=None)
    Eight bytes for each row of a tensor that stand for its content, [rows, 8].

    InvalidArgumentError for a scalar and for another method.
""",
)


def join(inputs, separator="", name=None):
    """Strings of several tensors joined, element by element."""
    return raw.StringJoin(list(inputs), separator=separator, name=name)


def regex_replace(input, pattern, rewrite, replace_global=True, name=None):
    """Matches of a pattern replaced."""
    if isinstance(pattern, str) and isinstance(rewrite, str):
        return raw.StaticRegexReplace(
            input,
            pattern=pattern,
            rewrite=rewrite,
            replace_global=replace_global,
            name=name,
        )
    return raw.RegexReplace(
        input, pattern, rewrite, replace_global=replace_global, name=name
    )


@composite("ReduceJoin")
def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
    """Strings joined over dimensions."""
    inputs = conversion.convert_to_tensor(inputs)
    if axis is None:
        axis = list(range(inputs.shape.rank - 1, -1, -1))
    return raw.ReduceJoin(
        inputs,
        conversion.convert_to_tensor(axis, dtypes.int32),
        keep_dims=keepdims,
        separator=separator,
        name=name,
    )


def format(template, inputs, placeholder="{}", summarize=3, name=None):
    """A template with tensors put in, as tf.print shows them."""
    if not isinstance(inputs, (list, tuple)):
        inputs = [inputs]
    if template.count(placeholder) != len(inputs):
        raise ValueError(
            "The template expects "
            f"{template.count(placeholder)} tensors, but the inputs only has "
            f"{len(inputs)}. Please ensure the number of placeholders in template "
            "matches inputs length."
        )
    return raw.StringFormat(
        list(inputs),
        template=template,
        placeholder=placeholder,
        summarize=summarize,
        name=name,
    )
