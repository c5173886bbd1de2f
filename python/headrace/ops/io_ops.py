"""tf.io: files and bytes as tensors."""

from headrace._load import _headrace
from headrace.ops.faces import face

read_file = face("ReadFile", "read_file", "filename,name=None")
write_file = face("WriteFile", "write_file", "filename,contents,name=None")
matching_files = face("MatchingFiles", "matching_files", "pattern,name=None")

decode_base64 = face("DecodeBase64", "decode_base64", "input,name=None")
encode_base64 = face("EncodeBase64", "encode_base64", "input,pad=False,name=None")
_decode_raw = face(
    "DecodeRaw", "decode_raw", "input_bytes->bytes,out_type,little_endian,name"
)
_decode_padded_raw = face(
    "DecodePaddedRaw",
    "decode_padded_raw",
    "input_bytes,fixed_length,out_type,little_endian,name",
)


def decode_raw(input_bytes, out_type, little_endian=True, fixed_length=None, name=None):
    """The bytes of strings as numbers: of strings of one length, or of each cut or
    filled up with zeros to `fixed_length` bytes."""
    if fixed_length is None:
        return _decode_raw(input_bytes, out_type, little_endian, name)
    return _decode_padded_raw(input_bytes, fixed_length, out_type, little_endian, name)


def decode_raw_v1(
    input_bytes=None, out_type=None, little_endian=True, name=None, bytes=None
):
    """tf.compat.v1.decode_raw: `bytes` is an older name of `input_bytes`."""
    if bytes is not None and input_bytes is not None:
        raise ValueError("Cannot specify both 'bytes' and 'input_bytes'.")
    input_bytes = bytes if input_bytes is None else input_bytes
    if out_type is None:
        raise ValueError("decode_raw_v1() missing 1 positional argument: 'out_type'")
    return _decode_raw(input_bytes, out_type, little_endian, name)


def decode_csv(
    records,
    record_defaults,
    field_delim=",",
    use_quote_delim=True,
    na_value="",
    select_cols=None,
    name=None,
):
    """Columns of records of separated fields (RFC 4180), a tensor a default.

    A default of one element stands for fields that are empty or `na_value`; an empty
    one says that the field is required.
    """
    return _headrace.raw_op("DecodeCSV")(
        records=records,
        record_defaults=list(record_defaults),
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=list(select_cols or []),
        name=name,
    )


decode_compressed = face(
    "DecodeCompressed", "decode_compressed", "bytes, compression_type='', name=None"
)
