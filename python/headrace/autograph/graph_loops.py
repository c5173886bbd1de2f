"""Loops as While operations: the symbols that a body changes, carried by hand."""

from headrace._load import raw
from headrace.autograph import checks, lists, tensors, variables
from headrace.context import stack
from headrace.control_flow import bodies, loops
from headrace.framework import conversion, nest
from headrace.framework.type_spec import (
    TensorSpec,
    flat_tensor_specs,
    of_flat_tensors,
    type_spec_from_value,
)
from headrace.ops import array_ops, graph_assert

_TO_WHILE = ("parallel_iterations", "swap_memory", "maximum_iterations")


class GraphLoop:
    """A loop of a graph over the variables that its body changes.

    `hidden` are tensors that the loop carries besides. `test(*hidden)` says whether
    there is another turn, `step(*hidden)` takes it and gives their next values; both
    find the variables set to their values in the loop, `step` leaves them changed.
    `defines` says whether variables without a value before the loop may get theirs in
    it; such a loop must then turn once at least. With `relaxes` the shapes of variables
    may change: what changes is not known in the loop.
    """

    def __init__(
        self, state, test, step, hidden=(), opts=None, defines=True, relaxes=False
    ):
        self._get, self._set, self._names = state
        self._test, self._step = test, step
        self._hidden = list(hidden)
        self._opts = opts or {}
        self._defines = defines
        self._turned = []  # a flag that is carried where variables come in the loop
        self._relaxes = relaxes

    def run(self):
        """Adds the loop to the graph and sets the variables to what it gives."""
        values = list(self._get())
        invariants = _invariants(self._opts.get("shape_invariants", ()), values)
        lacking = [checks.lacks_value(v) for v in values]
        undefined = any(lacking) and self._defines
        if undefined or any(map(lists.may_grow, values)):
            found = self._tried(values)
            for i, value in enumerate(values):
                array = lists.as_array(value, found[i])
                values[i] = value if array is None else array
            if undefined:
                self._define(values, invariants, lacking, found)
        checks.before_loop(values, self._names)
        checks.invariants_before_loop(values, self._names, invariants)
        values = [bodies.to_tensors(v) for v in values]
        for value in values:
            if any(leaf is None for leaf in tensors.leaves(value)):
                raise ValueError("None values not supported.")
        while True:
            try:
                after = self._loop(values, invariants)
                break
            except _Changed as e:
                invariants[e.at] = e.shapes
        self._set(tuple(self._checked(after, lacking)))

    def _loop(self, values, invariants):
        extras = [bodies.to_tensors(h) for h in self._turned + self._hidden]
        count = len(extras)
        flags = len(self._turned)

        def unpack(carried):
            self._set(tuple(map(_copy, carried[count:])))
            return carried[flags:count]

        def condition(*carried):
            return self._test(*unpack(carried))

        def body(*carried):
            hidden = list(self._step(*unpack(carried)) or ())
            ended = list(self._get())
            entered = carried[count:]
            checks.turn(entered, ended, self._names, invariants, not self._relaxes)
            if self._relaxes:
                _relax(entered, ended)
            flag = [conversion.convert_to_tensor(True)] * flags
            return (*flag, *hidden, *(bodies.to_tensors(v) for v in ended))

        carried = (*extras, *values)
        if not carried:  # nothing but effects
            carried = (conversion.convert_to_tensor(0),)
            test, turn = condition, body

            def condition(_):
                return test()

            def body(count):
                turn()
                return (raw.AddV2(count, 1),)

        options = {k: v for k, v in self._opts.items() if k in _TO_WHILE}
        shapes = [None] * (len(carried) - len(values)) + [
            _none_like(v) if i is None else i for v, i in zip(values, invariants)
        ]
        result = loops.while_loop(
            condition, body, carried, shape_invariants=tuple(shapes), **options
        )
        self._turned = list(result[:flags])
        return list(result[len(result) - len(values) :])

    def _tried(self, values):
        """What a turn leaves, by a trial: of which only kinds, dtypes, shapes count."""
        before = tuple(values)
        try:
            with tensors.scratch_graph():
                self._set(tuple(map(_unknown, values)))
                self._step(*map(_unknown, self._hidden))
                return list(self._get())
        except Exception as e:
            self._refuse(values, e)
        finally:
            self._set(before)

    def _define(self, values, invariants, lacking, found):
        """Gives variables without a value one like that which they get in the loop."""
        for i, lacks in enumerate(lacking):
            if lacks and not checks.lacks_value(found[i]):
                try:
                    like = _likes(found[i])
                except (TypeError, ValueError) as e:
                    self._refuse(values, e)
                values[i], invariants[i] = like.zeros(), like.shapes
        self._turned = [conversion.convert_to_tensor(False)]

    def _refuse(self, values, error):
        for name, value in zip(self._names, values):
            if isinstance(value, variables.UndefinedReturnValue):
                checks.before_loop([value], [name])
            if checks.lacks_value(value):
                raise ValueError(
                    f"'{name}' must be defined before the loop\nNote: AutoGraph tried "
                    "to define it automatically, but ran into a "
                    f"{type(error).__name__}: {error}"
                ) from error
        raise error

    def _checked(self, values, lacking):
        """The values after the loop; those made in it wait for its first turn."""
        if not self._turned:
            return values
        names = ", ".join(n for n, lacks in zip(self._names, lacking) if lacks)
        text = f"loop must iterate at least once to initialize {names}"
        check = graph_assert.make(self._turned[0], [text])
        with stack.current().control_dependencies([check]):
            return [
                nest.map_structure(array_ops.identity, v, expand_composites=True)
                if lacks
                else v
                for v, lacks in zip(values, lacking)
            ]


