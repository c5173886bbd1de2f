"""Statements: blocks that fall through, and blocks of which every path returns.

What TensorFlow's language asks for, and so shapes what is written here:
- a name used after a conditional is set on every path through it;
- a Python loop is left by `break` or `return` only where no tensor decides it;
- where tensors decide whether to return, every path returns: an `if` whose body
  returns is followed by statements that return, and so is one in a loop's body.
"""

from .loops import Loops

RETURNED = {
    "S": lambda e, scope: e.one(scope, "S"),
    "SI": lambda e, scope: f"{e.one(scope, 'S')}, {e.one(scope, 'I', 1)}",
    "SV": lambda e, scope: f"({e.one(scope, 'S')}, [{e.one(scope, 'V', 1)}])",
    "D": lambda e, scope: e.one(scope, "D"),
}


def indented(lines):
    return ["    " + line for line in lines]


class Statements(Loops):
    def __init__(self, rng, program, expressions, size):
        self.rng = rng
        self.program = program
        self.e = expressions
        self.left = size  # statements still to write

    def chance(self, part):
        return self.rng.random() < part

    def pick(self, *choices):
        return self.rng.choice(choices)

    def opening(self, scope):
        """The first statements of a function: some names to work with."""
        lines = []
        for kind in self.rng.sample("SSIBVPLDOQ", self.rng.randrange(2, 6)):
            lines += self._define(scope, kind)
        return lines

    # Blocks.

    def block(self, scope, count=None):
        """One to three statements, then perhaps a way out of the loop around."""
        lines = []
        for _ in range(count or self.rng.randrange(1, 4)):
            if self.left <= 0:
                break
            lines += self._statement(scope)
        lines += self._leaving(scope)
        return lines or self._assign(scope)

    def _statement(self, scope):
        self.left -= 1
        deep = len(scope.frames) >= 4
        forms = [self._assign] * 5 + [self._define, self._unpack, self._item]
        forms += [self._python, self._call_closure, self._check]
        if not deep:
            forms += [self._if] * 3 + [self._define_in_branches] * 2
            forms += [self._while] * 2 + [self._for] * 3
            forms += [self._python_if, self._python_while, self._wrapped]
            forms += [self._tensor_array]
        if not deep and not scope.in_data():
            forms += [self._closure, self._nonlocal]
        if scope.may_continue():
            forms += [self._leaving_if] * 3
        return self.rng.choice(forms)(scope)

    def _leaving(self, scope):
        if self.chance(0.85):
            return []
        return self._leave(scope)

    def _leave(self, scope):
        if scope.may_break() and self.chance(0.6):
            return ["break"]
        if scope.may_continue():
            scope.continued()
            return ["continue"]
        return []

    def _leaving_if(self, scope):
        """`if c: break`, also with statements before it and an else."""
        if self.chance(0.3):
            kind, condition = "py if", self.e.static(scope)
        else:
            kind, condition = "if", self.e.one(scope, "B")
        inner = scope.inside(kind)
        before = self._assign(inner) if self.chance(0.4) else []
        leave = self._leave(inner)
        lines = [f"if {condition}:", *indented(before + leave or ["pass"])]
        if self.chance(0.25):
            lines += ["else:", *indented(self.block(scope.inside(kind), 1))]
        return lines

    # Plain statements.

    def _assign(self, scope):
        kind = self.pick(*"SSSSIIBVPLD")
        names = scope.of(kind, assigned=True)
        if not names:
            return self._define(scope, kind)
        name = self.rng.choice(names)
        if kind == "S" and self.chance(0.35):
            small = self.e.one(scope, "S", 1)
            return [f"{name} {self.pick('+=', '-=')} {small} * 0.25"]
        if kind == "I" and self.chance(0.25):
            return [f"{name} += {self.e.one(scope, 'I', 0)}", f"{name} %= 7"]
        return [f"{name} = {self.e.one(scope, kind)}"]

    def _define(self, scope, kind=None):
        kind = kind or self.pick(*"SSIBVPLDOQK")
        name = self.program.fresh(kind.lower())
        if kind == "K":
            text = self.e._k(scope)
        elif kind == "Q":
            text = f"[{self.e.one(scope, 'S', 1)}]"
        elif kind in "SIB" and self.chance(0.3):
            text = {"S": "0.5", "I": "1", "B": "False"}[kind]
        else:
            text = self.e.one(scope, kind)
        scope.add(name, kind)
        return [f"{name} = {text}"]

    def _unpack(self, scope):
        floats = scope.of("S", assigned=True)
        ints = scope.of("I", assigned=True)
        if len(floats) >= 2 and self.chance(0.5):
            a, b = self.rng.sample(floats, 2)
            return [f"{a}, {b} = {b}, {self.e.one(scope, 'S', 1)}"]
        if floats and ints:
            a, b = self.rng.choice(floats), self.rng.choice(ints)
            return self.pick(
                [f"{a}, {b} = {self.e.one(scope, 'P')}"],
                [f"[{a}, ({b},)] = {self.e._s(scope, 1)}, [{self.e._i(scope, 1)}]"],
            )
        if scope.of("L") and len(floats) >= 1:
            name, rest = self.rng.choice(floats), self.program.fresh("rest")
            return [
                f"{name}, *{rest} = {self.rng.choice(scope.of('L'))}",
                f"{name} = {name} * 0.5 + {rest}[1] * 0.5",
            ]
        return self._assign(scope)

    def _item(self, scope):
        """An assignment to a part of a container or to an attribute."""
        targets = [(f"{d}['p']", "S") for d in scope.of("D", assigned=True, parts=True)]
        targets += [
            (f"{d}['q']", "I") for d in scope.of("D", assigned=True, parts=True)
        ]
        targets += [(f"{o}.s", "S") for o in scope.of("O", assigned=True, parts=True)]
        targets += [(f"{o}.i", "I") for o in scope.of("O", assigned=True, parts=True)]
        targets += [
            (f"{x}[{self.rng.randrange(3)}]", "S")
            for x in scope.of("L", assigned=True, parts=True)
        ]
        if not targets:
            return self._assign(scope)
        target, kind = self.rng.choice(targets)
        if kind == "S" and self.chance(0.3):
            return [f"{target} *= 0.5"]
        return [f"{target} = {self.e.one(scope, kind)}"]

    def _python(self, scope):
        """What only Python's own flow decides: lists that grow, ints that count."""
        lists, ints = scope.of("Q", assigned=True), scope.of("K", assigned=True)
        if lists and self.chance(0.6):
            name = self.rng.choice(lists)
            return self.pick(
                [f"{name}.append({self.e.one(scope, 'S', 1)})"],
                [f"{name} = {name}[-2:] + [{self.e.one(scope, 'S', 1)}]"],
                [f"if len({name}) > 2:", f"    {name}.pop()"],
                [f"{name} += [{self.e.one(scope, 'S', 0)}]"],
            )
        if ints:
            name = self.rng.choice(ints)
            return [f"{name} = {self.e._k(scope)}"]
        return self._define(scope, self.pick("Q", "K"))

    def _check(self, scope):
        return self.pick(
            [f"assert {self.e._k(scope)} >= 0"],
            [f"tf.debugging.assert_less({self.e.one(scope, 'S', 0)}, 1e9)"],
            ["pass"],
            ["'a text of its own'"],
        )

    # Conditionals.

    def _if(self, scope):
        lines = [f"if {self.e.one(scope, 'B')}:"]
        lines += indented(self.block(scope.inside("if")))
        while self.chance(0.25):
            lines.append(f"elif {self.e.one(scope, 'B')}:")
            lines += indented(self.block(scope.inside("if")))
        if self.chance(0.5):
            lines += ["else:", *indented(self.block(scope.inside("if")))]
        return lines

    def _python_if(self, scope):
        lines = [f"if {self.e.static(scope)}:"]
        lines += indented(self.block(scope.inside("py if")))
        if self.chance(0.5):
            lines += ["else:", *indented(self.block(scope.inside("py if")))]
        return lines

    def _define_in_branches(self, scope):
        """Names that exist only after a conditional of which every branch sets them."""
        made = [(self.program.fresh(k.lower()), k) for k in self._some_kinds()]

        def branch():
            inner = scope.inside("if")
            lines = self._assign(inner) if self.chance(0.5) else []
            for name, kind in made:
                lines.append(f"{name} = {self.e.one(inner, kind)}")
            return indented(lines)

        lines = [f"if {self.e.one(scope, 'B')}:", *branch()]
        if self.chance(0.4):
            lines += [f"elif {self.e.one(scope, 'B')}:", *branch()]
        lines += ["else:", *branch()]
        for name, kind in made:
            scope.add(name, kind)
            # In a loop TensorFlow loses such a name when it is assigned once more.
            scope.names[name].frozen = scope.in_loop()
        return lines

    def _some_kinds(self):
        return [self.pick(*"SSIVBPLD") for _ in range(self.rng.randrange(1, 3))]

    def _wrapped(self, scope):
        form = self.pick("with", "finally", "except")
        inner = self.block(scope.inside("block"))
        if form == "with":
            manager = self.pick(
                "tf.name_scope('part')", "contextlib.nullcontext(1) as given"
            )
            return [f"with {manager}:", *indented(inner)]
        if form == "finally":
            lines = ["try:", *indented(inner), "finally:"]
            return lines + indented(self._assign(scope.inside("block")))
        lines = ["try:", *indented(inner), "except ValueError:"]
        return lines + ["    raise"]

    # Functions inside functions.

    def _freeze(self, scope, lines):
        """A closure reads what it reads: that is not assigned any more."""
        text = "\n".join(lines)
        for name, known in list(scope.names.items()):
            if name in text:
                scope.names[name] = type(known)(known.kind, known.level, True)

    def _closure(self, scope):
        name = self.program.fresh("g")
        inner = scope.function()
        for parameter in ("s", "t"):
            inner.add(parameter, "S")
        if self.chance(0.3):
            lines = [f"{name} = lambda s, t: {self.e.one(inner, 'S')}"]
        else:
            writer = type(self)(self.rng, self.program, self.e, min(self.left, 4))
            body = writer.returning(inner, "S")
            default = self.pick("", "", "=0.25", f"={self.e.one(scope, 'S', 0)}")
            lines = [f"def {name}(s, t{default}):", *indented(body)]
        self._freeze(scope, lines)
        scope.add(name, "F")
        return lines + self._call_closure(scope)

    def _call_closure(self, scope):
        closures, floats = scope.of("F"), scope.of("S", assigned=True)
        if not closures or not floats:
            return self._assign(scope)
        name = self.rng.choice(closures)
        s, t = self.e.one(scope, "S", 1), self.e.one(scope, "S", 0)
        call = self.pick(
            f"{name}({s}, {t})", f"{name}({s}, t={t})", f"{name}(*[{s}, {t}])"
        )
        return [f"{self.rng.choice(floats)} = {call}"]

    def _nonlocal(self, scope):
        """An inner function that changes names of the outer one, called in its flow."""
        kind = self.pick("S", "I")
        names = [x for x in scope.of(kind, assigned=True) if x not in ("x", "n")]
        if not names or scope.staged():
            return self._assign(scope)
        outer, name = self.rng.choice(names), self.program.fresh("g")
        given = self.program.fresh("u")
        inner = scope.function()
        inner.add(outer, kind)
        inner.add(given, "S")
        writer = type(self)(self.rng, self.program, self.e, min(self.left, 3))
        body = writer.block(inner)
        body.append(f"{outer} = {self.e.one(inner, kind)}")
        # TensorFlow's analysis does not see that the inner function reads the name.
        read = {"S": f"{outer} = {outer} * 0.5", "I": f"{outer} = ({outer} + 1) % 7"}
        lines = [read[kind], f"def {name}({given}):"]
        lines += indented([f"nonlocal {outer}", *body])
        for _ in range(self.rng.randrange(1, 3)):
            lines.append(f"{name}({self.e.one(scope, 'S', 1)})")
        return lines

    # Blocks of which every path returns.

    def returning(self, scope, kind, depth=0):
        lines = []
        for _ in range(self.rng.randrange(1, 5) if depth == 0 else 1):
            if self.left > 0:
                lines += self._statement(scope)
        form = self.pick(*self._endings(scope)) if depth < 3 else "return"
        if form == "python loop" and depth:  # A tensor may say whether it goes on here.
            form = "python"
        more = lambda s: self.returning(s, kind, depth + 1)
        if form == "return":
            return [*lines, f"return {RETURNED[kind](self.e, scope)}"]
        if form == "python":
            lines += [
                f"if {self.e.static(scope)}:",
                *indented(more(scope.inside("py if"))),
            ]
            return lines + more(scope)
        if form == "with":
            return [*lines, "with tf.name_scope('end'):", *indented(more(scope))]
        if form == "try":
            lines += ["try:", *indented(more(scope.inside("block"))), "finally:"]
            return lines + indented(self._assign(scope.inside("block")))
        if form == "python loop":
            scope = scope.inside("no data")
            return lines + self._returning_from_python_loop(scope, kind) + more(scope)
        if form == "loop":
            header, inner = self._header_of_staged_loop(scope, returns=True)
            deeper = max(depth + 1, self.pick(1, 2))
            body = indented(self.returning(inner, kind, deeper))
            # What follows runs only where no turn returned: where there was none.
            return [*lines, *header, *body, *more(scope.inside("if"))]
        lines += [f"if {self.e.one(scope, 'B')}:", *indented(more(scope.inside("if")))]
        if form == "both":
            return [*lines, "else:", *indented(more(scope.inside("if")))]
        return lines + more(scope)

    def _endings(self, scope):
        endings = ["return", "both", "early", "early"]
        if not scope.staged() or scope.frames[-1].returns:
            endings += ["loop"]
        if not scope.staged():
            endings += ["python", "python loop", "with", "try"]
        return endings

    def _returning_from_python_loop(self, scope, kind):
        k = self.program.fresh("k")
        inner = scope.inside("py loop")
        inner.add(k, "K")
        lines = self._assign(inner.inside("py if")) if self.chance(0.5) else []
        lines.append(f"return {RETURNED[kind](self.e, inner)}")
        lines = [f"if {self.e.static(inner)}:", *indented(lines)]
        if self.chance(0.5):
            lines += self.block(inner)
        return [f"for {k} in range({self.pick('2', '3')}):", *indented(lines)]
