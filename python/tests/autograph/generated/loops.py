"""Loops: over tensors, ranges, data sets, Python's own; and loops that fill arrays."""


def indented(lines):
    return ["    " + line for line in lines]


class Loops:
    """Part of Statements."""

    def _while(self, scope):
        """A loop on tensors; a counter of its own sees to it that it ends."""
        turns = self.program.fresh("turns")
        start = self.pick(
            "tf.constant(0)", f"{self.e.one(scope, 'I', 0)} * tf.constant(0)"
        )
        condition = f"{turns} < {self.e.one(scope, 'I', 0)} % 4"
        if self.chance(0.5):
            condition += f" {self.pick('and', 'and not')} {self.e.one(scope, 'B', 0)}"
        inner = scope.inside("loop")
        body = self.block(inner)
        lines = [f"{turns} = {start}", f"while {condition}:", f"    {turns} += 1"]
        return lines + indented(body)

    def _python_while(self, scope):
        name = self.program.fresh("k")
        lines = [f"{name} = {self.pick('0', '1')}"]
        inner = scope.inside("py loop")
        inner.add(name, "K")
        inner.names[name].frozen = True
        body = [f"{name} += 1", *self.block(inner)]
        return [*lines, f"while {name} < {self.pick('2', '3')}:", *indented(body)]

    def _for(self, scope):
        if self.chance(0.4):
            return self._python_for(scope)
        lines, inner = self._header_of_staged_loop(scope)
        return lines + indented(self.block(inner))

    def _header_of_staged_loop(self, scope, returns=False):
        """(lines up to the colon, the scope of the body).

        returns: every turn will return, so that there must be a turn.
        """
        form = self.pick("range", "range", "floats", "rows", *["data"][returns:])
        if form == "data" and not scope.may_iterate_data():
            form = "range"
        e, fresh = self.e, self.program.fresh
        inner = scope.inside("data loop" if form == "data" else "loop")
        inner.frames[-1].returns = returns
        if form == "range":
            i = fresh("i")
            inner.add(i, "I")
            stop = f"{e.one(scope, 'I', 1)} % {2 if returns else 4}"
            stop += " + 1" * returns
            over = self.pick(
                f"tf.range({stop})",
                f"tf.range(1, 1 + {stop})",
                f"tf.range({stop}, -1, -2)",
                f"range(tf.convert_to_tensor({stop}))",
            )
            return [f"for {i} in {over}:"], inner
        if form == "floats":
            s = fresh("s")
            inner.add(s, "S")
            over = self.pick(e.one(scope, "V", 1), "tf.range(-0.5, 1.0, 0.5)")
            return [f"for {s} in {over}:"], inner
        if form == "rows":
            name = fresh("v")
            inner.add(name, "V")
            rows = ", ".join(e.one(scope, "V", 0) for _ in range(self.pick(1, 2)))
            return [f"for {name} in tf.stack([{rows}]):"], inner
        return self._header_of_data_loop(scope, inner)

    def _header_of_data_loop(self, scope, inner):
        self.program.differentiable = False
        fresh = self.program.fresh
        i, s = fresh("i"), fresh("s")
        vector = self.e.one(scope, "V", 0)
        data = f"tf.data.Dataset.from_tensor_slices({vector})"
        form = self.pick("plain", "iter", "enumerate", "numbered", "zip")
        inner.add(s, "S")
        if form == "plain":
            return [f"for {s} in {data}:"], inner
        if form == "iter":
            return [f"for {s} in iter({data}.take(3)):"], inner
        if form == "enumerate":
            numbers = f"enumerate({data})"
        elif form == "numbered":
            numbers = f"{data}.enumerate()"
        else:
            numbers = f"tf.data.Dataset.zip((tf.data.Dataset.range(3), {data}))"
        long = fresh("long")
        inner.add(i, "I")
        lines = [f"for {long}, {s} in {numbers}:"]
        return [*lines, f"    {i} = tf.cast({long}, tf.int32)"], inner

    def _python_for(self, scope):
        e, inner = self.e, scope.inside("py loop")
        fresh = self.program.fresh
        k, s, t = fresh("k"), fresh("s"), fresh("s")
        floats = scope.of("L") + scope.of("Q")
        listed = self.rng.choice(floats) if floats else e.one(scope, "L", 1)
        if not floats or self.chance(0.5):
            listed = f"({e.one(scope, 'S', 1)}, {e.one(scope, 'S', 0)})"
        elif scope.of("Q"):
            listed = f"list({listed})"
        forms = {
            f"for {k} in range({self.pick('2', '3', '1, 4')}):": [(k, "K")],
            f"for {k} in range({e._k(scope, 0)}, 3):": [(k, "K")],
            f"for {s} in {listed}:": [(s, "S")],
            f"for {k}, {s} in enumerate({listed}):": [(k, "K"), (s, "S")],
            f"for {s}, {t} in zip({listed}, {e.one(scope, 'L', 0)}):": [
                (s, "S"),
                (t, "S"),
            ],
            f"for {s} in reversed({e.one(scope, 'L', 0)}):": [(s, "S")],
            f"for {s} in map(lambda a: a * 0.5, {listed}):": [(s, "S")],
            f"for {k}, ({s}, {t}) in [(0, ({e.one(scope, 'S', 0)}, 0.5)), "
            f"(2, (0.25, {e.one(scope, 'S', 0)}))]:": [(k, "K"), (s, "S"), (t, "S")],
        }
        header = self.rng.choice(list(forms))
        for name, kind in forms[header]:
            inner.add(name, kind)
        return [header, *indented(self.block(inner))]

    def _tensor_array(self, scope):
        """An array that a loop fills, and its contents after the loop."""
        array, i, s = (self.program.fresh(x) for x in ("array", "i", "s"))
        grows = self.chance(0.5)
        size = "0, dynamic_size=True" if grows else "4"
        lines = [f"{array} = tf.TensorArray(tf.float32, {size}, element_shape=())"]
        inner = scope.inside("loop")
        inner.add(i, "I")
        inner.names[i].frozen = True
        body = self._assign(inner)
        if self.chance(0.5):
            body += self._leaving_if(inner)
        index = f"{array}.size()" if grows else i
        write = [f"{array} = {array}.write({index}, {self.e.one(inner, 'S', 1)})"]
        if self.chance(0.4):
            write = [f"if {self.e.one(inner, 'B', 1)}:", *indented(write)]
        lines += [f"for {i} in tf.range({self.e.one(scope, 'I', 0)} % 4):"]
        lines += indented(body + write)
        scope.add(s, "S")
        return [*lines, f"{s} = tf.reduce_sum({array}.stack()) * 0.25"]
