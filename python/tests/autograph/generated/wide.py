"""What programs from seed 1,001 on have besides: containers within containers,
namedtuples, loops that only a `break` ends, other comprehensions, names that are set
together, errors that Python catches.

Further kinds of names:
  N a dict {"a": [S, S], "b": (S, I)}    T a Pair(s=S, i=I)
"""

from .statements import Statements, indented

PAIR = """
class Pair(typing.NamedTuple):
    s: tf.Tensor
    i: tf.Tensor

    def turned(self, t):
        return self._replace(s=(self.s + t) * 0.5, i=(self.i + 1) % 5)
"""


class WideStatements(Statements):
    def _statement(self, scope):
        if not self.chance(0.3):
            return super()._statement(scope)
        self.left -= 1
        forms = [self._define_wide, self._assign_wide, self._together, self._collected]
        if len(scope.frames) < 4:
            forms += [self._endless, self._caught]
        return self.pick(*forms)(scope)

    def _define_wide(self, scope):
        return self._define(scope, self.pick("N", "T"))

    def _assign_wide(self, scope):
        kind = self.pick("N", "T")
        names = scope.of(kind, assigned=True)
        if not names:
            return self._define(scope, kind)
        name = self.pick(*names)
        if kind == "T" and self.chance(0.5):
            return [f"{name} = {name}.turned({self.e.one(scope, 'S', 1)})"]
        return [f"{name} = {self.e.one(scope, kind)}"]

    def _together(self, scope):
        names = scope.of("S", assigned=True)
        if len(names) < 2:
            return self._assign(scope)
        a, b = self.rng.sample(names, 2)
        return [f"{a} = {b} = {self.e.one(scope, 'S')}"]

    def _collected(self, scope):
        """A float of a comprehension with a condition, or of a dict's."""
        name, k = self.program.fresh("s"), self.program.fresh("c")
        part = f"{self.e.one(scope, 'S', 0)} * float({k})"
        static = self.pick(f"{k} % 2 == 0", f"{k} != 1", f"{k} in (1, 3)")
        text = self.pick(
            f"tf.add_n([{part} for {k} in range(4) if {static}]) * 0.125",
            f"{{str({k}): {part} for {k} in (1, 2)}}['2'] * 0.25",
            f"sum(({part} for {k} in range(1, 4) if {static}), tf.constant(0.0)) * 0.125",
        )
        scope.add(name, "S")
        return [f"{name} = {text}"]

    def _endless(self, scope):
        turns = self.program.fresh("turns")
        inner = scope.inside("loop")
        body = self.block(inner, 2)
        last = f"{turns} > {self.e.one(scope, 'I', 0)} % 4"
        if self.chance(0.5):
            last += f" or {self.e.one(scope, 'B', 0)}"
        lines = [f"{turns} = tf.constant(0)", "while tf.constant(True):"]
        leave = [f"    {turns} += 1", f"    if {last}:", "        break"]
        return lines + leave + indented(body)

    def _caught(self, scope):
        """An error that Python raises, or does not, while the program is traced."""
        inner = self.block(scope.inside("py if"), 1)
        lines = [f"if {self.e.static(scope)}:", "    raise KeyError('one of ours')"]
        lines = ["try:", *indented(lines + inner), "except KeyError as error:"]
        return lines + indented(self._assign(scope.inside("py if")))
