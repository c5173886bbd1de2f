"""Cuts a program down to the statements that still show its failure."""

import ast
import copy

BODIES = ("body", "orelse", "finalbody")


def _places(tree):
    """(statement's holder, field, index) of every statement, outermost first."""
    for node in ast.walk(tree):
        for field in BODIES:
            held = getattr(node, field, None)
            if isinstance(held, list):
                for i in range(len(held)):
                    yield node, field, i


def _variants(tree):
    """Smaller programs: a statement left out, or replaced by its own body."""
    count = len(list(_places(tree)))
    for number in range(count):
        for way in ("drop", *BODIES):
            new = copy.deepcopy(tree)
            node, field, i = list(_places(new))[number]
            held = getattr(node, field)
            inner = [] if way == "drop" else getattr(held[i], way, [])
            if way != "drop" and (not isinstance(inner, list) or not inner):
                continue
            if way != "drop" and isinstance(held[i], (ast.FunctionDef, ast.ClassDef)):
                continue
            held[i : i + 1] = inner
            if not held and field == "body" and not isinstance(node, ast.Module):
                held.append(ast.Pass())
            yield ast.unparse(ast.fix_missing_locations(new))


def shrink(source, still, limit=400):
    """The shortest program found for which `still(source)` holds."""
    left = limit
    while True:
        for variant in _variants(ast.parse(source)):
            if len(variant) >= len(source):
                continue
            left -= 1
            if still(variant):
                source = variant
                break
            if not left:
                return source
        else:
            return source
