"""Views as text, in TensorFlow's words and columns."""

from headrace.v1.profiler import stats, views

_DOCS = {
    "scope": "scope: The nodes in the model graph are organized by their names, which "
    "is hierarchical like filesystem.",
    "op": "op: The nodes are operation kernel type, such as MatMul, Conv2D. Graph nodes "
    "belonging to the same type are aggregated together.",
    "code": "code: When python trace is available, the nodes are python lines and their "
    "are organized by the python call stack.",
}
_CPU = (
    "cpu execution time: The time from the start to the end of the operation. It's the "
    "sum of actual cpu run time plus the time that it spends waiting if part of "
    "computation is launched asynchronously."
)
_ACCELERATOR = (
    "accelerator execution time: Time spent executing on the accelerator. This is "
    "normally measured by the actual hardware library."
)
_SELECTED_DOCS = {
    "accelerator_micros": _ACCELERATOR,
    "bytes": "requested bytes: The memory requested by the operation, accumulatively.",
    "cpu_micros": _CPU,
    "device": "device: which device is placed on.",
    "float_ops": "flops: Number of float operations. Note: Please read the "
    "implementation for the math behind it.",
    "input_shapes": "input shape: The shape of input tensors",
    "micros": "total execution time: Sum of accelerator execution time and cpu "
    f"execution time.\n{_CPU}\n{_ACCELERATOR}",
    "occurrence": "occurrence: The number of times it occurs",
    "op_types": "op_types: The attributes of the operation, includes the Kernel name "
    "device placed on and user-defined strings.",
    "output_bytes": "output bytes: The memory that is output from the operation (not "
    "necessarily allocated by the operation)",
    "params": "param: Number of parameters (in the Variable).",
    "peak_bytes": "peak bytes: The peak amount of memory that the operation is holding "
    "at some point.",
    "residual_bytes": "residual bytes: The memory not de-allocated after the operation "
    "finishes.",
    "tensor_value": "tensor_value: Not supported now.",
}
# Columns in their order: option, title, how a number is written. Titles of trees;
# chains have the last four columns behind the others, params and float_ops before them.
_COLUMNS = {
    "params": ("# parameters", stats.number, " params"),
    "float_ops": ("# float_ops", stats.number, " flops"),
    "bytes": ("requested bytes", stats.memory, ""),
    "peak_bytes": ("peak bytes", stats.memory, ""),
    "residual_bytes": ("residual bytes", stats.memory, ""),
    "output_bytes": ("output bytes", stats.memory, ""),
    "micros": ("total execution time", stats.time, ""),
    "accelerator_micros": ("accelerator execution time", stats.time, ""),
    "cpu_micros": ("cpu execution time", stats.time, ""),
}
_LAST = {
    "device": "assigned devices",
    "op_types": "op types",
    "occurrence": "op count (run|defined)",
    "input_shapes": "input shapes",
}


def _columns(options):
    """The columns of numbers that are shown; those of times come together."""
    chosen = set(options.select)
    if "micros" in chosen:
        chosen |= {"accelerator_micros", "cpu_micros"}
    return [name for name in _COLUMNS if name in chosen]


def _last(options):
    return [name for name in _LAST if name in options.select]


def heading(command, options):
    """What stands above a view: what its columns are."""
    lines = ["", "Doc:", _DOCS[views.title_of(command)]]
    selected = sorted(set(options.select))
    lines += [_SELECTED_DOCS.get(s, f"Unknown select: {s}") for s in selected] or [""]
    columns = _columns(options)
    if command == "op":
        columns = [c for c in columns if c not in ("params", "float_ops")]
        columns += [c for c in ("params", "float_ops") if c in options.select]
    titles = [_COLUMNS[c][0] for c in columns] + [_LAST[c] for c in _last(options)]
    if command == "op":
        titles = [t.replace("op count", "op occurrence") for t in titles]
    lines += ["", "Profile:", "node name | " + " | ".join(titles)]
    return "\n".join(lines) + "\n"


