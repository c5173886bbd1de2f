"""Writes whole programs: a module with helpers, a class, and the function `f`."""

import dataclasses
import random

from .expressions import Expressions
from .scope import Scope
from .statements import Statements, indented
from .wide import PAIR, WideStatements

# What `f(x, n, v, k)` is called with: a float, an int, a vector, and a Python int,
# which makes a trace of its own: every fourth program gets more than one.
INPUTS = (
    (0.75, 3, (0.5, -1.0, 2.0, 0.25), 2),
    (-1.25, 0, (1.5, 0.75, -0.5, -2.0), 2),
    (2.5, 5, (-0.125, 0.5, 0.25, 1.0), 2),
    (0.375, 2, (3.0, -0.75, 0.5, 1.25), 1),
)

# Programs of larger seeds have what `wide` writes besides.
LAST_NARROW = 1000

# Seeds whose first programs are outside TensorFlow's language: an inner function
# reads a name that exists only after a conditional return.
OUTSIDE = {590}

_BOX = """
class Box:
    def __init__(self, s, i):
        self.s = s
        self.i = i

    def mixed(self, t):
        if t > self.s:
            return tf.sin(t) + self.s * 0.25
        return self.limited(t * 0.5)

    def limited(self, t, most=1.0):
        turns = 0
        while t > most and turns < 3:
            t = t * 0.5 + 0.125
            turns += 1
        return t
"""

_KNOWN_HELPERS = {
    "halved": """
def halved(t, depth):
    if depth == 0:
        return t
    if t > 0.5:
        return halved(t * 0.5, depth - 1)
    return -t
""",
    "applied": """
def applied(g, *args, scale=0.5, **more):
    r = g(*args) * scale
    for name in sorted(more):
        r = r + more[name] * 0.25
    return r
""",
    "counted": """
def counted(t, at_most):
    turns = 0
    for i in tf.range(at_most):
        if t > 1.0:
            continue
        if t < -2.0:
            break
        t = t + 0.25
        turns = i + 1
    return t, turns
""",
    "doubled": """
def doubled(g):
    @functools.wraps(g)
    def twice(*args):
        return g(g(*args), args[-1])

    return twice


@doubled
def drawn(s, t):
    if s > t:
        return (s + t) * 0.5
    else:
        return s * 0.25 - 0.5
""",
}

_KNOWN_CALLS = {
    "halved": "halved({0}, 3)",
    "applied": "applied(lambda a, b: (a if a > b else b), {0}, {1}, w={1})",
    "counted": "counted({0}, 3)[0]",
    "doubled": "drawn({0}, {1})",
}


@dataclasses.dataclass
class Program:
    seed: int
    body: str = ""
    differentiable: bool = True
    needs_box: bool = False
    needs_pair: bool = False
    helpers: dict = dataclasses.field(default_factory=dict)  # name -> its call
    names: int = 0

    def fresh(self, start):
        self.names += 1
        return f"{start}{self.names}"

    def helper(self):
        """How to call one of the module's functions with two floats, or None."""
        return self.rng.choice(sorted(self.helpers.values())) if self.helpers else None

    def ways(self):
        """How it is judged: the arguments of `check`."""
        return {
            "differentiable": self.differentiable,
            "tape_inside": self.seed % 2 == 1,
            "inputs": INPUTS if self.seed % 4 == 0 else INPUTS[:3],
        }

    def source(self, module):
        standard = "import contextlib\nimport functools\n"
        if self.needs_pair:
            standard += "import typing\n"
        return f"{standard}\nimport {module} as tf\n{self.body}"

    @property
    def is_wide(self):
        return self.seed > LAST_NARROW


def make(seed):
    """The program of that seed: always the same."""
    program = Program(seed)
    rng = program.rng = random.Random(seed + 10_000 * (seed in OUTSIDE))
    parts = []
    for name in rng.sample(sorted(_KNOWN_HELPERS), rng.randrange(0, 3)):
        parts.append(_KNOWN_HELPERS[name])
        program.helpers[name] = _KNOWN_CALLS[name]
    for _ in range(rng.randrange(0, 2)):
        parts.append(_helper(program, rng))
    function = _function(program, rng)
    if program.needs_box:
        parts.append(_BOX)
    if program.needs_pair:
        parts.append(PAIR)
    program.body = "".join([*parts, function])
    return program


def _writer(program, rng, size):
    kind = WideStatements if program.is_wide else Statements
    return kind(rng, program, Expressions(rng, program), size)


def _helper(program, rng):
    """A function of two floats that gives one."""
    name = program.fresh("helper")
    scope = Scope()
    for parameter in ("s", "t"):
        scope.add(parameter, "S")
    lines = _writer(program, rng, size=5).returning(scope, "S")
    default = rng.choice(["", "=0.5"])
    program.helpers[name] = name + "({0}, {1})"
    return "\n\n" + "\n".join([f"def {name}(s, t{default}):", *indented(lines)]) + "\n"


def _function(program, rng):
    scope = Scope()
    for name, kind in (("x", "S"), ("n", "I"), ("v", "V"), ("k", "K")):
        scope.add(name, kind)
    writer = _writer(program, rng, size=rng.choice([4, 7, 10, 14]))
    lines = writer.opening(scope) + writer.returning(
        scope, rng.choice(["SI", "SV", "S", "D"])
    )
    return "\n\n" + "\n".join(["def f(x, n, v, k=2):", *indented(lines)]) + "\n"
