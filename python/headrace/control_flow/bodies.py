"""Bodies of branches and loops: traced like functions, captures made arguments."""

from headrace._load import _headrace, raw
from headrace.context import stack
from headrace.framework import conversion, nest
from headrace.function import tracing
from headrace.graph.func_graph import FuncGraph
from headrace.graph.operation import Operation


def is_composite(value):
    return getattr(type(value), "_is_composite_tensor", False)


def name_in(scope, part):
    """What the function of a part of a call is named after: foo_while_body."""
    return f"{scope.rstrip('/').replace('/', '_')}_{part}"


def to_tensors(structure, of_operations=None):
    """The structure with tensors for leaves; composites and None as they are.

    An operation becomes the value `of_operations`, once it has run, or None.
    """

    def convert(x):
        if x is None or is_composite(x):
            return x
        if isinstance(x, Operation):
            if of_operations is None:
                return None
            with stack.current().control_dependencies([x]):
                return raw.Identity(of_operations)
        return conversion.convert_to_tensor(x)

    return nest.map_structure(convert, structure)


def tensors_of(structure):
    """The tensors of a structure, None left out."""
    flat = nest.flatten(structure, expand_composites=True)
    return [x for x in flat if x is not None]


def like(structure, tensors):
    """The structure with its tensors replaced; None stays. What is known of a composite
    beside its tensors is forgotten: they may be of other branches or turns."""
    structure = nest.map_structure(
        lambda x: x._loosened() if hasattr(type(x), "_loosened") else x, structure
    )
    rest = iter(tensors)
    flat = nest.flatten(structure, expand_composites=True)
    full = [None if x is None else next(rest) for x in flat]
    return nest.pack_sequence_as(structure, full, expand_composites=True)


class Body:
    """A traced body.

    Attributes:
      arguments: its own placeholders, before those of captures.
      value: what the Python function returned, as tensors.
      results: the tensors of that.

    `of_operations` is what stands for operations that the function returns, `label`
    what messages call a branch ("true_fn").

    Effects in it run in the order in which they were made, whether or not a result
    needs them, inside of tf.function; in graphs of sessions those alone that results
    wait for, as all else there.
    """

    is_branch = True

    def __init__(self, name, function, arguments=(), of_operations=None, label=None):
        outer = stack.current()
        self.graph = FuncGraph(name, outer)
        self.graph.is_branch = True
        if outer is not None:
            self.graph.keeps_effects = outer.keeps_effects
        self.graph.branch_label = label
        if outer is not None:
            outer._bodies.append(self.graph)
            self.graph._stand_on_device(outer)
            self.graph.outer_scope = outer._core.scope
            self.graph.share_variables(outer)
        self.concrete = None
        with self.graph.as_default():
            self.arguments = [
                self.graph._core.placeholder(f"arg{i}", t.dtype, shape, t)
                for i, (t, shape) in enumerate(arguments)
            ]
            self.value = to_tensors(function(*self.arguments), of_operations)
            self.results = [
                t
                if isinstance(t, _headrace.SymbolicTensor)
                and _headrace.graph_id(t) == self.graph._core.id
                else raw.Identity(t)
                for t in tensors_of(self.value)
            ]

    def finish(self, captures, pass_through=False):
        """Makes the function of the arguments and these outer captures."""
        inner = [self.graph._core.capture(c) for c in captures]
        results = self.results + (inner if pass_through else [])
        name = _headrace.new_function_name(self.graph.name)
        self.concrete = _headrace.make_concrete(
            self.graph._core,
            name,
            self.arguments + inner,
            results,
            [],
            keep_effects=self.graph.keeps_effects,
        )
        return name


def captures_of(bodies):
    """Outer values that the bodies captured, each once."""
    found = {}
    for body in bodies:
        tracing.check_captures(body.graph)
        for outer, _ in body.graph._core.captures():
            found.setdefault(outer._id, outer)
    return list(found.values())


def waiting(bodies):
    """A context in which a call of the bodies waits for what they wait for outside."""
    outside = [x for body in bodies for x in body.graph.outer_controls]
    return stack.current().control_dependencies(outside)


def is_stateful(bodies):
    return any(b.concrete.is_stateful for b in bodies)


def identities(outputs, scope, names=None):
    """Identities of an operation's outputs under its scope."""
    graph = stack.current()
    with graph.name_scope(scope):
        names = names or [None] * len(outputs)
        return [raw.Identity(t, name=name) for t, name in zip(outputs, names)]
