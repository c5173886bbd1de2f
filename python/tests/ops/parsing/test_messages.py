"""tf.io.decode_proto, encode_proto and decode_json_example, with what TensorFlow
gives and says."""

import headrace as tf
import message_cases
import numpy as np
import pytest
from message_cases import SOURCE, tag

Invalid, DataLoss = tf.errors.InvalidArgumentError, tf.errors.DataLossError


def _decode(bytes, fields, **more):
    given = {"message_type": "t.M", "descriptor_source": SOURCE, **more}
    return tf.io.decode_proto(
        bytes,
        field_names=list(fields),
        **given
        | {
            "output_types": [tf.as_dtype(t) for t in fields.values()],
        },
    )


def _one(bytes, name, dtype, **more):
    """(size, values) of one field of one message."""
    found = _decode(bytes, {name: dtype}, **more)
    return found.sizes.numpy().tolist()[0], found.values[0].numpy().tolist()


@pytest.mark.parametrize(
    ("fields", "dtypes"),
    [
        ("float", "float32 float64"),
        ("double", "float64"),
        ("int64 sint64 sfixed64", "int64"),
        ("uint64 fixed64", "uint64"),
        ("int32 sint32 sfixed32", "int32 int64"),
        ("uint32 fixed32", "uint32 uint64"),
        ("bool", "bool"),
        ("enum", "int32"),
        ("string bytes message group", "string"),
    ],
)
def test_dtypes(fields, dtypes):
    values = {"int64": 1 << 40, "enum": 3}
    every = "float32 float64 int32 int64 uint32 uint64 bool string int8 float16"
    for name in fields.split():
        message = message_cases.message_class()()
        if name in ("string", "bytes"):
            setattr(message, name, "hi" if name == "string" else b"hi")
            wanted = b"hi"
        elif name in ("message", "group"):
            getattr(message, name).x = 5
            inner = b"\x08\x05"
            wanted = inner
            if name == "group":
                wanted = tag("group", 3) + inner + tag("group", 4)
        else:
            setattr(message, name, values.get(name, True if name == "bool" else 1))
            wanted = values.get(name, 1)
        for dtype in every.split():
            if dtype in dtypes.split():
                found = _one(message.SerializeToString(), name, dtype)
                assert found == (1, [wanted])
                continue
            with pytest.raises(Invalid, match=f"output type for t.M.{name}: "):
                _one(b"", name, dtype)


def test_batches_and_padding():
    first, second = message_cases.messages()
    found = _decode([[first], [second]], {"many_int32": "int32"})
    assert found.sizes.numpy().tolist() == [[[3]], [[1]]]
    assert found.values[0].numpy().tolist() == [[[1, 2, 3]], [[9, 0, 0]]]
    found = _decode(first, {"many_int32": "int32", "default_enum": "int32"})
    assert found.sizes.numpy().tolist() == [3, 0]
    assert [v.numpy().tolist() for v in found.values] == [[1, 2, 3], [3]]
    # A field that is named twice is read once, and one that nobody has is one wide.
    found = tf.io.decode_proto(
        first,
        "t.M",
        ["int32", "int32", "packed_bool"],
        ["int32", "int64", "bool"],
        SOURCE,
    )
    assert found.sizes.numpy().tolist() == [1, 0, 0]
    assert [v.numpy().tolist() for v in found.values] == [[-5], [0], [False]]
    assert tf.io.decode_proto(first, "t.M", [], [], SOURCE).sizes.shape == [0]


def test_defaults():
    wanted = {
        "int32": 42,
        "float": 1.5,
        "bool": True,
        "sint32": -7,
        "sint64": -9,
        "uint64": 2**64 - 1,
    }
    for kind, value in wanted.items():
        dtype = {"float": "float32", "sint32": "int32", "sint64": "int64"}
        found = _one(b"", f"default_{kind}", dtype.get(kind, kind))
        assert found == (0, [value])