def _invariants(given, values):
    """What is said of the shapes of each value; that of a pair goes by identity."""
    by_value = {id(value): shape for value, shape in given}
    return [by_value.get(id(value)) for value in values]


def _none_like(value):
    return nest.map_structure(lambda _: None, value)


def _copy(value):
    """The structure in lists and dicts of its own: the body may change those."""
    return nest.map_structure(lambda leaf: leaf, value)


def _unknown(value):
    """The value as it is in a loop: of its dtypes and shapes, but not known."""

    def hide(leaf):
        if leaf is None or checks.is_undefined(leaf) or bodies.is_composite(leaf):
            return leaf
        try:
            leaf = conversion.convert_to_tensor(leaf)
        except (TypeError, ValueError):
            return leaf  # the loop itself says so
        return stack.current()._core.placeholder("known", leaf.dtype, leaf.shape, leaf)

    return nest.map_structure(hide, value)


class _Changed(Exception):
    """A turn changed shapes: the loop is to be made again with less specific ones."""

    def __init__(self, at, shapes):
        super().__init__(at, shapes)
        self.at = at
        self.shapes = shapes


def _relax(entered, ended):
    """Raises _Changed where a value's shapes are no longer those that it came with."""
    for at, (before, after) in enumerate(zip(entered, ended)):
        wider = []
        changed = False
        for x, y in zip(tensors.leaves(before), tensors.leaves(after)):
            if bodies.is_composite(x):
                wider.append(None)
                continue
            shape = conversion.convert_to_tensor(y).shape
            wider.append(x.shape.most_specific_compatible_shape(shape))
            changed = changed or wider[-1] != x.shape
        if changed:
            raise _Changed(at, nest.pack_sequence_as(before, wider))


class _Like:
    """What a variable is in a loop: a structure of specs."""

    def __init__(self, structure, specs):
        self._structure = structure
        self._specs = specs
        self.shapes = self.packed(
            [s.shape if type(s) is TensorSpec else s for s in specs]
        )

    def packed(self, flat):
        return nest.pack_sequence_as(self._structure, flat)

    def zeros(self):
        """Values like it, for what is never read."""
        return self.packed([_zero_like(spec) for spec in self._specs])


def _likes(value):
    specs = []
    for leaf in tensors.leaves(value):
        if leaf is None:
            raise ValueError("None values not supported.")
        if bodies.is_composite(leaf):
            specs.append(type_spec_from_value(leaf))
        elif tensors.is_tensor(leaf):
            specs.append(TensorSpec(leaf.shape, leaf.dtype))
        elif isinstance(leaf, (bool, int, float)):
            converted = conversion.convert_to_tensor(leaf)
            specs.append(TensorSpec(converted.shape, converted.dtype))
        else:
            raise TypeError(
                f"Found an unsupported type '{type(leaf).__name__}' while creating "
                f"placeholder for {leaf}. Supported types include Tensor, int, float, "
                "bool, list, tuple or dict."
            )
    return _Like(nest.map_structure(lambda _: 0, value), specs)


def _zero_like(spec):
    """A value of a spec, of as few elements as can be."""
    if type(spec) is TensorSpec:
        return _zero(spec, 0)
    # One number at least: row splits are never empty.
    parts = (_zero(part, 1) for part in flat_tensor_specs(spec))
    return of_flat_tensors(spec, parts)


def _zero(spec, unknown):
    """A tensor of a TensorSpec, whose dimensions are `unknown` where it does not know
    them. Its value is known to nobody: that of a sparse tensor's shape is not its shape.
    """
    sizes = [] if spec.shape.rank is None else spec.shape.as_list()
    sizes = [unknown if d is None else d for d in sizes]
    return raw.Empty(sizes, dtype=spec.dtype, init=True)
