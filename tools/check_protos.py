"""Compares our proto files with those of an installed TensorFlow.

Names, numbers, types and labels of every message and enum of ours must be
those of TensorFlow's own descriptors, and no field may be missing.

Usage: python check_protos.py DESCRIPTOR_SET
where DESCRIPTOR_SET is build/src/headrace_protos.desc, run by a Python that
has TensorFlow. Prints the differences; exits 1 when there is one.
"""

import importlib
import sys

from google.protobuf import descriptor_pb2, descriptor_pool


def load_upstream():
    """TensorFlow's descriptor pool, with the protos it loads late."""
    importlib.import_module("tensorflow")
    for name in ("saved_tensor_slice", "event"):
        importlib.import_module(f"tensorflow.core.util.{name}_pb2")
    for name in (
        "fingerprint",
        "queue_runner",
        "tensorflow_server",
        "tensor_bundle",
        "named_tensor",
    ):
        importlib.import_module(f"tensorflow.core.protobuf.{name}_pb2")
    importlib.import_module("tensorflow.core.util.test_log_pb2")
    for name in ("kernel_def", "api_def", "log_memory"):
        importlib.import_module(f"tensorflow.core.framework.{name}_pb2")
    importlib.import_module("tensorflow.python.training.checkpoint_state_pb2")
    return descriptor_pool.Default()


def field_facts(field):
    return (
        field.name,
        field.number,
        field.type,
        field.label,
        field.type_name,
        field.HasField("oneof_index"),
        field.options.packed,
    )


def compare_message(ours, theirs, name, report):
    mine = {field_facts(f) for f in ours.field}
    other = {field_facts(f) for f in theirs.field}
    for facts in mine ^ other:
        report(f"{name}: {'only ours' if facts in mine else 'missing'}: {facts}")
    nested = {m.name: m for m in theirs.nested_type}
    for m in ours.nested_type:
        if m.name not in nested:
            report(f"{name}.{m.name}: not in TensorFlow")
        else:
            compare_message(m, nested[m.name], f"{name}.{m.name}", report)
    enums = {e.name: e for e in theirs.enum_type}
    for e in ours.enum_type:
        compare_enum(e, enums[e.name], f"{name}.{e.name}", report)


def compare_enum(ours, theirs, name, report):
    mine = {(v.name, v.number) for v in ours.value}
    other = {(v.name, v.number) for v in theirs.value}
    for facts in mine ^ other:
        report(f"{name}: {'only ours' if facts in mine else 'missing'}: {facts}")


def main(path):
    pool, differences, seen = load_upstream(), [], 0
    with open(path, "rb") as f:
        files = descriptor_pb2.FileDescriptorSet.FromString(f.read()).file
    for file in files:
        if not file.name.startswith("tensorflow/"):
            continue
        for kind, compare, find, proto in (
            (
                file.message_type,
                compare_message,
                pool.FindMessageTypeByName,
                descriptor_pb2.DescriptorProto,
            ),
            (
                file.enum_type,
                compare_enum,
                pool.FindEnumTypeByName,
                descriptor_pb2.EnumDescriptorProto,
            ),
        ):
            for item in kind:
                name, theirs = f"{file.package}.{item.name}", proto()
                try:
                    find(name).CopyToProto(theirs)
                except KeyError:
                    differences.append(f"{name}: not in TensorFlow")
                    continue
                compare(item, theirs, name, differences.append)
                seen += 1
    print("\n".join(differences + [f"{seen} compared, {len(differences)} differences"]))
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