def test_wire_forms():
    # The last of several counts; packed and plain values may be mixed.
    assert _one(b"\x48\x05\x48\x06", "int32", "int32") == (1, [6])
    assert _one(b"\x52\x03\x01\x02\x03", "many_int32", "int32") == (3, [1, 2, 3])
    mixed = tag("packed_int32", 0) + b"\x07" + tag("packed_int32", 2) + b"\x02\x01\x02"
    assert _one(mixed, "packed_int32", "int32") == (3, [7, 1, 2])
    # Numbers of more bits than the field has, and enumerators without a name.
    assert _one(b"\x48\xff\xff\xff\xff\xff\x7f", "int32", "int32") == (1, [-1])
    assert _one(tag("enum", 0) + b"\x07", "enum", "int32") == (1, [7])
    assert _one(tag("bool", 0) + b"\x05", "bool", "bool") == (1, [True])
    # Another wire type is an unknown field; parts of a message are not merged.
    assert _one(tag("string", 0) + b"\x07", "string", "string") == (0, [b""])
    twice = tag("message", 2) + b"\x02\x08\x04"
    twice += tag("message", 2) + b"\x02\x08\x05"
    assert _one(twice, "message", "string") == (1, [b"\x08\x05"])
    # Unless protobuf parses the message first.
    empty = tag("message", 2) + b"\x02\x08\x04" + tag("message", 2) + b"\x00"
    assert _one(empty, "message", "string", sanitize=True) == (1, [b"\x08\x04"])
    assert _one(b"\x0b\x48\x05\x0c", "int32", "int32") == (0, [0])


@pytest.mark.parametrize(
    ("bytes", "field", "text"),
    [
        (b"\xff", "int32", "CountFields: Failed to consume entire buffer"),
        (b"\x00\x01", "int32", "CountFields: Failed to consume entire buffer"),
        (b"\x0c", "int32", "CountFields: Failed to consume entire buffer"),
        (b"\x0e", "int32", "Failed skipping unrequested field"),
        (b"\x0b\x1c", "int32", "Failed skipping unrequested field"),
        (b"\x4e", "int32", "CollectField: Failed skipping malformed field"),
        (b"\x4b", "int32", "CollectField: Failed skipping malformed field"),
        (b"\x48", "int32", "ReadValue: Failed skipping field when counting"),
        (b"\x48\x80", "int32", "ReadValue: Failed skipping field when counting"),
        (
            b"\x48" + b"\xff" * 10 + b"\x01",
            "int32",
            "ReadValue: Failed skipping field when counting",
        ),
        (b"\x52\x03\x01\x02\x83", "many_int32", "Corrupt packed varint"),
        (
            tag("many_double", 2) + b"\x09" + b"\0" * 9,
            "many_double",
            "Illegal data length for packed fixed-size type: 9",
        ),
        (tag("group", 2) + b"\0", "group", "Non-primitive type encountered as packed"),
        (
            tag("group", 3) + b"\x08\x05",
            "group",
            "ReadValue: Failed skipping field when counting",
        ),
        (
            tag("string", 2) + b"\xff" * 9 + b"\x01a",
            "string",
            "ReadValue: Failed skipping field when counting",
        ),
    ],
)
def test_damaged(bytes, field, text):
    dtype = {"many_int32": "int32", "many_double": "float64", "int32": "int32"}
    dtype = dtype.get(field, "string")
    with pytest.raises(DataLoss, match=text):
        _one(bytes, field, dtype)
    # protobuf itself takes a 0 for the end, and hands unknown fields on.
    if bytes != b"\x00\x01" and "Non-primitive" not in text:
        with pytest.raises(DataLoss, match="Unable to parse binary protobuf"):
            _one(bytes, field, dtype, sanitize=True)


def test_every_cut_of_a_message():
    """Cut bytes give a shorter message or DataLoss, and nothing else."""
    whole = message_cases.messages()[0]
    m = message_cases.message_class()
    fields = {"many_int32": "int32", "many_string": "string", "sfixed64": "int64"}
    good = 0
    for end in range(len(whole)):
        try:
            found = _decode(whole[:end], fields)
        except DataLoss:
            with pytest.raises(Exception, match="pars"):
                m.FromString(whole[:end])
            continue
        good += 1
        assert found.sizes[0] == len(m.FromString(whole[:end]).many_int32)
    assert 10 < good < len(whole)


