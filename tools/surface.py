"""What programs and files rely on: public names with their parameters and defaults,
functions and constants of the C interface, operations, and fields of the proto messages.

Usage: tools/surface.py [--write [VERSION]]

Prints it, or writes tests/golden/surface/VERSION.txt, of this tree's version where none
is named: the promise of that version (docs/compatibility.md), with which
python/tests/test_surface.py compares the tree.
"""

import argparse
import inspect
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "tests", "golden", "surface")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def names(tf):
    """Lines of the public names: "name tf.x(parameters)"."""
    from headrace import _names

    lines = []

    def walk(space, prefix):
        for name in dir(space):
            if name.startswith("_"):
                continue
            full = f"{prefix}.{name}"
            try:
                value = getattr(space, name)
            except (AttributeError, ImportError):
                continue  # of an optional package that is not installed
            if _is_namespace(value):
                # Modules are the package's own; others are second names.
                public = isinstance(value, _names.Namespace)
                if public and name != "raw_ops" and value.__name__.endswith(full[2:]):
                    walk(value, full)
                continue
            lines.append(f"name {full}{parameters(value)}")

    walk(tf, "tf")
    return lines


def _is_namespace(value):
    return type(value).__name__ in ("Namespace", "module", "_Package")


def parameters(value):
    """What a name takes."""
    if not callable(value):
        return f": {type(value).__name__}"
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(...)"
    return " ".join(_ADDRESS.sub("", text).split())


def operations():
    """Lines of the operations: "op Name(inputs) -> outputs; attributes"."""
    from headrace._load import _headrace
    from headrace.framework.support import protos

    lines = []
    for name in sorted(_headrace.op_names()):
        if name.startswith("_"):
            continue
        op = protos.OpDef.FromString(_headrace.export_op_named(name))
        takes = ", ".join(_argument(a) for a in op.input_arg)
        gives = ", ".join(_argument(a) for a in op.output_arg)
        attrs = "".join(f"; {_attribute(a)}" for a in op.attr)
        lines.append(f"op {name}({takes}) -> ({gives}){attrs}")
    return lines


def _argument(arg):
    if arg.number_attr:
        kind = f"{arg.number_attr} * {arg.type_attr or arg.type}"
    else:
        kind = arg.type_list_attr or arg.type_attr or str(arg.type)
    return f"{arg.name}: {'Ref ' if arg.is_ref else ''}{kind}"


def _attribute(attr):
    text = f"{attr.name}: {attr.type}"
    if attr.HasField("default_value"):
        default = " ".join(str(attr.default_value).split())
        text += f" = {default or 'empty'}"
    return text


def messages():
    """Lines of the fields of messages: "field Message.name = number type"."""
    from google.protobuf import descriptor_pb2
    from headrace import _protos as protos

    lines, pool, repeated = [], protos._pool(), {}

    def walk(message):
        own = descriptor_pb2.DescriptorProto()
        message.CopyToProto(own)
        repeated[message.full_name] = {f.name for f in own.field if f.label == 3}
        for f in message.fields:
            kind = f.message_type or f.enum_type
            kind = kind.full_name if kind is not None else f"#{f.type}"
            many = "repeated " if f.name in repeated[message.full_name] else ""
            lines.append(f"field {f.full_name} = {f.number} {many}{kind}")
        for inner in message.nested_types:
            walk(inner)
        for enum in message.enum_types:
            values(enum)

    def values(enum):
        for v in enum.values:
            lines.append(f"value {enum.full_name}.{v.name} = {v.number}")

    for path in protos._state["files"]:
        file = pool.FindFileByName(path)
        for message in file.message_types_by_name.values():
            walk(message)
        for enum in file.enum_types_by_name.values():
            values(enum)
    return lines


def c_interface():
    """Lines of the C headers: "symbol TF_X: RESULT (TYPES)", "constant TF_X = VALUE"."""
    lines = []
    folder = os.path.join(ROOT, "include", "tensorflow", "c")
    for at, _, files in os.walk(folder):
        for file in files:
            with open(os.path.join(at, file), encoding="utf-8") as f:
                lines += c_lines(f.read())
    return lines


