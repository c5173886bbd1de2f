"""tf.strings functions whose results have ragged rows: characters, bytes, n-grams."""

from headrace._load import _headrace, raw
from headrace.framework import dtypes
from headrace.framework.support import signatures
from headrace.ops import array_ops
from headrace.ragged.ragged_tensor import RaggedTensor, as_values, is_ragged, levels


def _text(x):
    return as_values(x, dtypes.string)


def _by_rank(x, of_vector):
    """of_vector, which makes ragged rows of a vector of strings, of any tensor: a
    list of RaggedTensors, or of tensors where x is a scalar."""
    if is_ragged(x):
        return [x.with_flat_values(r) for r in _by_rank(x.flat_values, of_vector)]
    rank = x.shape.rank
    if rank is None:
        raise ValueError("Rank of `input` must be statically known.")
    if rank == 0:
        return [r.values for r in of_vector(array_ops.reshape(x, [1]))]
    if rank == 1:
        return of_vector(x)
    ragged = RaggedTensor.from_tensor(x, ragged_rank=rank - 1)
    return [ragged.with_flat_values(r) for r in of_vector(ragged.flat_values)]


def _decoded(op, input, name, **attributes):
    def of_vector(x):
        splits, *columns = _headrace.raw_op(op)(input=x, **attributes)
        return [
            RaggedTensor.from_row_splits(c, splits, validate=False) for c in columns
        ]

    return _by_rank(_text(input), of_vector)


_decoding = signatures.having(
    "input, input_encoding, errors='replace', replacement_char=0xFFFD, "
    "replace_control_characters=False, name=None"
)


@_decoding
def unicode_decode(**given):
    """The code points (int32) of texts, one more dimension, ragged.

    `errors` says what bytes that are no characters become: "replace" (by
    `replacement_char`), "ignore" or "strict" (InvalidArgumentError).
    """
    return _decoded("UnicodeDecode", **given)[0]


@_decoding
def unicode_decode_with_offsets(**given):
    """(code points, bytes at which they begin (int64)) of texts."""
    return tuple(_decoded("UnicodeDecodeWithOffsets", **given))


def unicode_encode(
    input, output_encoding, errors="replace", replacement_char=65533, name=None
):
    """Code points (int32), the last dimension, as texts."""
    x = as_values(input)
    if not is_ragged(x):
        rank = x.shape.rank
        if rank is None:
            raise ValueError("Rank of input_tensor must be statically known.")
        if rank == 0:
            raise ValueError("input_tensor's rank must be at least 1.")
        if rank == 1:
            row = array_ops.expand_dims(x, 0)
            return array_ops.reshape(
                unicode_encode(row, output_encoding, errors, replacement_char), []
            )
        if rank > 2:
            shape = array_ops.shape(x)
            flat = array_ops.reshape(x, array_ops.stack([-1, shape[-1]]))
            done = unicode_encode(flat, output_encoding, errors, replacement_char)
            return array_ops.reshape(done, shape[:-1])
        x = RaggedTensor.from_tensor(x)
    if x.ragged_rank > 1:
        inner = unicode_encode(x.values, output_encoding, errors, replacement_char)
        return x.with_values(inner)
    return raw.UnicodeEncode(
        x.values,
        x.row_splits,
        output_encoding=output_encoding,
        errors=errors,
        replacement_char=replacement_char,
        name=name,
    )


def _characters(code_points):
    """Each code point as a text of its own."""
    if is_ragged(code_points):
        return code_points.with_flat_values(_characters(code_points.flat_values))
    return unicode_encode(array_ops.expand_dims(code_points, 1), "UTF-8")


def unicode_split(
    input, input_encoding, errors="replace", replacement_char=0xFFFD, name=None
):
    """The characters of texts as texts of UTF-8, one more dimension, ragged."""
    args = input_encoding, errors, replacement_char
    return _characters(unicode_decode(input, *args))


def unicode_split_with_offsets(
    input, input_encoding, errors="replace", replacement_char=0xFFFD, name=None
):
    """(characters, bytes at which they begin (int64)) of texts."""
    args = input_encoding, errors, replacement_char
    code_points, offsets = unicode_decode_with_offsets(input, *args)
    return _characters(code_points), offsets


def bytes_split(input, name=None):
    """The bytes of strings as strings, one more dimension, ragged."""

    def of_vector(x):
        indices, values, shape = raw.StringSplit(x, "", skip_empty=False)
        rows = RaggedTensor.from_value_rowids(
            values, indices[:, 0], shape[0], validate=False
        )
        return [rows]

    return _by_rank(_text(input), of_vector)[0]


def ngrams(
    data,
    ngram_width,
    separator=" ",
    pad_values=None,
    padding_width=None,
    preserve_short_sequences=False,
    name=None,
):
    """Runs of `ngram_width` (an int or several) strings of the last dimension, joined.

    `pad_values`, a text or a pair (left, right), is put `padding_width` times (one
    less than the width by default) around each row.
    """
    if isinstance(pad_values, str):
        pad_values = (pad_values, pad_values)
    if pad_values is not None and not (
        isinstance(pad_values, (list, tuple))
        and len(pad_values) == 2
        and all(isinstance(p, (str, bytes)) for p in pad_values)
    ):
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    widths = (
        list(ngram_width) if isinstance(ngram_width, (list, tuple)) else [ngram_width]
    )
    if min(widths) < 1:
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    if padding_width is not None and padding_width < 1:
        raise ValueError(f"padding_width must be greater than 0. Got {padding_width}")
    if padding_width is not None and pad_values is None:
        raise ValueError("pad_values must be provided if padding_width is set.")
    data = _text(data)
    rank = data.shape.rank
    if rank == 0:
        raise ValueError("Data must have rank>0")
    if not is_ragged(data):
        whole = array_ops.expand_dims(data, 0) if rank == 1 else data
        rows = RaggedTensor.from_tensor(whole, ragged_rank=whole.shape.rank - 1)
    else:
        rows = data
    if pad_values is None:
        pad, left, right = 0, "", ""
    else:
        pad = -1 if padding_width is None else padding_width
        left, right = pad_values
    # Only the innermost rows change.
    *_, inner = levels(rows)
    values, splits = raw.StringNGrams(
        inner.values,
        inner.row_splits,
        separator=separator,
        ngram_widths=widths,
        left_pad=left,
        right_pad=right,
        pad_width=pad,
        preserve_short_sequences=preserve_short_sequences,
        name=name,
    )
    done = RaggedTensor.from_row_splits(values, splits, validate=False)
    done = _with_innermost(rows, done)
    if is_ragged(data):
        return done
    return array_ops.squeeze(done.to_tensor(), [0]) if rank == 1 else done.to_tensor()


def _with_innermost(rows, innermost):
    if rows.ragged_rank == 1:
        return innermost
    return rows.with_values(_with_innermost(rows.values, innermost))