def test_text():
    text = "int32: 5 many_string: 'a'"
    found = _decode(
        [text, ""], {"int32": "int32", "many_string": "string"}, message_format="text"
    )
    assert found.values[0].numpy().tolist() == [[5], [0]]
    assert found.values[1].numpy().tolist() == [[b"a"], [b""]]
    with pytest.raises(DataLoss, match="Unable to parse text protobuf"):
        _one("nope: 1", "int32", "int32", message_format="text")
    deep = "message {" * 10000
    with pytest.raises(DataLoss, match="Unable to parse text protobuf"):
        _one(deep, "int32", "int32", message_format="text")


def test_sources(tmp_path):
    path = tmp_path / "t.desc"
    path.write_bytes(message_cases.files().SerializeToString())
    assert _one(b"\x48\x05", "int32", "int32", descriptor_source=str(path))[1] == [5]
    found = tf.io.decode_proto(b"", "tensorflow.Example", ["features"], [tf.string])
    assert found.sizes.numpy().tolist() == [0]
    none = "Source does not represent serialized file descriptor set proto"
    for source in ("/nope", b"bytes://zz", "foo://x"):
        with pytest.raises(Invalid, match=none):
            _one(b"", "int32", "int32", descriptor_source=source)
    for source in ("", b"bytes://", "local://"):
        with pytest.raises(Invalid, match=r"No descriptor found for message type t\.M"):
            _one(b"", "int32", "int32", descriptor_source=source)
    for name in ("", "t.Q", "t.M.E", ".t.M"):
        with pytest.raises(Invalid, match="No descriptor found for message type"):
            _one(b"", "int32", "int32", message_type=name)
    # A file stands behind what it imports.
    last = message_cases.described().__class__(name="a.proto", package="a")
    last.dependency.append("t.proto")
    made = last.message_type.add(name="A").field.add(name="m", number=1, label=1)
    made.type, made.type_name = 11, ".t.M"
    kind = {"message_type": "a.A"}
    good = b"bytes://" + message_cases.files(last).SerializeToString()
    assert _one(b"", "m", "string", descriptor_source=good, **kind) == (0, [b""])
    alone = message_cases.files(last)
    del alone.file[0]
    with pytest.raises(Invalid, match="Failed to load FileDescriptorProto"):
        source = b"bytes://" + alone.SerializeToString()
        _one(b"", "m", "string", descriptor_source=source, **kind)


def test_a_source_that_is_cut():
    """Descriptors from anywhere are checked as messages are."""
    whole = message_cases.files().SerializeToString()
    for end in range(0, len(whole), 37):
        with pytest.raises(Invalid):
            _one(b"", "int32", "int32", descriptor_source=b"bytes://" + whole[:end])


def test_refusals_of_decode():
    with pytest.raises(Invalid, match=r"Unknown field: zz in message type t\.M"):
        _one(b"", "zz", "int32")
    assert _one(b"", "t.ext", "int32") == (0, [0])
    with pytest.raises(Invalid, match="Unknown field: ext in"):
        _one(b"", "ext", "int32")
    with pytest.raises(Invalid, match="must have the same length"):
        tf.io.decode_proto(b"", "t.M", ["int32"], [tf.int32] * 2, SOURCE)
    with pytest.raises(Invalid, match="format must be one of binary or text"):
        _one(b"", "int32", "int32", message_format="json")
    with pytest.raises(Invalid, match="Bufs argument must contain at least one value"):
        _decode(tf.zeros([0], tf.string), {"int32": "int32"})


def _encode(sizes, fields, **more):
    given = {"message_type": "t.M", "descriptor_source": SOURCE, **more}
    values = [tf.constant(v, t) for v, t in fields.values()]
    return tf.io.encode_proto(sizes, values, list(fields), **given)


