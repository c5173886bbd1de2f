"""Python's operators of tensors, and the public functions that they stand for."""

TWO_SIDED = {
    "add": "math.add",
    "sub": "math.subtract",
    "mul": "math.multiply",
    "truediv": "math.truediv",
    "floordiv": "math.floordiv",
    "mod": "math.floormod",
    "pow": "math.pow",
    "and": "math.logical_and",
    "or": "math.logical_or",
    "xor": "math.logical_xor",
    "matmul": "linalg.matmul",
}
# (Not "eq" and "ne", which have rules of their own.)
ONE_SIDED = {
    "lt": "math.less",
    "le": "math.less_equal",
    "gt": "math.greater",
    "ge": "math.greater_equal",
    "neg": "math.negative",
    "abs": "math.abs",
    "invert": "math.logical_not",
}


def attach(kind, make):
    """Gives a class all of them: the method `__name__` is make("__name__", public name,
    whether the operands come the other way round)."""
    for name, public in TWO_SIDED.items():
        for prefix, swapped in (("", False), ("r", True)):
            full = f"__{prefix}{name}__"
            setattr(kind, full, make(full, public, swapped))
    for name, public in ONE_SIDED.items():
        setattr(kind, f"__{name}__", make(f"__{name}__", public, False))
