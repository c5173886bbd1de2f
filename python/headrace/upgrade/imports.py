"""Imports of TensorFlow in a program, and what they say of the names in it."""

import ast

_UNALIASED = (
    "The tf_upgrade_v2 script detected an unaliased `import tensorflow`. The script can "
    "only run when importing with `import tensorflow as tf`."
)


def _imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node


def check(tree, source, upgrade_compat_v1):
    """(notes, whether names of `tf` are to be rewritten). `import tensorflow.compat.v1 as
    tf` becomes `import tensorflow as tf`."""
    notes = []
    goes_on = True
    for node in sorted(_imports(tree), key=lambda n: (n.lineno, n.col_offset)):
        for alias in node.names:
            full = alias.name
            if isinstance(node, ast.ImportFrom):
                full = f"{node.module}.{alias.name}"
            at = (node.lineno, node.col_offset)
            if full == "tensorflow" and alias.asname is None:
                notes.append((*at, "ERROR", _UNALIASED))
                goes_on = False
            if alias.asname != "tf" or not full.startswith("tensorflow.compat."):
                continue
            if (
                full == "tensorflow.compat.v1"
                and isinstance(node, ast.Import)
                and upgrade_compat_v1
            ):
                start, end = source.span(alias)
                source.replace(start, end, "tensorflow as tf")
                continue
            notes.append(
                (
                    *at,
                    "INFO",
                    f"Not upgrading symbols because `{full}` was directly imported as "
                    "`tf`.",
                )
            )
            goes_on = False
    return notes, goes_on


def _old(module):
    """Whether it is to come from tensorflow.compat.v1."""
    parts = module.split(".")
    return parts[0] == "tensorflow" and parts[1:2] not in (["contrib"], ["compat"])


def to_compat_v1(tree, source):
    """Every import of TensorFlow becomes one of tensorflow.compat.v1; the notes."""
    notes = []
    for node in sorted(_imports(tree), key=lambda n: (n.lineno, n.col_offset)):
        new = _new_import(node)
        if new is None:
            continue
        start, end = source.span(node)
        source.replace(start, end, new)
        # The log shows the whole lines.
        first = source.old.rfind("\n", 0, start) + 1
        last = source.old.find("\n", end)
        last = len(source.old) if last < 0 else last + 1
        before, after = source.old[first:start], source.old[end:last]
        old_line = source.old[first:last]
        notes.append(
            (
                *(node.lineno, node.col_offset, "INFO"),
                f"Changed import from {old_line!r} to {before + new + after!r}.",
            )
        )
    return notes


def _new_import(node):
    """The import as it is to be; None where nothing changes."""
    if isinstance(node, ast.ImportFrom):
        if node.level or node.module is None or not _old(node.module):
            return None
        node.module = "tensorflow.compat.v1" + node.module[len("tensorflow") :]
        if node.module == "tensorflow.compat.v1":
            kept = [a.name for a in node.names]
            if "contrib" in kept or "compat" in kept:
                return None
        return ast.unparse(node)
    changed = False
    for alias in node.names:
        if not _old(alias.name):
            continue
        changed = True
        rest = alias.name[len("tensorflow") :]
        if alias.asname is None and not rest:
            alias.asname = "tensorflow"
        alias.name = "tensorflow.compat.v1" + rest
    return ast.unparse(node) if changed else None
