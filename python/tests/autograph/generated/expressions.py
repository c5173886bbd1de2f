"""Expressions over the names of a scope, as text.

Values stay small whatever the loops around do: floats are averaged, bent through
sines, or bounded; ints are taken modulo small primes. `depth` bounds the nesting.
"""

from .scope import Scope

FLOATS = ("0.5", "-0.25", "1.5", "2.0", "-1.75", "0.125")
INTS = ("0", "1", "2", "3")


class Expressions:
    def __init__(self, rng, program):
        self.rng = rng
        self.program = program  # its helpers and how to note what it uses
        self.in_ternary = 0

    def chance(self, part):
        return self.rng.random() < part

    def pick(self, *choices):
        return self.rng.choice(choices)

    def one(self, scope, kind, depth=2):
        """An expression of that kind."""
        return getattr(self, f"_{kind.lower()}")(scope, depth)

    # Floats.

    def _s_leaf(self, scope):
        choices = scope.of("S") * 3
        choices += [f"{p}[0]" for p in scope.of("P")]
        choices += [f"{d}['p']" for d in scope.of("D")]
        choices += [f"{o}.s" for o in scope.of("O") + scope.of("T")]
        for n in scope.of("N"):
            choices += [f"{n}['a'][0]", f"{n}['a'][-1]", f"{n}['b'][0]"]
        choices += [f"{x}[{self.rng.randrange(-1, 3)}]" for x in scope.of("L")]
        choices += [f"{q}[-1]" for q in scope.of("Q")]
        for k in scope.of("K"):
            choices += [f"{x}[{k} % 3]" for x in scope.of("L")]
        if scope.of("V"):
            vector = self.rng.choice(scope.of("V"))
            index = self.pick("0", "-1", f"{self._i_leaf(scope)} % 4")
            choices += [f"{vector}[{index}]", f"tf.reduce_mean({vector})"]
        if self.chance(0.15) or not choices:
            choices = FLOATS
        return self.rng.choice(choices)

    def _s(self, scope, depth=2):
        if depth <= 0:
            return self._s_leaf(scope)
        s = lambda: self._s(scope, depth - 1)
        forms = [
            lambda: f"({s()} + {s()}) * 0.5",
            lambda: f"{self._s_leaf(scope)} * 0.5 - {self._s_leaf(scope)} * 0.25",
            lambda: f"tf.sin({s()})",
            lambda: f"tf.tanh({s()} * {s()})",
            lambda: f"tf.maximum({s()}, {s()})",
            lambda: f"abs({s()})",
            lambda: f"-{self._s_leaf(scope)}",
            lambda: f"tf.cast({self._i(scope, 1)}, tf.float32) * 0.25",
            lambda: self._call(scope, s),
            lambda: self._ternary(scope, s),
            lambda: self._s_leaf(scope),
            lambda: self._s_leaf(scope),
        ]
        if self.chance(0.08):
            forms = [
                lambda: f"(lambda t: t * 0.5 - {self._s_leaf(scope)})({s()})",
                lambda: f"tf.reduce_max({self._v(scope, 1)})",
                lambda: self._comprehension(scope),
                lambda: f"float({self._i_leaf(scope)}) * 0.5",
            ]
        return self.rng.choice(forms)()

    def _call(self, scope, s):
        closures = scope.of("F")
        if closures and self.chance(0.6):
            return f"{self.rng.choice(closures)}({s()}, {s()})"
        objects = scope.of("O")
        if objects and self.chance(0.7):
            return f"{self.rng.choice(objects)}.mixed({s()})"
        helper = self.program.helper()
        if helper is None or (self.in_ternary and " if " in helper):
            return s()
        return helper.format(s(), s())

    def _ternary(self, scope, part):
        """TensorFlow leaves a conditional inside another one alone: there is one."""
        if self.in_ternary:
            return part()
        self.in_ternary += 1
        text = f"({part()} if {self._b(scope, 1)} else {part()})"
        self.in_ternary -= 1
        return text

    def _comprehension(self, scope):
        part = Expressions(self.rng, self.program)
        inner = Scope(scope.names, scope.frames)
        name = self.program.fresh("c")
        many = self.pick("range(3)", "(1, 2, 4)", "range(1, 4)")
        if scope.of("Q") + scope.of("L") and self.chance(0.5):
            inner.add(name, "S")
            many = self.rng.choice(scope.of("Q") + scope.of("L"))
            body = part._s(inner, 1)
        else:
            inner.add(name, "K")
            body = f"{self._s_leaf(scope)} * float({name})"
        listed = f"[{body} for {name} in {many}]"
        return self.pick(f"tf.add_n({listed}) * 0.25", f"sum({listed}) * 0.25")

    # Ints.

    def _i_leaf(self, scope):
        choices = scope.of("I") * 3 + scope.of("K")
        choices += [f"{p}[1]" for p in scope.of("P")]
        choices += [f"{d}['q']" for d in scope.of("D")]
        choices += [f"{o}.i" for o in scope.of("O") + scope.of("T")]
        choices += [f"{n}['b'][1]" for n in scope.of("N")]
        choices += [f"len({q})" for q in scope.of("Q")]
        if not choices:
            choices = [f"tf.cast({s} > 0.5, tf.int32)" for s in scope.of("S")]
        if self.chance(0.1) or not choices:
            choices = INTS
        return self.rng.choice(choices)

    def _i(self, scope, depth=2):
        if depth <= 0:
            return self._i_leaf(scope)
        i = lambda: self._i(scope, depth - 1)
        forms = [
            lambda: f"({i()} + {i()}) % 7",
            lambda: f"({i()} * {i()}) % 5",
            lambda: f"abs({i()} - {i()}) % 6",
            lambda: f"tf.minimum({i()}, {i()})",
            lambda: f"tf.cast({self._b(scope, 1)}, tf.int32)",
            lambda: f"-{self._i_leaf(scope)} % 3",
            lambda: self._ternary(scope, i),
            lambda: self._i_leaf(scope),
        ]
        return self.rng.choice(forms)()

    def _k(self, scope, depth=1):
        """A Python int, also while tracing."""
        names = scope.of("K") + [f"len({q})" for q in scope.of("Q")]
        leaf = lambda: self.rng.choice(names * 2 + list(INTS))
        if depth <= 0:
            return leaf()
        return self.pick(
            leaf(), f"({leaf()} + {leaf()}) % 4", f"max({leaf()}, {leaf()}) % 5"
        )

    # Bools.

    def _b(self, scope, depth=2):
        s, i = self._s_leaf(scope), self._i_leaf(scope)
        forms = [
            lambda: f"{s} > {self.rng.choice(FLOATS)}",
            lambda: f"{s} < {self._s(scope, depth)}",
            lambda: f"{i} > {self.pick('0', '1', '2')}",
            lambda: f"{i} % 2 == 0",
            lambda: f"{i} != {self._i_leaf(scope)}",
            lambda: f"0 <= {i} < {self._i_leaf(scope)} + 2",
            lambda: f"-1.0 < {s} <= {self.rng.choice(FLOATS)}",
        ]
        if scope.of("B"):
            forms += [lambda: self.rng.choice(scope.of("B"))] * 2
        if scope.of("V"):
            vector = self.rng.choice(scope.of("V"))
            forms.append(lambda: f"tf.reduce_any({vector} > {s})")
        if depth > 0:
            b = lambda: self._b(scope, depth - 1)
            forms += [
                lambda: f"({b()} and {b()})",
                lambda: f"({b()} or {b()})",
                lambda: f"(not {b()})",
                lambda: self._ternary(scope, b),
            ]
        return self.rng.choice(forms)()

    def static(self, scope):
        """A condition over Python ints alone."""
        k = self._k(scope)
        return self.pick(
            f"{k} > 1", f"{k} % 2 == 0", f"{k} in (1, 3)", f"0 < {k} < 3", f"not {k}"
        )

    # Containers.

    def _v(self, scope, depth=2):
        names = scope.of("V")
        if depth <= 0 and names:
            return self.rng.choice(names)
        s = lambda: self._s(scope, depth - 1)
        stack = lambda: f"tf.stack([{s()}, {s()}, {s()}, {s()}])"
        if not names:
            return stack()
        v = lambda: self._v(scope, depth - 1)
        forms = [
            lambda: f"({v()} + {v()}) * 0.5",
            lambda: f"tf.sin({v()}) * 0.5 + {s()} * 0.5",
            lambda: f"tf.where({v()} > {s()}, {v()}, -{self.rng.choice(names)})",
            lambda: f"tf.reverse({v()}, [0])",
            lambda: f"tf.concat([{self.rng.choice(names)}[1:], [{s()}]], 0)",
            lambda: self._ternary(scope, v),
            stack,
        ]
        return self.rng.choice(forms)()

    def _p(self, scope, depth=2):
        whole = f"({self._s(scope, depth - 1)}, {self._i(scope, depth - 1)})"
        names = scope.of("P")
        return self.rng.choice([whole, *names]) if self.chance(0.3) else whole

    def _l(self, scope, depth=2):
        return "[" + ", ".join(self._s(scope, depth - 1) for _ in range(3)) + "]"

    def _d(self, scope, depth=2):
        s, i = self._s(scope, depth - 1), self._i(scope, depth - 1)
        return self.pick(f"{{'p': {s}, 'q': {i}}}", f"dict(p={s}, q={i})")

    def _o(self, scope, depth=2):
        self.program.needs_box = True
        return f"Box({self._s(scope, depth - 1)}, {self._i(scope, depth - 1)})"

    def _n(self, scope, depth=2):
        s = lambda: self._s(scope, min(depth - 1, 1))
        return f"{{'a': [{s()}, {s()}], 'b': ({s()}, {self._i(scope, 1)})}}"

    def _t(self, scope, depth=2):
        self.program.needs_pair = True
        s, i = self._s(scope, min(depth - 1, 1)), self._i(scope, 1)
        return self.pick(f"Pair({s}, {i})", f"Pair(i={i}, s={s})")
