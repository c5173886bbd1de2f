"""A message of fields of every type, described as ops take it."""

import functools

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_TYPES = [
    "double",
    "float",
    "int64",
    "uint64",
    "int32",
    "fixed64",
    "fixed32",
    "bool",
    "string",
    "bytes",
    "uint32",
    "sfixed32",
    "sfixed64",
    "sint32",
    "sint64",
]


def _field(message, name, kind, label=1, **more):
    number = len(message.field) + 1
    made = message.field.add(name=name, number=number, label=label, **more)
    made.type = descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    return made


@functools.cache
def described():
    """A FileDescriptorProto with the message t.M."""
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t")
    m = file.message_type.add(name="M")
    kinds = m.enum_type.add(name="E")
    kinds.value.add(name="A", number=0)
    kinds.value.add(name="B", number=3)
    m.nested_type.add(name="N")
    m.nested_type.add(name="G")
    for inner in m.nested_type:
        _field(inner, "x", "int32")
    for kind in _TYPES:
        _field(m, kind, kind)
        _field(m, f"many_{kind}", kind, 3)
    for kind in ("int32", "float", "bool", "double", "sint32", "fixed64"):
        _field(m, f"packed_{kind}", kind, 3).options.packed = True
    _field(m, "enum", "enum", type_name=".t.M.E")
    _field(m, "many_enum", "enum", 3, type_name=".t.M.E")
    _field(m, "message", "message", type_name=".t.M.N")
    _field(m, "many_message", "message", 3, type_name=".t.M.N")
    _field(m, "group", "group", type_name=".t.M.G")
    for kind, value in {
        "int32": "42",
        "string": "hey",
        "float": "1.5",
        "bool": "true",
        "sint32": "-7",
        "sint64": "-9",
        "uint64": "18446744073709551615",
    }.items():
        _field(m, f"default_{kind}", kind, default_value=value)
    _field(m, "default_enum", "enum", type_name=".t.M.E", default_value="B")
    m.extension_range.add(start=1000, end=2000)
    extension = file.extension.add(name="ext", number=1000, type=5, label=1)
    extension.extendee = ".t.M"
    return file


def files(*more):
    return descriptor_pb2.FileDescriptorSet(file=[described(), *more])


SOURCE = b"bytes://" + files().SerializeToString()


@functools.cache
def message_class():
    pool = descriptor_pool.DescriptorPool()
    pool.Add(described())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.M"))


def tag(name, wire_type):
    """The bytes before a value of the field."""
    number = message_class().DESCRIPTOR.fields_by_name[name].number
    value, out = number * 8 + wire_type, b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def messages():
    """Two messages, of which the second has little."""
    m = message_class()
    first = m(
        int32=-5,
        many_int32=[1, 2, 3],
        string="x",
        many_string=["a", "b"],
        packed_int32=[7, 8],
        enum=3,
        uint64=2**63 + 1,
        many_uint64=[1, 2**64 - 1],
        message=m.N(x=4),
        many_message=[m.N(x=1), m.N()],
        float=1.25,
        many_double=[1.0, 2.0],
        bool=True,
        uint32=2**32 - 1,
        sint32=-7,
        sint64=-(2**40),
        fixed64=2**64 - 1,
        fixed32=2**32 - 1,
        sfixed32=-1,
        sfixed64=-2,
        bytes=b"\xff",
    )
    second = m(many_int32=[9], packed_float=[1.0, 2.0, 3.0])
    return [first.SerializeToString(), second.SerializeToString()]
