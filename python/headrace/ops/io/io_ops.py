"""tf.io: files and bytes as tensors."""

from headrace._load import raw
from headrace.framework.support import signatures
from headrace.ops.faces import add_faces

add_faces(
    globals(),
    """
read_file ReadFile(filename, name=None)
write_file WriteFile(filename, contents, name=None)
matching_files MatchingFiles(pattern, name=None)
decode_base64 DecodeBase64(input, name=None)
encode_base64 EncodeBase64(input, pad=False, name=None)
_decode_raw=decode_raw DecodeRaw(input_bytes->bytes, out_type, little_endian, name)
_decode_padded_raw=decode_padded_raw DecodePaddedRaw(input_bytes, fixed_length,
        out_type, little_endian, name)
decode_compressed DecodeCompressed(bytes, compression_type='', name=None)
decode_json_example DecodeJSONExample(json_examples, name=None)
    Serialised Examples (strings, a shape like the input's) of such as are written in
    JSON by protobuf's rules. InvalidArgumentError for what is none.
decode_proto DecodeProtoV2(bytes, message_type, field_names, output_types,
        descriptor_source='local://', message_format='binary', sanitize=False, name=None)
    Fields of serialised messages: `sizes`, [..., fields], how many values each message
    has of each field, and `values`, for each field [..., most values], padded with the
    field's default.

    `descriptor_source` says where `message_type` is described: "local://" for
    TensorFlow's own messages of graphs, tensors and examples, else the path of a file
    with a serialised FileDescriptorSet, or "bytes://" and such a set itself. Messages
    within messages come as strings of their bytes. With `message_format` "text" or
    `sanitize` protobuf parses the messages first. DataLossError for bytes that are no
    message.
encode_proto EncodeProto(sizes, values, field_names, message_type,
        descriptor_source='local://', name=None)
    Serialised messages, [...], of their fields: `values` are one tensor a field,
    [..., values], of which each message takes as many as `sizes`, [..., fields], says.
    The types are described as for `decode_proto`.
""",
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


@signatures.having(
    "records, record_defaults, field_delim=',', use_quote_delim=True, "
    "na_value='', select_cols=None, name=None"
)
def decode_csv(**given):
    """Columns of records of separated fields (RFC 4180), a tensor a default.

    A default of one element stands for fields that are empty or `na_value`; an empty
    one says that the field is required.
    """
    given["record_defaults"] = list(given["record_defaults"])
    given["select_cols"] = list(given["select_cols"] or [])
    return raw.DecodeCSV(**given)
