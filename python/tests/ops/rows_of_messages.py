"""Rows of ops on serialised messages. Values are TensorFlow 2.21's."""

import message_cases
import numpy as np
from rows import formula

_OBJECTS = {"dtype": object}


@formula("DecodeProtoV2")
def fields_of_messages(tf, raw):
    def decode(given, wanted, **more):
        found = raw.DecodeProtoV2(
            **{
                "bytes": message_cases.messages(),
                "message_type": "t.M",
                "field_names": list(given),
                "output_types": [tf.as_dtype(t) for t in given.values()],
                "descriptor_source": message_cases.SOURCE,
                "message_format": "binary",
                "sanitize": False,
                **more,
            }
        )
        results = [found.sizes, *found.values]
        return [x for pair in zip(results, wanted, strict=True) for x in pair]

    numbers = {"int32": "int32", "many_int32": "int64", "packed_int32": "int32"}
    numbers |= {"packed_float": "double", "sint64": "int64", "fixed32": "uint64"}
    pairs = decode(
        numbers,
        [
            np.int32([[1, 3, 2, 0, 1, 1], [0, 1, 0, 3, 0, 0]]),
            np.int32([[-5], [0]]),
            np.int64([[1, 2, 3], [9, 0, 0]]),
            np.int32([[7, 8], [0, 0]]),
            np.float64([[0, 0, 0], [1, 2, 3]]),
            np.int64([[-(2**40)], [0]]),
            np.uint64([[2**32 - 1], [0]]),
        ],
    )
    texts = {"many_string": "string", "message": "string", "default_string": "string"}
    pairs += decode(
        texts,
        [
            np.int32([[2, 1, 0], [0, 0, 0]]),
            np.array([[b"a", b"b"], [b"", b""]], **_OBJECTS),
            np.array([[b"\x08\x04"], [b""]], **_OBJECTS),
            np.array([[b"hey"], [b"hey"]], **_OBJECTS),
        ],
    )
    return pairs + decode(
        {"many_int32": "int32", "default_int32": "int32"},
        [np.int32([[2, 0]]), np.int32([[4, 5]]), np.int32([[42]])],
        bytes=["many_int32: [4, 5]"],
        message_format="text",
    )


@formula("EncodeProto")
def messages_of_fields(tf, raw):
    def encode(sizes, fields, wanted):
        found = raw.EncodeProto(
            sizes=np.int32(sizes),
            values=[tf.constant(v, t) for v, t in fields.values()],
            field_names=list(fields),
            message_type="t.M",
            descriptor_source=message_cases.SOURCE,
        )
        return [found, np.array(wanted, **_OBJECTS)]

    numbers = {
        "many_int32": ([[6, 7], [-1, 0]], tf.int32),
        "bool": ([[True], [False]], tf.bool),
        "int32": ([[3], [4]], tf.int64),
    }
    pairs = encode(
        [[2, 1, 1], [1, 0, 1]],
        numbers,
        [b"H\x03P\x06P\x07x\x01", b"H\x04P" + b"\xff" * 9 + b"\x01"],
    )
    packed = {
        "packed_int32": ([[1, 2, 3]], tf.int32),
        "many_string": ([["a", "b"]], tf.string),
    }
    first = message_cases.tag("many_string", 2) + b"\x01"
    last = message_cases.tag("packed_int32", 2) + b"\x03\x01\x02\x03"
    wanted = first + b"a" + first + b"b" + last
    return pairs + encode([[3, 2]], packed, [wanted])


@formula("DecodeJSONExample")
def examples_in_json(tf, raw):
    text = (
        '{"features": {"feature": {"a": {"int64List": {"value": ["1", 2, -3]}},'
        ' "b": {"bytesList": {"value": ["aGk="]}},'
        ' "c": {"floatList": {"value": [1.5, "Infinity"]}}}}}'
    )
    binary = raw.DecodeJSONExample(json_examples=[[text], ["{}"]])
    features = {
        "a": tf.io.FixedLenFeature([3], tf.int64),
        "b": tf.io.FixedLenFeature([], tf.string),
        "c": tf.io.FixedLenFeature([2], tf.float32),
    }
    found = tf.io.parse_single_example(binary[0, 0], features)
    pairs = [found["a"], np.int64([1, 2, -3]), found["b"], np.array(b"hi", **_OBJECTS)]
    pairs += [found["c"], np.float32([1.5, np.inf])]
    return [*pairs, binary[1], np.array([b""], **_OBJECTS)]