def _own(node, text):
    return text if node.accounted else "--"


def _tree_line(node, options):
    """The counts of a node: its own and the totals."""
    parts = []
    entry = node.entry
    for name in _columns(options):
        _, write, unit = _COLUMNS[name]
        field = stats.NAMES[name]
        own = _own(node, write(getattr(node.own, field)))
        part = f"{own}/{write(getattr(node.total, field))}{unit}"
        if name == "params" and entry is not None and entry.shape is not None:
            part = f"{stats.shape(entry.shape)}, {part}"
        parts.append(part)
    devices = entry.devices(options.step) if entry is not None else []
    for name in _last(options):
        if name == "device":
            parts += devices[:1]
        elif name == "op_types":
            parts.append("|".join(sorted(node.types)))
        elif name == "occurrence":
            counts = []
            for field in ("run_count", "definition_count"):
                own = _own(node, str(getattr(node.own, field)))
                counts.append(f"{own}/{getattr(node.total, field)}")
            parts.append("|".join(counts))
        else:
            parts.append(views.input_text(entry) if entry is not None else "")
    return f"{node.name} ({', '.join(parts)})"


def tree_text(view, options):
    """A tree, a line a node, those below a node further in."""
    lines, open_nodes = [], [(view.root, 0)]
    while open_nodes:
        node, depth = open_nodes.pop()
        lines.append("  " * depth + _tree_line(node, options))
        open_nodes += [(child, depth + 1) for child in reversed(node.shown)]
    return "\n".join(lines) + "\n"


def _shares(node, root, field, text):
    """A count with its share, and that of all from the node on, of the whole."""
    whole = getattr(root.total, field)
    shares = [
        100 * getattr(part, field) / whole if whole else 0.0
        for part in (node.total, node.own)
    ]
    return f"{text} ({shares[0]:.2f}%, {shares[1]:.2f}%)"


def _chain_line(node, root, options):
    parts = []
    names = _columns(options)
    names = [n for n in names if n not in ("params", "float_ops")]
    names += [n for n in ("params", "float_ops") if n in options.select]
    for name in names:
        field = stats.NAMES[name]
        text = _COLUMNS[name][1](getattr(node.own, field))
        if name in ("params", "float_ops"):
            text += f" {name}"
        parts.append(f"{_shares(node, root, field, text):>30}")
    for name in _last(options):
        if name == "device":
            # With an empty name for operations that did not run.
            found = ("".join(e.devices(options.step)[:1]) for e in node.entries)
            parts.append("|".join(sorted(set(found))))
        elif name == "op_types":
            parts.append("|".join(sorted(node.types)))
        elif name == "occurrence":
            parts.append(f"{f'{node.own.run_count}|{len(node.entries)}':>10}")
    return f"{node.name:<25}{', '.join(parts)}"


def _by_inputs(node, options):
    """How often a kind has inputs of which shapes, and how long it took with them."""
    kinds = {}
    for entry in node.entries:
        shapes = entry.input_shapes()
        text = ",\t".join(f"{i}:{stats.shape(s)}" for i, s in shapes.items())
        row = kinds.setdefault(text, stats.Stats())
        row.add(entry.stats(options.step))
    lines = [
        f"input_type: {text}\t(run*{row.run_count}|defined*{row.definition_count})"
        f"\texec_time: {stats.time(row.exec_micros)}"
        for text, row in sorted(kinds.items())
    ]
    return "\n" + "\n".join(lines) + "\n"


def chain_text(view, options):
    """A chain, a line a kind of operation."""
    lines = []
    for node in view.shown:
        line = _chain_line(node, view.root, options)
        if "input_shapes" in options.select:
            line += "\n" + _by_inputs(node, options)
        lines.append(line)
    return "\n".join(lines) + "\n" if lines else ""


def text_of(command, view, options):
    """What is printed of a view, without what stands around it."""
    body = chain_text if command == "op" else tree_text
    return heading(command, options) + body(view, options)
