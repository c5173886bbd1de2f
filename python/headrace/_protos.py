"""The public proto messages, in a descriptor pool of their own.

A pool of their own, so that this package, TensorFlow and TensorBoard can be
imported side by side. Wants the `protobuf` package, on first use only, and no engine.
"""

import os

FILE = os.path.join(os.path.dirname(__file__), "headrace_protos.desc")
_PACKAGES = ("tensorflow.", "tensorflow.serving.", "tensorflow.error.")
_PACKAGES += ("tensorflow.tfprof.",)
_state = {}


def _pool():
    if "pool" in _state:
        return _state["pool"]
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise ImportError(
            "proto messages need the protobuf package: pip install protobuf"
        ) from None
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet()
    with open(FILE, "rb") as f:
        files.ParseFromString(f.read())
    for file in files.file:
        pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(
            file.SerializeToString()
        )
    _state["pool"] = pool
    _state["factory"] = message_factory
    _state["files"] = [f.name for f in files.file]
    return pool


def message(full_name):
    """The class of a message by its full name ("tensorflow.GraphDef")."""
    pool = _pool()
    cls = _state["factory"].GetMessageClass(pool.FindMessageTypeByName(full_name))
    if cls.__doc__ is None:
        cls.__module__, cls.__doc__ = __name__, _about(cls.DESCRIPTOR)
        for name, nested in cls.DESCRIPTOR.nested_types_by_name.items():
            if not hasattr(cls, name):  # the pure-Python protobuf leaves them out
                setattr(cls, name, message(nested.full_name))
    return cls


def _about(descriptor):
    """What help() says of a message: its fields, as .proto files have them.

    Of the descriptor itself: the pure-Python protobuf has no DescriptorProto of what a
    pool was given.
    """
    from google.protobuf import descriptor_pb2

    words = descriptor_pb2.FieldDescriptorProto
    lines = [f"The proto message {descriptor.full_name}. Its fields:", ""]
    for field in descriptor.fields:
        own = field.message_type or field.enum_type
        kind = words.Type.Name(field.type).removeprefix("TYPE_").lower()
        kind = own.full_name if own is not None else kind
        many = "repeated " if _repeats(field) else ""
        lines.append(f"    {many}{kind} {field.name} = {field.number}")
    return "\n".join(lines)


def _repeats(field):
    # Since protobuf 6.31, which warns of label.
    found = getattr(field, "is_repeated", None)
    return field.label == field.LABEL_REPEATED if found is None else found


def of_json(text, message):
    """The message, filled from its JSON form; json_format's ParseError for others."""
    from google.protobuf import json_format

    return json_format.Parse(text, message)


def to_json(message):
    """The JSON form of a message."""
    from google.protobuf import json_format

    return json_format.MessageToJson(message)


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    pool = _pool()
    for package in _PACKAGES:
        try:
            pool.FindMessageTypeByName(package + name)
        except KeyError:
            continue
        cls = message(package + name)
        globals()[name] = cls
        return cls
    raise AttributeError(f"there is no proto message '{name}'")