def test_encode_and_decode_again():
    first = message_cases.messages()[0]
    fields = {
        "int32": "int32",
        "many_string": "string",
        "many_uint64": "uint64",
        "many_double": "float64",
        "packed_int32": "int64",
        "sint32": "int32",
        "sint64": "int64",
        "sfixed32": "int32",
        "fixed64": "uint64",
        "float": "float32",
        "bool": "bool",
        "message": "string",
        "enum": "int32",
    }

    @tf.function
    def both(x):
        sizes, values = _decode(x, fields)
        return tf.io.encode_proto(sizes, values, list(fields), "t.M", SOURCE)

    m = message_cases.message_class()
    given = m.FromString(first)
    for name in {f.name for f in m.DESCRIPTOR.fields} - set(fields):
        given.ClearField(name)
    for found in (both(tf.constant([first])), both.python_function([first])):
        assert m.FromString(found.numpy()[0]) == given


def test_refusals_of_encode():
    one = {"int32": ([[5]], tf.int32)}
    cases = [
        ([[3]], one, "must not be larger than value tensor; but saw: 3 > 1 at message"),
        ([[1, 1]], one, r"Saw: \[1,2\] but expected: \[1,1\]"),
        (1, one, r"Saw: \[\] but expected: \[1,1\]"),
        ([1], {"int32": ([5], tf.int32)}, "field int32.  Saw shape .1. but it should"),
        ([[1]], {"zz": ([[5]], tf.int32)}, "Unknown field: zz in message type t.M"),
        ([[1]], {"t.ext": ([[5]], tf.int32)}, "Unknown field: t.ext"),
        (
            [[1]],
            {"int32": ([[5]], tf.float32)},
            "type for field int32.  Saw dtype: float but field type is: int32",
        ),
        (
            [[1, 1]],
            {"int32": ([[5]], tf.int32), "many_int32": ([[1], [2]], tf.int32)},
            "Values must match up to the last dimension",
        ),
    ]
    for sizes, fields, text in cases:
        with pytest.raises(Invalid, match=text):
            _encode(sizes, fields)
    with pytest.raises(Invalid, match="Length of inputs list must match field_names"):
        values = [tf.constant([[5]])]
        tf.io.encode_proto([[1]], values, ["int32", "bool"], "t.M", SOURCE)
    assert _encode([[-1]], one).numpy()[0] == b""
    assert _encode(np.zeros([0, 1]), {"int32": (np.zeros([0, 2]), tf.int32)}).shape == [
        0
    ]


def test_shapes_in_graphs():
    def shapes(*given):
        seen = []

        @tf.function
        def f(*x):
            made = tf.io.encode_proto(x[0], list(x[1:]), ["int32"], "t.M", SOURCE)
            seen.append(made.shape)
            return made

        f.get_concrete_function(*[tf.TensorSpec(s, tf.int32) for s in given])
        return seen[0]

    assert shapes([None, 2], [3, None]).as_list() == [3]
    assert shapes([3, 1], [None, 3, 4]).as_list() == [None, 3]
    assert shapes([None, None], None).rank is None
    with pytest.raises(ValueError, match="must be at least rank 2 but is rank 1"):
        shapes([1], [1])
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.string, [None, 3])
        found = _decode(x, {"int32": "int32", "string": "string"})
        assert found.sizes.shape.as_list() == [None, 3, 2]
        assert [v.shape.as_list() for v in found.values] == [[None, 3, None]] * 2


def test_json():
    example = tf.io.decode_json_example('{features:{"feature":{"a":{}}}}')
    assert tf.train.Example.FromString(example.numpy()).features.feature["a"]
    snake = '{"features":{"feature":{"a":{"int64_list":{"value":[1]}}}}}'
    found = tf.compat.v1.decode_json_example([snake])
    found = tf.train.Example.FromString(found.numpy()[0]).features.feature["a"]
    assert found.int64_list.value == [1]
    for text in (
        "",
        "[]",
        "{",
        '{"x":1}',
        "{} {}",
        '{"features":{"feature":{"a":{"int64List":{"value":[1.5]}}}}}',
        '{"features":{"feature":{"a":{"bytesList":{"value":["?"]}}}}}',
        '{"features":{"feature":{"a":{"int64List":{"value":["99999999999999999999"]}}}}}',
        "[" * 3000,
        '{"features":' * 3000,
        b"\xff",
    ):
        with pytest.raises(Invalid, match="Error while parsing JSON: "):
            tf.io.decode_json_example([text])
