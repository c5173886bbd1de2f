"""What the statement being written may use: names, their kinds, and the way out.

Kinds of names:
  S a float scalar      I an int32 scalar       B a bool           V a vector of four
  K a Python int that tracing must leave one    P a tuple (S, I)   L a list of three S
  D a dict {"p": S, "q": I}    O an object with .s (S) and .i (I)  Q a growing list of S
  F a function of two S that gives an S
An S, I or B may be a Python number: the plain run keeps it one, a graph makes it a
tensor, and every use must bear both.
"""

import dataclasses

LOOPS = ("py loop", "loop", "data loop")
STAGED = ("if", "loop", "data loop")


@dataclasses.dataclass
class Frame:
    """A construct around the statement: "if" and "loop" hang on tensors.

    "data loop" is one over a data set. "py if" and "py loop" hang on Python values;
    "block" is a with or a try. "no data" is in and after a Python loop that returns.
    returns: every turn of the loop returns, so that nothing else leaves it.
    guarded: a `continue` under a tensor's condition was written already, so that what
    follows in this loop runs under a condition too.
    """

    kind: str
    returns: bool = False
    guarded: bool = False


@dataclasses.dataclass
class Name:
    kind: str
    level: int  # how many tensor conditions and loops were around its definition
    frozen: bool = False  # a closure reads it: it is not assigned any more


class Scope:
    """The names and frames of one block; blocks inside it get copies."""

    def __init__(self, names=None, frames=()):
        self.names = dict(names or {})
        self.frames = list(frames)

    def inside(self, kind):
        return Scope(self.names, [*self.frames, Frame(kind)])

    def function(self):
        """The scope of a function defined here: its own ways out.

        It reads no name that a block around it defined first: TensorFlow takes what an
        inner function reads for read also after the block, where the name is no more.
        """
        around = {k: v for k, v in self.names.items() if v.level == 0}
        return Scope(
            {k: dataclasses.replace(v, frozen=True) for k, v in around.items()}
        )

    def level(self):
        return sum((f.kind in STAGED) + f.guarded for f in self.frames)

    def add(self, name, kind):
        self.names[name] = Name(kind, self.level())

    def of(self, kind, *, assigned=False, parts=False):
        """Names of that kind that may be read, or assigned, here.

        What Python alone keeps track of (K and Q) changes only where no tensor decides
        whether it does. Where tensors decide, a list or dict changes either as a whole
        or by its parts: for TensorFlow these are names apart.
        """
        found = []
        for name, known in self.names.items():
            if known.kind != kind:
                continue
            if assigned and known.frozen:
                continue
            if assigned and kind in "KQO" and known.level != self.level():
                continue
            by_parts = int("".join(c for c in name if c.isdigit()) or 0) % 2 == 1
            if assigned and kind in "LD" and known.level != self.level():
                if by_parts != parts:
                    continue
            if assigned and kind == "L" and self.in_data():
                continue
            found.append(name)
        return found

    def _since_loop(self):
        """The innermost loop's frame and those inside it, or (None, [])."""
        for i in range(len(self.frames) - 1, -1, -1):
            if self.frames[i].kind in LOOPS:
                return self.frames[i], self.frames[i + 1 :]
        return None, []

    def in_data(self):
        """Here a list would come back from each turn as a tensor."""
        return any(f.kind == "data loop" for f in self.frames)

    def may_iterate_data(self):
        """Not where a Python loop before returns, which TensorFlow cannot bear."""
        return not any(f.kind == "no data" for f in self.frames)

    def in_loop(self):
        return any(f.kind in LOOPS for f in self.frames)

    def may_continue(self):
        loop = self._since_loop()[0]
        return loop is not None and not loop.returns

    def may_break(self):
        """A Python loop is left only where Python alone decides."""
        loop, inner = self._since_loop()
        if loop is None or loop.returns:
            return False
        staged = loop.guarded or any(f.kind in STAGED for f in inner)
        return loop.kind in STAGED or not staged

    def continued(self):
        """A `continue` was written here."""
        loop, inner = self._since_loop()
        if loop.kind == "py loop" and any(f.kind in STAGED for f in inner):
            loop.guarded = True

    def staged(self):
        return self.level() > 0
