"""What is counted of operations, and how it is printed."""

# Fields of GraphNodeProto, in the order in which profiles print them.
FIELDS = (
    "parameters",
    "float_ops",
    "requested_bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
    "exec_micros",
    "accelerator_exec_micros",
    "cpu_exec_micros",
    "run_count",
    "definition_count",
)
# The options' names of them.
NAMES = {
    "params": "parameters",
    "float_ops": "float_ops",
    "bytes": "requested_bytes",
    "peak_bytes": "peak_bytes",
    "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes",
    "micros": "exec_micros",
    "accelerator_micros": "accelerator_exec_micros",
    "cpu_micros": "cpu_exec_micros",
    "occurrence": "run_count",
}


class Stats:
    """A count of each field."""

    __slots__ = FIELDS

    def __init__(self, **counts):
        for field in FIELDS:
            setattr(self, field, counts.get(field, 0))

    def add(self, other):
        """Adds another's counts."""
        for field in FIELDS:
            setattr(self, field, getattr(self, field) + getattr(other, field))

    def write(self, proto, prefix=""):
        """Sets the proto's fields of these names behind the prefix, as far as it has
        them and there is something to say."""
        known = proto.DESCRIPTOR.fields_by_name
        for field in FIELDS:
            value = getattr(self, field)
            if value and prefix + field in known:
                setattr(proto, prefix + field, value)


def number(n):
    """1234 as "1.23k"."""
    for size, unit in ((1e9, "b"), (1e6, "m"), (1e3, "k")):
        if n >= size:
            return f"{n / size:.2f}{unit}"
    return str(n)


def memory(n):
    """Bytes: 1234 as "1.23KB"."""
    for size, unit in ((1e6, "MB"), (1e3, "KB")):
        if n >= size:
            return f"{n / size:.2f}{unit}"
    return f"{n}B"


def time(micros):
    """Microseconds: 1234 as "1.23ms"."""
    for size, unit in ((1e6, "sec"), (1e3, "ms")):
        if micros >= size:
            return f"{micros / size:.2f}{unit}"
    return f"{micros}us"


def shape(sizes):
    """[2, 3] as "2x3"."""
    return "x".join(map(str, sizes))