def c_lines(header):
    """Those of one header's text."""
    header = re.sub(r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*", "", header, flags=re.S | re.M)
    header = " ".join(header.split())
    lines = []
    for found in re.finditer(
        r"TF_CAPI_EXPORT (?:extern )?([^;{]*?)(\w+)\(([^;]*)\);", header
    ):
        result, name, parameters = found.groups()
        types = ", ".join(_c_type(p) for p in _split(parameters))
        lines.append(f"symbol {name}: {_joined(result)} ({types})")
    for body in re.findall(r"\benum [\w ]*\{([^}]*)\}", header):
        value = -1
        for constant in filter(None, (c.strip() for c in body.split(","))):
            name, _, given = (part.strip() for part in constant.partition("="))
            known = re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", given)
            value = int(given, 0) if known else value + 1
            if given and not known:
                value = given  # another constant's
            lines.append(f"constant {name} = {value}")
            value = value if isinstance(value, int) else -1
    return lines


def _c_type(parameter):
    """A parameter without its name, which callers do not see."""
    if "(" in parameter:
        return _joined(parameter)
    array = re.search(r"\[.*\]$", parameter)
    words = re.findall(r"\w+|\*", parameter.partition("[")[0])
    kinds = {"const", "struct", "enum", "unsigned", "signed", "long", "short"}
    named = [w for w in words if w not in kinds and w != "*"]
    if len(named) > 1 and words[-1] == named[-1]:
        words.pop()
    elif (
        len(named) == 1 and words[-1] == named[-1] and {"unsigned", "signed"} & {*words}
    ):
        words.pop() if named[-1] not in ("char", "int") else None
    return _joined(" ".join(words)) + (array.group() if array else "")


def _joined(text):
    return re.sub(r" ?\* ?", "*", " ".join(text.split())).strip()


def surface():
    """All lines, sorted."""
    import headrace as tf

    return sorted({*names(tf), *c_interface(), *operations(), *messages()})


def broken(before, now):
    """Of the lines that a version promised, those that do not hold any more. Parameters
    may be added behind the others, with defaults."""
    kept = {line.split("(")[0]: line for line in now}
    return [
        line
        for line in before
        if line not in now and not _takes_more(line, kept.get(line.split("(")[0]))
    ]


def numbers(version):
    """(MAJOR, MINOR, PATCH) of a version's text."""
    return tuple(int(part) for part in version.split("."))


def breaches(old, before, new, now):
    """What the step from version `old`, which promised the lines `before`, to `new`,
    which has the lines `now`, does that it must not: sentences, each with its lines."""
    before, now = ({x for x in v if not _is_no_promise(x)} for v in (before, now))
    major, minor, patch = old
    following = (major + 1, 0, 0), (major, minor + 1, 0), (major, minor, patch + 1)
    found = {}
    if new != old and new not in following:
        # What is compared would not be what one version changed.
        found[f"version {new} does not follow {old}, the newest list's"] = []
    if new[0] <= major:
        found["only a new MAJOR may remove or change"] = broken(sorted(before), now)
    if new[:2] <= old[:2]:
        found["only a new MINOR may add"] = sorted(now - before)
    return {
        sentence: lines
        for sentence, lines in found.items()
        if lines or sentence.startswith("version")
    }


def _is_no_promise(line):
    return line.startswith("name tf.experimental.")


def _takes_more(old, new):
    if new is None or not old.startswith("name ") or "(" not in new:
        return False
    old, new = (
        _split(line.partition("(")[2].rpartition(")")[0]) for line in (old, new)
    )
    more = [p for p in new if p not in old]
    return [p for p in new if p in old] == old and all("=" in p for p in more)


def _split(parameters):
    """Parameters, at the commas that no bracket encloses."""
    parts, depth = [""], 0
    for c in parameters:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", metavar="VERSION", nargs="?", const="")
    write = parser.parse_args().write
    sys.path.insert(0, os.path.join(ROOT, "python"))
    import headrace as tf

    lines = surface()
    if write is None:
        print("\n".join(lines))
        return
    os.makedirs(FOLDER, exist_ok=True)
    path = os.path.join(FOLDER, (write or tf.version.HEADRACE_VERSION) + ".txt")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    print(f"surface: {len(lines)} lines in {os.path.relpath(path, ROOT)}")


if __name__ == "__main__":
    main()
